"""A picture of a video's contact signal, as it came and as the segments see it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from barista_bench.annotate.project import VideoFiles
from barista_bench.annotate.records import SegmentsFile, SignalFile
from barista_bench.annotate.segments import filtered_signal
from barista_bench.errors import DataError, require_extra
from barista_bench.files.reading import confined
from barista_bench.files.writing import atomic_write


def plot_signal(video: VideoFiles, folder: Path) -> Path:
    """`NAME.png`: raw and filtered confidence, threshold and segments over seconds.

    Raises:
        DataError: the video has no signal or no segments yet.
        ModelError: matplotlib is missing.
    """
    require_extra("plots of signals", "matplotlib", extra="viz")
    from matplotlib.figure import Figure

    if not (video.has(SignalFile) and video.has(SegmentsFile)):
        raise DataError(f"{video.video_id}: has no segments yet. Remedy: accept a signal and run the project")
    settings, fps = video.project.settings.segments, video.source.fps or 1.0
    raw = np.array([np.nan if v is None else v for v in video.read(SignalFile).confidence], dtype=np.float64)
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
    path = confined(folder, f"{video.video_id}.png")
    with atomic_write(path) as partial:
        figure.savefig(partial, format="png", dpi=120, metadata={"Software": None})
    return path
