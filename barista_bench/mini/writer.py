"""Writes a kitchen to disk in the release layout: `<out>/<video_id>/{coco_annotation.json, video.mp4}`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tqdm import tqdm

from barista_bench.core.worker_processes import map_in_processes
from barista_bench.errors import ConfigError
from barista_bench.files.writing import KITCHEN, replacing_folder
from barista_bench.mini.annotate import FrameAnnotator, outline
from barista_bench.mini.cutting import Picture, encode_video
from barista_bench.mini.kitchen import FPS, SECONDS, Video, VideoPlan
from barista_bench.scene_graph.release import ANNOTATION_FILE, VIDEO_FILE, encode


def plan_kitchen(
    *,
    videos: int = 9,
    seed: int = 0,
    width: int = 640,
    height: int = 360,
    seconds: tuple[float, float] | None = None,
) -> list[VideoPlan]:
    """The videos of a kitchen, preparations in turn. Nothing is drawn or written."""
    if videos < 1:
        raise ConfigError(f"videos={videos}: a kitchen without a video. Remedy: give at least 1")
    if width % 2 or height % 2 or width < 64 or height < 64 or width > 2 * height:
        raise ConfigError(
            f"{width}x{height} px cannot be drawn. "
            "Remedy: give even sizes of at least 64, at most twice as wide as high"
        )
    shortest, longest = seconds or SECONDS
    if not 0.5 <= shortest <= longest:
        raise ConfigError(f"seconds={seconds}: no range of lengths. Remedy: give 0.5 <= shortest <= longest")
    return [VideoPlan(n, seed, width, height, (shortest, longest)) for n in range(videos)]


def write_kitchen(
    out: str | Path,
    *,
    videos: int = 9,
    seed: int = 0,
    width: int = 640,
    height: int = 360,
    num_proc: int = 2,
    seconds: tuple[float, float] | None = None,
    progress: bool = False,
) -> list[Path]:
    """Render a scripted coffee kitchen into the folder `out` and return its video folders, sorted.

    The same arguments give the same annotation bytes, whatever `num_proc` (worker processes) is. `seconds`
    bounds the videos' lengths: a script is stretched or squeezed to lie within. The folder appears only when
    it is complete.

    Raises:
        ConfigError: a number cannot be used, or `out` is no folder that may be replaced: see `replacing_folder`.
    """
    plans = plan_kitchen(videos=videos, seed=seed, width=width, height=height, seconds=seconds)
    with replacing_folder(Path(out), KITCHEN) as folder:
        written = map_in_processes(partial(write_video, root=folder), plans, num_proc)
        for _ in tqdm(written, total=len(plans), desc="mini kitchen", unit="video", disable=not progress):
            pass
    return sorted(Path(out) / plan.video_id for plan in plans)


def write_video(plan: VideoPlan, root: Path) -> Path:
    """Render one video and its annotation into `<root>/<video_id>`."""
    video = Video(plan)
    release, annotate = outline(video), FrameAnnotator(video)
    folder = root / plan.video_id
    folder.mkdir()

    def pictures() -> Iterator[Picture]:
        for number, (picture, owners) in enumerate(video.frames()):
            release.annotations.extend(annotate(number, owners))
            yield picture

    encode_video(folder / VIDEO_FILE, pictures(), size=(plan.width, plan.height), fps=FPS)
    (folder / ANNOTATION_FILE).write_bytes(encode(release))
    return folder
