"""Any fault in an export of a tool costs only itself, is counted with its reason, and ends the command with 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from barista_bench.other_graphs.importing import ImportReport, import_graphs
from barista_bench.scene_graph import SceneGraph, validate
from tests.other_graphs.odd_importers import TOOLS
from tests.other_graphs.sample import THINGS, ContentChange, edit
from tests.other_graphs.samples import coco


def imported(tool: str, change: ContentChange, folder: Path) -> ImportReport:
    """Import a sample of a tool after a change of its file."""
    sample = TOOLS[tool].sample
    sample.write(folder / "export")
    edit(folder / "export" / sample.file, change)
    return import_graphs("table", folder / "export", folder / "graphs", map=TOOLS[tool].arguments[-1])


@pytest.mark.parametrize(
    ("tool", "reason"), [(tool, reason) for tool, importer in TOOLS.items() for reason in importer.sample.faults]
)
def test_a_bad_record_of_an_export_is_counted_and_the_others_are_kept(tool: str, reason: str, tmp_path: Path) -> None:
    sample = TOOLS[tool].sample
    report = imported(tool, sample.faults[reason], tmp_path)
    lost = +report.tally.lost
    assert lost
    assert any(reason in label and label.startswith(sample.file) for label in lost), lost
    assert not validate(tmp_path / "graphs").problems
    (graph,) = SceneGraph(tmp_path / "graphs")
    assert {item.category for item in graph.objects} == set(THINGS)


@pytest.mark.parametrize(
    ("tool", "reason"), [(tool, reason) for tool, importer in TOOLS.items() for reason in importer.sample.left_out]
)
def test_records_without_a_place_in_a_graph_are_left_out(tool: str, reason: str, tmp_path: Path) -> None:
    report = imported(tool, TOOLS[tool].sample.left_out[reason], tmp_path)
    assert report.is_whole
    assert [label for label in report.tally.left_out if label.startswith(reason)]


def test_a_box_in_percent_that_leaves_the_picture_is_cut_at_its_edge(tmp_path: Path) -> None:
    value = {"x": 90, "y": 50, "width": 20, "height": 25, "rotation": 0, "rectanglelabels": ["cup"]}
    box = {"id": "z", "type": "rectanglelabels", "value": value}

    def add_box(content: list) -> None:
        content[0]["annotations"][0]["result"].append(box)

    assert imported("label_studio, pictures", add_box, tmp_path).is_whole
    (graph,) = SceneGraph(tmp_path / "graphs")
    (corners,) = (item.bbox for item in graph.instances(0) if item.object.category == "cup")
    assert corners == pytest.approx((86.4, 32, 9.6, 16))


def test_the_message_about_a_coco_file_as_a_release_names_the_import(tmp_path: Path) -> None:
    coco.write(tmp_path / "export")
    (tmp_path / "release" / "clip").mkdir(parents=True)
    file = tmp_path / "release" / "clip" / "coco_annotation.json"
    (tmp_path / "export" / coco.FILE).rename(file)
    assert "barista-bench import-graph --from table --map coco" in str(validate(tmp_path / "release").problems[0])
