"""Any fault in an export of a tool costs only itself, is counted with its reason, and ends the command with 1."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.other_graphs.importing import ImportReport, import_graphs
from barista_bench.scene_graph import SceneGraph, validate
from tests.other_graphs.exports import EXPORTS, THINGS

FILES = {
    "coco": "annotations/instances.json",
    "coco_video": "annotations.json",
    "label_studio": "export.json",
    "label_studio_pictures": "export.json",
    "labelme": "labels/0001.json",
    "supervisely": "ds/ann/clip.mp4.json",
    "supervisely_pictures": "ds/ann/0001.png.json",
    "fiftyone": "frames.json",
}
Change = Callable[[Any], None]


def _put(*path: str | int, value: object) -> Change:
    """Set a value; None as the last part appends."""

    def change(content: Any) -> None:
        for part in path[:-1]:
            content = content[part]
        content[path[-1]] = value

    return change


def _add(*path: str | int, **fields: Any) -> Change:
    """Append a copy of the first record of a list, with other fields."""

    def change(content: Any) -> None:
        for part in path:
            content = content[part]
        content.append({**content[0], **fields})

    return change


def imported(tool: str, change: Change, folder: Path) -> ImportReport:
    """Import a good export of a tool after a change."""
    EXPORTS[tool](folder / "export")
    path = folder / "export" / FILES[tool]
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return import_graphs("table", folder / "export", folder / "graphs", map=tool.removesuffix("_pictures"))


RESULTS = (0, "annotations", 1, "result")
RESULTS_OF_PICTURE = (0, "annotations", 0, "result")
DETECTIONS = ("frames", 0, "ground_truth", "detections")


@pytest.mark.parametrize(
    ("tool", "change", "reason"),
    [
        ("coco", _add("annotations", id=90, track_id=9, category_id=9), "its category is not in the file"),
        ("coco", _add("annotations", track_id=9, segmentation=[[1, 1, 5, 1, 5]]), "an even count is needed"),
        ("coco", _add("annotations", track_id=9, segmentation=[], bbox=[5, 5, 0, 0]), "has no area"),
        ("coco", _add("annotations", track_id=9, segmentation=[], bbox=None), "neither segmentation nor bbox"),
        ("coco", _add("annotations", track_id=9, segmentation=[], bbox=[float("nan"), 5, 3, 3]), "Expected `float`"),
        ("coco", _add("annotations", track_id=9, segmentation=[[900, 9, 950, 9, 950, 60]]), "pixels from the origin"),
        (
            "coco",
            _add("images", id=9, file_name="clip/0009.png"),
            "not exactly one picture below the source is named so",
        ),
        ("coco_video", _add("annotations", id=9, category_id=8), "tracks: their category is not in the file"),
        (
            "label_studio",
            _add(*RESULTS, id="x", value={"labels": ["cup"]}),
            "a number of the videorectangle is missing",
        ),
        ("label_studio", _add(*RESULTS, type="relation", from_id="left", to_id="x", labels=["on"]), "'x' is not in"),
        ("label_studio", _add(data={"video": "other.mp4"}), "no video or picture below the source"),
        (
            "label_studio_pictures",
            _put(*RESULTS_OF_PICTURE, 0, "value", "polygonlabels", value=[]),
            "it has no category",
        ),
        ("label_studio_pictures", _put(*RESULTS_OF_PICTURE, 1, "value", "rle", value=[0, 1, 2]), "mask is damaged"),
        ("labelme", _add("shapes", group_id=7, shape_type="circle"), "a circle of N points"),
        ("labelme", _add("shapes", group_id=7, points="no"), "Expected `array`, got `str`"),
        (
            "labelme",
            _add("shapes", group_id=7, shape_type="mask", points=[[1, 1], [3, 3]], mask="?"),
            "mask is damaged",
        ),
        ("supervisely", _add("frames", 0, "figures", objectKey="k9"), "its object 'kN' is not in the file"),
        (
            "supervisely_pictures",
            _add("objects", id=9, geometryType="bitmap", bitmap={"data": "", "origin": [0, 0]}),
            "d",
        ),
        ("fiftyone", _add(*DETECTIONS, index=9, bounding_box=[0.5, 0.5]), "a number of its shape is missing or wrong"),
        ("fiftyone", _add(*DETECTIONS, index=9, mask={"$binary": {"base64": "AAAA"}}), "mask is damaged"),
    ],
)
def test_a_bad_record_of_an_export_is_counted_and_the_others_are_kept(
    tool: str, change: Change, reason: str, tmp_path: Path
) -> None:
    report = imported(tool, change, tmp_path)
    lost = +report.tally.lost
    assert lost
    assert any(reason in label and label.startswith(FILES[tool]) for label in lost), lost
    assert not validate(tmp_path / "graphs").problems
    (graph,) = SceneGraph(tmp_path / "graphs")
    assert {item.category for item in graph.objects} == set(THINGS)


@pytest.mark.parametrize(
    ("tool", "change", "left_out"),
    [
        ("coco", _add("annotations", id=90, track_id=9, iscrowd=1), "crowds: several things as one mask"),
        ("labelme", _add("shapes", shape_type="linestrip"), "shapes without an area: linestrip"),
        ("supervisely_pictures", _add("objects", id=9, geometryType="line"), "shapes without an area: line"),
        ("label_studio_pictures", _add(*RESULTS_OF_PICTURE, id="k", type="keypointlabels"), "results of type keypoint"),
        ("fiftyone", _add(*DETECTIONS, index=9, confidence=0.4), "labels with a confidence, which are a model's"),
    ],
)
def test_records_without_a_place_in_a_graph_are_left_out(
    tool: str, change: Change, left_out: str, tmp_path: Path
) -> None:
    report = imported(tool, change, tmp_path)
    assert report.is_whole
    assert [label for label in report.tally.left_out if label.startswith(left_out)]


def test_a_box_in_percent_that_leaves_the_picture_is_cut_at_its_edge(tmp_path: Path) -> None:
    value = {"x": 90, "y": 50, "width": 20, "height": 25, "rotation": 0, "rectanglelabels": ["cup"]}
    box = {"id": "z", "type": "rectanglelabels", "value": value}
    assert imported("label_studio_pictures", lambda content: add_result(content, box), tmp_path).is_whole
    (graph,) = SceneGraph(tmp_path / "graphs")
    (corners,) = (item.bbox for item in graph.instances(0) if item.object.category == "cup")
    assert corners == pytest.approx((86.4, 32, 9.6, 16))


def add_result(content: Any, result: dict[str, Any]) -> None:
    content[0]["annotations"][0]["result"].append(result)


LOOSE = ("grounding.in_activities=false", "grounding.with_relations=false", "grounding.fraction=1.0")


@pytest.mark.parametrize(
    ("tool", "benchmark", "config", "sampling"),
    [
        ("coco", "barista", "grounding", LOOSE),
        ("label_studio", "barista", "grounding", ()),
        ("label_studio_pictures", "extended", "mask_tracking", ("mask_tracking.spacing=1",)),
        ("labelme", "barista", "grounding", LOOSE),
        ("supervisely", "barista", "grounding", LOOSE),
        ("supervisely_pictures", "barista", "grounding", LOOSE),
        ("fiftyone", "barista", "grounding", LOOSE),
    ],
)
def test_questions_come_out_of_an_export(
    tool: str, benchmark: str, config: str, sampling: tuple[str, ...], tmp_path: Path
) -> None:
    EXPORTS[tool](tmp_path / "export")
    import_graphs("table", tmp_path / "export", tmp_path / "graphs", map=tool.removesuffix("_pictures"))
    arguments = ["build", "--benchmark", benchmark, "--source", str(tmp_path / "graphs"), "--configs", config]
    arguments += ["--dry-run", "--no-progress", *(part for one in sampling for part in ("--sampling", one))]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0, done.output
    assert f"{config}: train" in done.output


def test_the_message_about_a_coco_file_as_a_release_names_the_import(tmp_path: Path) -> None:
    EXPORTS["coco"](tmp_path / "export")
    (tmp_path / "release" / "clip").mkdir(parents=True)
    file = tmp_path / "release" / "clip" / "coco_annotation.json"
    (tmp_path / "export" / FILES["coco"]).rename(file)
    assert "barista-bench import-graph --from table --map coco" in str(validate(tmp_path / "release").problems[0])
