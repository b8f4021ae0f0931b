"""The videos of what is generated: those of the graphs, linked; a folder of pictures becomes a video."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from barista_bench.errors import DataError
from barista_bench.files.writing import place_file
from barista_bench.media.video import open_reader
from barista_bench.mini.cutting import encode_video
from barista_bench.scene_graph import SceneGraph, VideoGraph


def check_placeable(graph: SceneGraph, video: VideoGraph) -> None:
    """Raise DataError for a folder of pictures that cannot become a video."""
    facts = video.video
    if (facts.width % 2 or facts.height % 2) and graph.video_path(video.video_id).is_dir():
        size = f"{facts.width}x{facts.height}"
        raise DataError(f"{video.video_id}: pictures of {size} make no video. Remedy: give even sizes")


def place_video(graph: SceneGraph, video_id: str, target: Path) -> None:
    """Put a video, as MP4, where a release has it. Of a folder of pictures frame k then stands at k / fps seconds."""
    path = graph.video_path(video_id)
    if not path.is_dir():
        place_file(path, target)
        return
    rate = Fraction(graph[video_id].video.fps or 1).limit_denominator(10_000)
    with open_reader(path) as reader:
        encode_video(target, (reader.read([at])[0] for at in range(len(reader))), size=reader.size, fps=rate)
