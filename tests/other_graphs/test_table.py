"""Tables that a map describes: taken and lost records with reasons, and the output of the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.errors import ConfigError, DataError
from barista_bench.other_graphs.importing import ImportReport, import_graphs
from barista_bench.other_graphs.table_map import load_map
from barista_bench.scene_graph import SceneGraph, VideoGraph, validate
from tests.other_graphs.sample import CUP, HAND, flat, write_json, write_pictures
from tests.other_graphs.samples import coco
from tests.releases import HEIGHT, WIDTH, write_video

invoke = CliRunner().invoke
MAP: dict[str, Any] = {
    "objects": {
        "file": "boxes.csv",
        "video": "clip",
        "frame": "frame",
        "frames": "from_1",
        "id": "track",
        "category": "label",
        "box": ["x", "y", "w", "h"],
    },
    "relations": {
        "file": "relations.jsonl",
        "video": "clip",
        "subject": "who",
        "predicate": "does",
        "object": "what",
        "start": "from",
        "end": "to",
        "frames": "from_1",
    },
    "attributes": {"file": "more.json", "list": "colors", "object": "thing", "value": "color"},
    "activities": {
        "file": "more.json",
        "list": "actions",
        "video": "clip",
        "name": "name",
        "start": "from",
        "end": "to",
        "frames": "seconds",
    },
}
BOXES = ["clip,frame,track,label,x,y,w,h"]
BOXES += [f"clip_1,{frame},c,Coffee  cup,50,30,20,20" for frame in (11, 12, 13)]
BOXES += [f"clip_1,{frame},h,left hand,44,40,10,16" for frame in (11, 12, 13)]
HOLDS = {"clip": "clip_1", "who": "h", "does": "holding", "what": "c", "from": 11, "to": 12}
MORE = {
    "colors": [{"thing": "c", "color": "white"}],
    "actions": [{"clip": "clip_1.mp4", "name": "Take cup", "from": 0.3333, "to": 1.0}],
}


def write_source(root: Path) -> Path:
    (root / "videos").mkdir(parents=True)
    write_video(root / "videos" / "clip_1.mp4")
    (root / "boxes.csv").write_text("\n".join(BOXES))
    (root / "relations.jsonl").write_text(json.dumps(HOLDS) + "\n")
    write_json(root / "more.json", MORE)
    return root


def write_map(path: Path, content: dict[str, Any] = MAP) -> str:
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def imported(tmp_path: Path, content: dict[str, Any] = MAP) -> tuple[VideoGraph, ImportReport]:
    out = tmp_path / "graphs"
    report = import_graphs("table", tmp_path / "source", out, map=write_map(tmp_path / "map.yaml", content))
    assert not validate(out).problems
    (graph,) = SceneGraph(out)
    return graph, report


def with_table(section: str, **fields: Any) -> dict[str, Any]:
    return {**MAP, section: {**MAP.get(section, {}), **fields}}


def test_every_row_of_the_tables_is_in_the_graph(tmp_path: Path) -> None:
    write_source(tmp_path / "source")
    graph, report = imported(tmp_path)
    assert report.is_whole
    cup, hand = graph.objects
    assert (cup.category, hand.category, graph.frame_count) == ("Coffee cup", "left hand", 40)
    assert {frame: graph.boxes(frame) for frame in range(40) if graph.boxes(frame)} == {
        frame: {cup.id: CUP, hand.id: HAND} for frame in (10, 11, 12)
    }
    assert [(row.source, row.value, row.target, row.start, row.end) for row in graph.relations()] == [
        (hand, "holds", cup, 10, 12)
    ]
    assert [(row.object, row.type, row.value, row.start, row.end) for row in graph.attributes()] == [
        (cup, "color", "white", 10, 13)
    ]
    assert [(row.name, row.start, row.end) for row in graph.activities()] == [("Take cup", 10, 30)]


@pytest.mark.parametrize(
    ("box", "box_is", "unit"),
    [
        ((50, 30, 70, 50), "xyxy", "pixels"),
        ((60, 40, 20, 20), "centre", "pixels"),
        ((50 / 96, 30 / 64, 20 / 96, 20 / 64), "xywh", "fractions"),
        ((5000 / 96, 3000 / 64, 7000 / 96, 5000 / 64), "xyxy", "percent"),
    ],
)
def test_a_box_is_read_as_the_map_says(box: tuple[float, ...], box_is: str, unit: str, tmp_path: Path) -> None:
    source = write_source(tmp_path / "source")
    (source / "boxes.csv").write_text(f"{BOXES[0]}\nclip_1,1,c,cup,{','.join(map(str, box))}\n")
    content = {"objects": {**MAP["objects"], "box_is": box_is, "unit": unit}}
    graph, _ = imported(tmp_path, content)
    assert list(graph.boxes(0).values()) == [pytest.approx(CUP)]


@pytest.mark.parametrize("kind", ["polygons", "runs", "png", "text"])
def test_a_mask_is_used_instead_of_the_box(kind: str, tmp_path: Path) -> None:
    source = write_source(tmp_path / "source")
    runs = {"size": [HEIGHT, WIDTH], "counts": [50 * HEIGHT + 30, 20, 44, 20, (WIDTH - 52) * HEIGHT + 14]}
    shown = {"polygons": [flat(CUP)], "runs": runs, "png": "masks/1.png", "text": json.dumps([flat(CUP)])}
    row = {"frame": 0, "id": 7, "category": "cup", "mask": shown[kind], "box": [1, 1, 2, 2]}
    (source / "clip_1.jsonl").write_text(json.dumps(row))
    (source / "masks").mkdir()
    picture = Image.new("L", (WIDTH, HEIGHT))
    picture.paste(9, (50, 30, 70, 50))
    picture.save(source / "masks" / "1.png")
    table = {
        "file": "{video}.jsonl",
        "frame": "frame",
        "frames": "from_0",
        "id": "id",
        "category": "category",
        "mask": "mask",
        "box": "box",
    }
    (source / "relations.jsonl").unlink()
    graph, _ = imported(tmp_path, {"objects": table})
    (item,) = graph.instances(0)
    assert item.bbox == ((50, 30, 2, 20) if kind == "runs" else CUP)


def test_a_relation_finds_its_pictures_by_the_annotations_of_a_coco_file(tmp_path: Path) -> None:
    coco.write(tmp_path / "source")
    path = tmp_path / "source" / "annotations" / "instances.json"
    content = json.loads(path.read_text())
    for annotation in content["annotations"]:
        del annotation["track_id"]
    content["relations"] = [{"subject": 12, "predicate": "holds", "object": 11}]
    write_json(path, content)
    table = {"subject": "subject", "predicate": "predicate", "object": "object"}
    table = {"file": "annotations/instances.json", "list": "relations", **table}
    graph, _ = imported(tmp_path, {"tool": "coco", "relations": table, "complete": ["objects", "relations"]})
    assert [(row.source.category, row.start, row.end) for row in graph.relations()] == [("left hand", 1, 2)]
    assert len(graph.objects) == 6
    assert graph.coverage.covers_layer("relations")


def test_pictures_of_several_sizes_are_videos_of_one_frame(tmp_path: Path) -> None:
    coco.write(tmp_path / "source")
    write_pictures(tmp_path / "source" / "images" / "clip", 1, (WIDTH // 2, HEIGHT // 2))
    report = import_graphs("table", tmp_path / "source", tmp_path / "graphs", map="coco")
    assert (report.videos, report.lost) == (3, {})
    reason = "annotations/instances.json: it was drawn on NxN px, frames are NxN"
    assert report.tally.lost[reason] == 2, "the file says another size than the picture has"
    assert len(list(SceneGraph(tmp_path / "graphs"))) == 3


@pytest.mark.parametrize("section", ["objects", "relations", "activities"])
def test_a_table_without_the_unit_of_its_moments_is_refused(tmp_path: Path, section: str) -> None:
    path = write_map(tmp_path / "map.yaml", {**MAP, section: {**MAP[section], "frames": None}})
    with pytest.raises(ConfigError, match=rf"map.yaml: {section}: has no `frames`.*Fix: write `frames: seconds`"):
        load_map(path)


def test_frames_of_a_folder_are_named_by_their_pictures_and_timed_by_the_rate(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_pictures(source / "clip_1", 10)
    (source / "boxes.csv").write_text("clip,picture,label,x,y,w,h\nclip_1,0003.jpg,cup,1,1,5,5\n")
    (source / "steps.csv").write_text("clip,name,from,to\nclip_1,Brew,0.5,0.9\n")
    objects = {**MAP["objects"], "frame": "picture", "frames": "names"}
    del objects["id"]
    steps = {"file": "steps.csv", "name": "name", "start": "from", "end": "to", "frames": "seconds"}
    graph, report = imported(tmp_path, {"objects": objects, "process_steps": steps, "fps": 10.0})
    assert graph.boxes(2)
    assert [(row.name, row.start, row.end) for row in graph.steps()] == [("Brew", 5, 9)]
    path = write_map(tmp_path / "map.yaml", {"objects": objects, "process_steps": steps})
    report = import_graphs("table", source, tmp_path / "again", map=path)
    assert [reason for reason in report.tally.lost if "give `fps` in the map" in reason]


Odd = Callable[[Path], None]


def _append(name: str, text: str) -> Odd:
    def change(source: Path) -> None:
        with (source / name).open("a") as file:
            file.write(text)

    return change


def _bom(source: Path) -> None:
    for name in ("boxes.csv", "relations.jsonl", "more.json"):
        (source / name).write_bytes(b"\xef\xbb\xbf" + (source / name).read_bytes())


def _relation(**fields: Any) -> Odd:
    return _append("relations.jsonl", json.dumps({**HOLDS, **fields}) + "\n")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_bom, None),
        (_append("boxes.csv", "\nclip_1,14,c,,50,30,20,20"), "boxes.csv: it has no category"),
        (
            _append("boxes.csv", "\nclip_1,14,c,Coffee cup,50,30,0,20"),
            "boxes.csv: a box [N.N, N.N, N.N, N.N] has no area",
        ),
        (_append("boxes.csv", "\nclip_1,14,c,Coffee cup,500,300,20,20"), "is not on the NxN frame"),
        (_append("boxes.csv", "\nclip_1,14,c,Coffee cup,a,30,20,20"), "a number of its box is missing or wrong"),
        (_append("boxes.csv", "\nclip_1,14"), "it has no mask, and no box of four numbers"),
        (_append("boxes.csv", "\nclip_9,1,c,cup,50,30,20,20"), "not exactly one video below the source is named"),
        (
            _append("boxes.csv", "\nclip_1,0,c,Coffee cup,50,30,20,20"),
            "frame -N, counted from N, is not among the video's N",
        ),
        (_append("boxes.csv", "\nclip_1,41,c,Coffee cup,50,30,20,20"), "counted from N, is not among the video's N"),
        (_append("boxes.csv", "\nclip_1,1.5,c,Coffee cup,50,30,20,20"), "a frame is not a whole number"),
        (_append("boxes.csv", "\nclip_1,11,c,Coffee cup,50,30,20,20"), "its object has another shape on the frame"),
        (_append("boxes.csv", "\nclip_1,14,c,lid,50,30,20,20"), "is 'Coffee cup' on another frame"),
        (_append("relations.jsonl", '{"clip": "clip_1", "who":'), "relations.jsonl: no JSON record"),
        (_relation(who="x"), "relations.jsonl: object 'x' is not in the video"),
        (_relation(who="c"), "relations.jsonl: its subject is its object"),
        (_relation(to=3), "relations.jsonl: it ends before it begins"),
        (_relation(does=""), "relations.jsonl: it has no predicate"),
        (_relation(**{"from": None}), "relations.jsonl: a number of its from is missing or wrong"),
        (_relation(**{"from": 0}), "counted from N, is not among the video's N"),
    ],
)
def test_a_bad_record_costs_itself_and_is_counted(change: Odd, reason: str | None, tmp_path: Path) -> None:
    change(write_source(tmp_path / "source"))
    graph, report = imported(tmp_path)
    assert (report.videos, len(graph.objects), len(list(graph.relations()))) == (1, 2, 1)
    lost = +report.tally.lost
    assert sum(lost.values()) == (reason is not None), lost
    assert all(reason is None or reason in label for label in lost), lost
    assert report.is_whole == (reason is None)
    in_relations = reason is not None and reason.startswith("relations")
    assert graph.coverage.covers_category("coffee cup", 10, 13) or not in_relations


def test_losses_are_named_beside_the_graph_and_end_the_command_with_1(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source")
    _append("boxes.csv", "\nclip_1,12,d,cup,50,30,0,20\nclip_9,1,c,cup,50,30,20,20")(source)
    arguments = ["import-graph", str(source), "--from", "table", "--map", write_map(tmp_path / "map.yaml")]
    done = invoke(cli.app, [*arguments, "--out", str(tmp_path / "graphs"), "--no-progress"])
    assert done.exit_code == 1
    assert "(first: boxes.csv: line 9)" in done.output
    notes = json.loads((tmp_path / "graphs" / "clip_1" / "notes.json").read_text())
    assert notes["lost"] == ["boxes.csv: line 8: a box [50.0, 30.0, 0.0, 20.0] has no area"]
    (graph,) = SceneGraph(tmp_path / "graphs")
    assert graph.coverage.covers_category("coffee cup", 10, 11)
    assert not graph.coverage.covers_category("coffee cup", 11, 12), "something of that frame was lost"


def test_questions_come_out_of_imported_tables(tmp_path: Path) -> None:
    source, out = write_source(tmp_path / "source"), str(tmp_path / "graphs")
    sections = ["objects", "attributes", "relations", "activities", "process_steps"]
    path = write_map(tmp_path / "map.yaml", {**MAP, "complete": sections})
    done = invoke(
        cli.app, ["import-graph", str(source), "--from", "table", "--map", path, "--out", out, "--no-progress"]
    )
    assert done.exit_code == 0, done.output
    assert invoke(cli.app, ["validate", out, "--strict", "--no-progress"]).exit_code == 0
    done = invoke(cli.app, ["build", "--source", out, "--dry-run", "--no-progress"])
    assert done.exit_code == 0, done.output
    for config in ("relations", "activity", "grounding"):
        assert config in done.output


def test_a_table_with_semicolons_or_tabs_is_read_and_an_unknown_predicate_is_named(tmp_path: Path) -> None:
    for separator in (";", "\t"):
        folder = tmp_path / f"with {ord(separator)}"
        source = write_source(folder / "source")
        (source / "boxes.csv").write_text("\n".join(BOXES).replace(",", separator))
        (source / "relations.jsonl").write_text(json.dumps({**HOLDS, "does": "grips"}))
        graph, report = imported(folder)
        assert len(graph.instances((0, 40))) == 6
        assert report.is_whole
        assert report.tally.taken["relations kept as they are: grips"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"tool": "cvat"}, "Invalid enum value 'cvat' - at `$.tool`"),
        ({}, "has neither `tool` nor `objects`"),
        ({"objects": {"file": "a.csv", "frame": "f", "category": "c", "video": "v"}}, "neither `box` nor `mask`"),
        ({"objects": {"file": "a.csv", "frame": "f", "category": "c", "box": "b"}}, "has no `video`"),
        (with_table("relations", subjct="a"), "unknown field `subjct`"),
    ],
)
def test_the_message_about_an_unreadable_map_gives_the_reason(
    content: dict[str, Any], message: str, tmp_path: Path
) -> None:
    source = write_source(tmp_path / "source")
    with pytest.raises(ConfigError) as raised:
        import_graphs("table", source, tmp_path / "graphs", map=write_map(tmp_path / "map.yaml", content))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (with_table("objects", file="nowhere.csv"), "nowhere.csv"),
        (
            with_table("objects", category="class"),
            "no column 'class'. Fix: name for `category` in the map one of clip, frame",
        ),
        (with_table("activities", list="acts"), "no list at 'acts'"),
        (with_table("objects", file="../boxes.csv"), "is refused because of '..'"),
    ],
)
def test_a_table_that_is_not_there_ends_the_import(content: dict[str, Any], message: str, tmp_path: Path) -> None:
    source = write_source(tmp_path / "source")
    with pytest.raises(DataError) as raised:
        import_graphs("table", source, tmp_path / "graphs", map=write_map(tmp_path / "map.yaml", content))
    assert message in str(raised.value)


def test_the_reader_needs_a_map_and_the_others_take_none(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source")
    with pytest.raises(ConfigError, match="add --map coco"):
        import_graphs("table", source, tmp_path / "graphs")
    with pytest.raises(ConfigError, match="leave --map out"):
        import_graphs("pvsg", source, tmp_path / "graphs", map="coco")
    with pytest.raises(ConfigError, match="no file cocoo"):
        import_graphs("table", source, tmp_path / "graphs", map="cocoo")


def test_a_second_import_passes_over_videos_and_another_map_is_told_from_the_first(tmp_path: Path) -> None:
    source, out = write_source(tmp_path / "source"), tmp_path / "graphs"
    first = import_graphs("table", source, out, map=write_map(tmp_path / "map.yaml"))
    assert import_graphs("table", source, out, map=write_map(tmp_path / "map.yaml")).resumed == first.videos
    with pytest.raises(DataError, match="was imported from other annotations"):
        import_graphs("table", source, out, map=write_map(tmp_path / "map.yaml", {"objects": MAP["objects"]}))


def test_terms_of_the_map_go_along(tmp_path: Path) -> None:
    write_source(tmp_path / "source")
    terms = {"title": "Ours", "licence": "cc0-1.0", "licence_note": "All.", "citation": "", "homepage": ""}
    imported(tmp_path, {**MAP, "terms": terms})
    assert yaml.safe_load((tmp_path / "graphs" / "terms.yaml").read_text()) == terms


def test_an_attribute_without_a_value_is_left_out_and_an_unknown_object_is_named(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source")
    colors = [{"thing": "c", "color": ""}, {"thing": "b99", "color": "white"}]
    write_json(source / "more.json", {**MORE, "colors": colors})
    _, report = imported(tmp_path)
    assert report.tally.left_out["attributes without a value"] == 1
    assert [reason for reason in report.tally.lost if "object 'b" in reason and "is in no video" in reason]


def test_boxes_in_fractions_that_are_read_as_pixels_are_lost_with_the_key_to_set(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source")
    lines = (source / "boxes.csv").read_text().splitlines()
    (source / "boxes.csv").write_text("\n".join([*lines, "clip_1,14,c,Coffee  cup,.5,.3,.2,.2"]))
    _, report = imported(tmp_path)
    assert any("unit: fractions" in reason for reason in report.tally.lost)
