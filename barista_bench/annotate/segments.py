"""Makes interaction segments and keyframes from hand-object contact confidences (BARISTA, section 3.2), and plots them.

Frames are counted from 0. Segments are half-open `[start, end)` in frames. Durations are in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from barista_bench.annotate.project import SegmentSettings, VideoFiles
from barista_bench.annotate.records import SegmentsFile, SignalFile
from barista_bench.errors import DataError, require_extra
from barista_bench.files.paths import confine
from barista_bench.files.writing import atomic_write
from barista_bench.scene_graph.coverage import extend_ranges, frame_ranges


def interaction_segments(confidence: ArrayLike, fps: float, settings: SegmentSettings) -> list[tuple[int, int]]:
    """Return the stretches of contact, in order.

    As in the paper, short stretches are dropped first, then gaps are closed.

    Args:
        confidence: one number per frame, shape (n,); NaN if not measured. The last measured value then continues.
            Before the first measured value, there is no contact.
        fps: frames per second.
    """
    signal = np.asarray(confidence, dtype=np.float64)
    if not signal.size:
        return []
    shortest, gap = (round(duration * fps, 6) for duration in (settings.shortest_s, settings.gap_s))
    in_contact = filtered_signal(signal, fps, settings.median_s) >= settings.threshold
    merged: list[tuple[int, int]] = []
    for start, end in frame_ranges(np.flatnonzero(in_contact)):
        if end - start >= shortest:
            extend_ranges(merged, start, end, gap)
    return merged


def filtered_signal(confidence: NDArray[np.float64], fps: float, median_s: float) -> NDArray[np.float64]:
    """Return the confidences to compare with the threshold: continued over NaN, then median-filtered."""
    width = 2 * math.floor(round(median_s * fps, 6) / 2) + 1
    # NaN is replaced by the last measured value, or by 0 before the first measured value.
    last_measured = np.maximum.accumulate(np.where(np.isnan(confidence), -1, np.arange(confidence.size)))
    held_signal = np.where(last_measured >= 0, confidence[last_measured], 0.0)
    return ndimage.median_filter(held_signal, size=width, mode="nearest")


def choose_keyframes(segments: Sequence[tuple[int, int]], frame_count: int, reach: int) -> list[int]:
    """Return the centre of each segment, and as few further frames, evenly spaced, as the reach requires.

    Neighbouring keyframes are at most `reach` frames apart. Each end of the video is at most `reach` frames from its
    nearest keyframe. A video without segments has a keyframe in its middle.

    Args:
        segments: the ranges from `interaction_segments`.
        frame_count: number of frames of the video; a video without frames has no keyframes.
        reach: the largest distance in frames that the propagator bridges (`Propagator.reach`), at least 1.
    """
    if frame_count <= 0:
        return []
    centres = sorted({(start + end - 1) // 2 for start, end in segments}) or [(frame_count - 1) // 2]
    filling = [
        first + (last - first) * part // parts
        for first, last in pairwise([0, *centres, frame_count - 1])
        for parts in [math.ceil((last - first) / reach)]
        for part in range(1, parts)
    ]
    return sorted({*centres, *filling})


def plot_signal(video: VideoFiles, folder: Path) -> Path:
    """Write `NAME.png`, a plot of the raw and filtered confidence, the threshold and the segments over time in seconds.

    Raises:
        DataError: the video has no signal or no segments yet.
        ModelError: matplotlib is missing.
    """
    require_extra("plots of signals", "matplotlib", extra="viz")
    from matplotlib.figure import Figure

    if not (video.has(SignalFile) and video.has(SegmentsFile)):
        raise DataError(f"{video.video_id}: has no segments yet. Fix: accept a signal and run the project")
    settings, fps = video.project.settings.segments, video.source.fps or 1.0
    raw = np.array(video.read(SignalFile).confidence, dtype=np.float64)
    seconds = np.arange(len(raw)) / fps
    figure = Figure(figsize=(9, 2.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(seconds, raw, color="#999999", linewidth=0.8, marker=".", markersize=2, label="as it came")
    axes.plot(seconds, filtered_signal(raw, fps, settings.median_s), color="#0072b2", label="filtered")
    axes.axhline(settings.threshold, color="#d55e00", linestyle="--", linewidth=0.8, label="threshold")
    for start, end in video.segments():
        axes.axvspan(start / fps, end / fps, color="#56b4e9", alpha=0.25, linewidth=0)
    axes.set(xlabel="seconds", ylabel="contact confidence", ylim=(-0.05, 1.05), title=video.video_id)
    axes.legend(loc="upper right", fontsize="small")
    folder.mkdir(parents=True, exist_ok=True)
    path = confine(folder, f"{video.video_id}.png")
    with atomic_write(path) as partial:
        figure.savefig(partial, format="png", dpi=120, metadata={"Software": None})
    return path
