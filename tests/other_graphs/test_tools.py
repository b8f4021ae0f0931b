"""Exports of annotation tools become graphs: everything in them is where it was drawn."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.interchange.mask_formats import ReadFormat
from barista_bench.other_graphs import Tool
from barista_bench.other_graphs.importing import ImportReport, import_graphs
from barista_bench.scene_graph import SceneGraph, VideoGraph, validate
from tests.other_graphs.odd_files import ODDITIES
from tests.other_graphs.odd_importers import IMPORTERS, TOOLS, Importer
from tests.other_graphs.sample import SEEN, THINGS, samples_of


@pytest.mark.parametrize("name", sorted({*get_args(Tool), *get_args(ReadFormat)}))
def test_every_tool_and_format_has_a_sample(name: str) -> None:
    assert samples_of(name), f"write tests/other_graphs/samples/{name}.py, as samples/labelme.py or samples/davis.py"


def test_the_oddities_of_samples_exist() -> None:
    assert {oddity for importer in IMPORTERS.values() for oddity in importer.sample.own} <= {*ODDITIES}


def imported(importer: Importer, folder: Path) -> tuple[VideoGraph, ImportReport]:
    importer.sample.write(folder / "export")
    out = folder / "graphs"
    report = import_graphs("table", folder / "export", out, map=importer.arguments[-1])
    assert not validate(out).problems
    (graph,) = SceneGraph(out)
    return graph, report


@pytest.mark.parametrize("importer", TOOLS.values(), ids=TOOLS)
def test_an_export_becomes_a_graph_with_everything_in_its_place(importer: Importer, tmp_path: Path) -> None:
    sample, (graph, report) = importer.sample, imported(importer, tmp_path)
    assert report.is_whole, list(report.lines())
    frames = range(3) if sample.of_pictures else SEEN
    assert graph.frame_count == (3 if sample.of_pictures else 40)
    for frame in frames:
        shown = {item.object.category: item for item in graph.instances(frame)}
        assert np.allclose([shown[name].bbox for name in THINGS], list(THINGS.values()))
        for name, box in THINGS.items():
            assert graph.mask(shown[name]).sum() == box[2] * box[3] - sample.hole * (name == "coffee cup")
    assert not [frame for frame in range(graph.frame_count) if frame not in frames and graph.boxes(frame)]
    assert graph.coverage.covers_category("coffee cup", frames[0], frames[-1] + 1)
    assert not graph.coverage.covers_layer("relations", 0, 1)
    colors = {(row.object.category, row.type, row.value) for row in graph.attributes()}
    assert colors == ({("coffee cup", "color", "white")} if sample.color else set())
    spans = [(row.name, row.start, row.end) for row in graph.activities()]
    assert spans == ([("Take cup", 10, 30)] if sample.activity else [])


ASKED = {name: importer for name, importer in TOOLS.items() if importer.sample.color or importer.sample.of_pictures}
"""Without a color, `mask_tracking` needs things on more than three of 40 frames."""


@pytest.mark.parametrize("importer", ASKED.values(), ids=ASKED)
def test_questions_come_out_of_an_export(importer: Importer, tmp_path: Path) -> None:
    imported(importer, tmp_path)
    benchmark, config = ("barista", "grounding") if importer.sample.color else ("extended", "mask_tracking")
    sampling = ["mask_tracking.spacing=1"]
    if importer.sample.color:
        sampling = ["grounding.in_activities=false", "grounding.with_relations=false", "grounding.fraction=1.0"]
    arguments = ["build", "--benchmark", benchmark, "--source", str(tmp_path / "graphs"), "--configs", config]
    arguments += ["--dry-run", "--no-progress", *(part for one in sampling for part in ("--sampling", one))]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0, done.output
    assert f"{config}: train" in done.output


def test_the_relations_of_label_studio_hold_where_both_are_seen(tmp_path: Path) -> None:
    graph, report = imported(TOOLS["label_studio"], tmp_path)
    (row,) = graph.relations()
    assert (row.source.category, row.type, row.value) == ("left hand", "human_actions", "holds")
    assert (row.start, row.end) == (10, 13)
    assert report.tally.guessed["boxes between keyframes, by a straight line"] == 2
    assert report.tally.left_out["further, or cancelled, annotations of a task"] == 1
