"""The importers under test: each with a sample (`sample.py`), and its arguments on the command line."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from typer.testing import CliRunner

from barista_bench.annotate.project import open_project, start_project
from barista_bench.cli import commands as cli
from barista_bench.interchange.mask_formats import ReadFormat
from barista_bench.other_graphs import Tool
from barista_bench.scene_graph import SceneGraph, decode_mask
from tests.other_graphs.sample import Sample, samples_of
from tests.releases import write_video

Shown = frozenset[tuple[int, str, int]]
"""Frame, category and area in pixels of all masks."""


@dataclass(frozen=True)
class Importer:
    """A sample, and the arguments of its import on the command line."""

    name: str
    sample: Sample
    arguments: tuple[str, ...]

    @property
    def is_for_projects(self) -> bool:
        return self.arguments[0] == "--format"


def _importers(prefix: str, name: str, *arguments: str) -> dict[str, Importer]:
    """The importers of a tool or format, by the name that the page shows."""
    shown = {
        f"{prefix}{name}, {sample.variant}" if sample.variant else f"{prefix}{name}": sample
        for sample in samples_of(name)
    }
    return {name: Importer(name, sample, arguments) for name, sample in shown.items()}


DATASETS = _importers("", "pvsg", "--from", "pvsg") | _importers("", "visor", "--from", "visor")
TOOLS = {
    shown: importer
    for tool in get_args(Tool)
    for shown, importer in _importers("", tool, "--from", "table", "--map", tool).items()
}
TABLES = _importers("", "table", "--from", "table", "--map", "MAP")
MASKS = {
    shown: importer
    for name in get_args(ReadFormat)
    for shown, importer in _importers("annotate: ", name, "--format", name).items()
}
IMPORTERS = {**DATASETS, **TOOLS, **TABLES, **MASKS}


def frames(importer: Importer) -> list[int]:
    return sorted({frame for frame, _, _ in good(importer.name)})


@cache
def good(name: str) -> Shown:
    """The content of an importer's good export."""
    importer = IMPORTERS[name]
    with tempfile.TemporaryDirectory() as folder:
        importer.sample.write(Path(folder) / "export")
        shown, code, text = run(importer, Path(folder))
    assert code == 0, f"{name}: {text}"
    assert len(shown) == 6, f"{name}: {shown}"
    return shown


def run(importer: Importer, folder: Path) -> tuple[Shown, int, str]:
    """The graph after the import, its exit status, and the output of the command."""
    source = str(folder / "export")
    if importer.is_for_projects:
        (folder / "videos").mkdir()
        write_video(folder / "videos" / "clip.mp4")
        project = start_project(folder / "project", folder / "videos")
        arguments = ["annotate", "import", str(project.folder), "--from", source, *importer.arguments, "--by", "a"]
    else:
        given = [str(folder / "map.yaml") if part == "MAP" else part for part in importer.arguments]
        arguments = ["import-graph", source, *given, "--out", str(folder / "graphs"), "--no-progress"]
    done = CliRunner().invoke(cli.app, arguments)
    text = done.output
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        text += f"Traceback: {done.exception!r}"
    return (_accepted(folder) if importer.is_for_projects else _graph(folder / "graphs")), done.exit_code, text


def _accepted(folder: Path) -> Shown:
    accepted = open_project(folder / "project").video("clip").accepted()
    return frozenset(
        (keyframe.frame, accepted.objects[name], int(decode_mask(mask.rle).sum()))
        for keyframe in accepted.keyframes
        for name, mask in keyframe.masks.items()
    )


def _graph(folder: Path) -> Shown:
    if not any(folder.glob("*/coco_annotation.json")):
        return frozenset()
    return frozenset(
        (item.frame, item.object.category, int(video.mask(item).sum()))
        for video in SceneGraph(folder)
        for item in video.instances((0, video.frame_count))
    )
