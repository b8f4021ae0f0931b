"""Reading: healthy files exactly, damaged files as far as they go, with every problem named."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barista_bench.errors import DataError
from barista_bench.scene_graph import SceneGraph, VideoGraph, release_bytes, write_release as write_back
from barista_bench.scene_graph.reading import ProblemLog, read_release
from tests.releases import FRAMES, MACHINE, document, span, write_release


def read(root: Path, content: Any = None) -> VideoGraph:
    return SceneGraph(write_release(root, content=content, video=False))["v1"]


def test_a_healthy_file_has_no_problem_and_writing_it_back_loses_nothing(tmp_path: Path) -> None:
    graph = read(tmp_path)
    assert (graph.problems, graph.frame_count, graph.preparation) == ((), FRAMES, "capsule")
    assert json.loads(release_bytes(graph)) == document()
    write_back(graph, tmp_path / "copy")
    assert json.loads((tmp_path / "copy/v1/coco_annotation.json").read_bytes()) == document()
    with pytest.raises(DataError, match="exists already"):
        write_back(graph, tmp_path)


def test_keys_that_the_format_does_not_know_survive_the_round_trip_and_are_named(tmp_path: Path) -> None:
    content = document()
    content["info"] = {"annotator": "x"}
    content["annotations"][3]["confidence"] = 0.5
    content["relations"][1]["note"] = "n"
    graph = read(tmp_path, content)
    assert json.loads(release_bytes(graph)) == content
    keys = [problem.key for problem in graph.problems]
    assert keys == ["annotations[3]", "relations[1]", "info"]
    assert {problem.severity for problem in graph.problems} == {"warning"}


@pytest.mark.full
def test_real_clips_survive_the_round_trip(real_release: Path) -> None:
    graphs = SceneGraph(real_release)
    for graph in graphs:
        source = json.loads((real_release / graph.video_id / "coco_annotation.json").read_bytes())
        assert json.loads(release_bytes(graph)) == source
        assert graph.problems == ()
    assert not graphs.problems


def test_frame_indices_written_as_text_are_read(tmp_path: Path) -> None:
    content = document()
    content["annotations"][0]["image_id"] = "0"
    graph = read(tmp_path, content)
    assert len(graph.instances(0)) == 4
    assert [str(p.key) for p in graph.problems] == ["annotations[0]"]


Breakage = Callable[[dict[str, Any]], None]


def set_annotation(index: int, **values: Any) -> Breakage:
    return lambda content: content["annotations"][index].update(values)


def double_annotation(content: dict[str, Any]) -> None:
    content["annotations"].append(dict(content["annotations"][0]))


BAD_RECORDS: list[tuple[str, Breakage, str, str]] = [
    ("unknown object", set_annotation(0, object_id="o-x"), "annotations[0].object_id", "unknown object id 'o-x'"),
    ("frame past the end", set_annotation(1, image_id=40), "annotations[1].image_id", "past the end (40 frames)"),
    ("frame of 10^12", set_annotation(1, image_id=10**12), "annotations[1].image_id", "Expected `int` <="),
    ("frame of 10^30", set_annotation(1, image_id=10**30), "annotations[1].image_id", "Expected `int` <="),
    ("negative frame", set_annotation(1, image_id=-1), "annotations[1].image_id", "Expected `int` >= 0"),
    ("box of three numbers", set_annotation(2, bbox=[1, 1, 5]), "annotations[2].bbox", "length 4"),
    ("box of text", set_annotation(2, bbox="all"), "annotations[2].bbox", "Expected `array"),
    ("box with NaN", set_annotation(2, bbox=[math.nan, 1, 5, 5]), "annotations[2].bbox[0]", "holds NaN or Infinity"),
    ("box with -Infinity", set_annotation(2, bbox=[1, 1, 5, -math.inf]), "annotations[2].bbox[3]", "NaN or Infinity"),
    ("box with NaN as text", set_annotation(2, bbox=["nan", 1, 5, 5]), "annotations[2].bbox", "is not finite"),
    ("box of 401 digits", set_annotation(2, bbox=[10**400, 1, 5, 5]), "annotations[2].bbox[0]", "Expected `int` <="),
    ("box without an area", set_annotation(2, bbox=[0, 0, 1e200, 1e200]), "annotations[2].bbox", "far too large"),
    ("frame NaN", set_annotation(2, image_id=math.nan), "annotations[2].image_id", "NaN or Infinity"),
    (
        "range to Infinity",
        lambda c: c["relations"][0]["image_ranges"][0].update(image_id_end=math.inf),
        "relations[0].image_ranges[0].image_id_end",
        "NaN or Infinity",
    ),
    (
        "frame rate NaN",
        lambda c: c["video_metadata"][0].update(fps=math.nan),
        "video_metadata[0].fps",
        "not a finite number",
    ),
    (
        "length beyond numbers",
        lambda c: c["video_metadata"][0].update(length_in_ms=10**400),
        "video_metadata[0].length_in_ms",
        "not a finite number",
    ),
    ("annotation that is a list", lambda c: c["annotations"].__setitem__(0, []), "annotations[0]", "Expected `object`"),
    (
        "unknown category",
        lambda c: c["object_id_to_category_id"].update({"o-cup": "c-x"}),
        "object_id_to_category_id['o-cup']",
        "unknown category id 'c-x'",
    ),
    (
        "relation to an unknown object",
        lambda c: c["relations"][0].update(target_object_id="o-x"),
        "relations[0].target_object_id",
        "unknown object id",
    ),
    (
        "attribute range past the end",
        lambda c: c["attributes"][0]["image_ranges"].__setitem__(0, span(0, 10**6)),
        "attributes[0].image_ranges[0]",
        "cut to 40 frames",
    ),
    (
        "relation range backwards",
        lambda c: c["relations"][0]["image_ranges"].append(span(9, 3)),
        "relations[0].image_ranges[1]",
        "has no frame",
    ),
    ("section of the wrong type", lambda c: c.update(relations={}), "relations", "the section is left out"),
]


@pytest.mark.parametrize(("breakage", "key", "what"), [r[1:] for r in BAD_RECORDS], ids=[r[0] for r in BAD_RECORDS])
def test_a_bad_record_costs_that_record_and_is_named(tmp_path: Path, breakage: Breakage, key: str, what: str) -> None:
    content = document()
    breakage(content)
    graph = read(tmp_path, content)
    errors = [problem for problem in graph.problems if problem.severity == "error"]
    assert any(problem.key == key and what in problem.what for problem in errors), errors
    assert all(problem.file == "v1/coco_annotation.json" and problem.remedy for problem in errors)
    # Everything else is still there.
    assert len(graph.instances()) >= 110
    assert len(graph.activities()) + len(graph.attributes()) + len(graph.relations()) >= 4
    with pytest.raises(DataError, match="Fix"):
        SceneGraph(tmp_path, strict=True)["v1"]


def bytes_of(breakage: bytes, by: bytes) -> bytes:
    data = json.dumps(document()).encode()
    assert breakage in data
    return data.replace(breakage, by, 1)


BAD_BYTES = {
    "a number beyond numbers": (bytes_of(b'"bbox": [4.0', b'"bbox": [1e999'), "annotations[0].bbox[0]"),
    "text that is not UTF-8": (bytes_of(b'"Extract coffee"', b'"Extract \xff"'), "process_steps[0]"),
}


@pytest.mark.parametrize(("content", "key"), BAD_BYTES.values(), ids=BAD_BYTES)
def test_mask_bytes_in_a_foreign_form_cost_their_record(tmp_path: Path, content: bytes, key: str) -> None:
    graph = read(tmp_path, content)
    assert [(p.severity, p.key) for p in graph.problems] == [("error", key)]
    assert len(graph.instances()) + len(graph.steps()) == 170


def test_nan_where_no_field_is_typed_costs_nothing_and_is_written_back(tmp_path: Path) -> None:
    content = document()
    content["annotations"][3]["confidence"] = math.nan
    content["annotations"][4]["segmentation"] = [[-math.inf, 1, 2, 3, 4, 5]]
    content["attributes"][1]["value"] = 'NaN, "Infinity" and \\" NaN'
    content["info"] = {"score": [math.inf]}
    graph = read(tmp_path, content)
    assert len(graph.instances()) == 170
    assert {p.severity for p in graph.problems} == {"warning"}
    written, meant = (json.loads(text, parse_constant=str) for text in (release_bytes(graph), json.dumps(content)))
    assert written == meant
    assert [type(rle) for rle in graph.rles(graph.instances(1))].count(DataError) == 1


ODD_RECORDS: list[tuple[str, Breakage, str, str]] = [
    (
        "box outside",
        set_annotation(2, bbox=[200, 0, 5, 5]),
        "annotations[2].bbox",
        "has no area inside the 96x64 frame",
    ),
    ("box of no width", set_annotation(2, bbox=[1, 1, 0, 5]), "annotations[2].bbox", "has no area"),
    ("box over the edge", set_annotation(2, bbox=[-9, 1, 20, 5]), "annotations[2].bbox", "sticks out"),
    ("box that is huge", set_annotation(2, bbox=[0, 0, 1e9, 1e9]), "annotations[2].bbox", "sticks out"),
    (
        "two categories of one name",
        lambda c: c["categories"].append({"id": "c-x", "name": "coffee cup"}),
        "categories[5].name",
        "also the name of categories[1]",
    ),
    (
        "two categories that differ in case",
        lambda c: c["categories"].append({"id": "c-x", "name": "Coffee Cup"}),
        "categories[5].name",
        "also the name of categories[1], 'coffee cup'",
    ),
    ("same object twice", double_annotation, "annotations[170]", "already on frame 0"),
    (
        "activity past the end",
        lambda c: c["activities"][0].update(image_range=span(50, 60)),
        "activities[0].image_range",
        "is not within the 40 frames",
    ),
    (
        "activity without a frame",
        lambda c: c["activities"][0].update(image_range=span(5, 5)),
        "activities[0].image_range",
        "is not within the 40 frames",
    ),
]


@pytest.mark.parametrize(("breakage", "key", "what"), [r[1:] for r in ODD_RECORDS], ids=[r[0] for r in ODD_RECORDS])
def test_an_odd_record_is_kept_and_named(tmp_path: Path, breakage: Breakage, key: str, what: str) -> None:
    content = document()
    breakage(content)
    graph = read(tmp_path, content)
    (problem,) = graph.problems
    assert (problem.severity, str(problem.key)) == ("warning", key)
    assert what in problem.what
    boxes = [tuple(record["bbox"]) for record in content["annotations"] if "bbox" in record]
    assert [graph.boxes(i.frame)[i.object.id] for i in graph.instances() if i.row < 170] == boxes[:170]
    assert (len(graph.instances()), len(graph.activities())) == (len(boxes), len(content["activities"]))


def test_of_two_annotations_of_an_object_the_last_one_counts_by_its_id(tmp_path: Path) -> None:
    content = document()
    first = content["annotations"][0]
    content["annotations"].append({**first, "bbox": [1, 2, 3, 4]})
    graph = read(tmp_path, content)
    assert graph.boxes(first["image_id"])[first["object_id"]] == (1, 2, 3, 4)
    index = [item.id for item in graph.objects].index(first["object_id"])
    assert graph.frames_of(index).tolist().count(first["image_id"]) == 1


def test_ids_are_one_in_every_spelling_of_a_uuid(tmp_path: Path) -> None:
    name = "88acdb91-6a48-5bf4-aef8-195802a88b14"
    content = json.loads(json.dumps(document()).replace('"o-cup"', f'"{name}"'))
    for record in content["annotations"][::2]:
        record["object_id"] = record["object_id"].upper() if record["object_id"] == name else record["object_id"]
    graph = read(tmp_path, content)
    assert graph.problems == ()
    assert [item.id for item in graph.objects].count(name) == 1
    assert len(graph.instances()) == 170


def test_a_range_may_begin_before_the_video(tmp_path: Path) -> None:
    content = document()
    content["relations"][0]["image_ranges"] = [span(-5, 3)]
    graph = read(tmp_path, content)
    assert [relation.row for relation in graph.relations(0)].count(0) == 1
    assert any("cut to 40 frames" in problem.what for problem in graph.problems)


def test_rows_lead_back_to_the_file_after_records_were_left_out(tmp_path: Path) -> None:
    content = document()
    content["annotations"][0]["object_id"] = "o-x"
    content["relations"][0]["target_object_id"] = "o-x"
    graph = read(tmp_path, content)
    assert graph.instances(7)
    assert graph.relations(7)
    for instance in graph.instances(7):
        record = content["annotations"][instance.row]
        assert (record["image_id"], record["object_id"]) == (7, instance.object.id)
    for relation in graph.relations(7):
        assert content["relations"][relation.row]["value"] == relation.value


def test_problems_of_a_hostile_file_are_counted_but_not_all_kept(tmp_path: Path) -> None:
    content = document()
    content["annotations"] = [{"image_id": 0, "object_id": "o-x", "bbox": [0, 0, 1, 1]}] * 5000
    graph = read(tmp_path, content)
    assert len(graph.problems) == 1001
    assert "4000 further" in graph.problems[-1].what


def test_no_number_of_warnings_hides_an_error(tmp_path: Path) -> None:
    content = document()
    content["annotations"] = [{"image_id": 0, "object_id": MACHINE, "bbox": [-9, 0, 20, 9]}] * 1500
    content["relations"][0]["target_object_id"] = "o-x"
    graph = read(tmp_path, content)
    assert [p.key for p in graph.problems if p.severity == "error"] == ["relations[0].target_object_id"]
    with pytest.raises(DataError, match="o-x"):
        SceneGraph(tmp_path, strict=True)["v1"]


def test_videos_come_sorted_and_cached(tmp_path: Path) -> None:
    for video_id in ("b", "a", "c"):
        write_release(tmp_path, video_id, video=False)
    scene = SceneGraph(tmp_path, cache_videos=1)
    assert [graph.video_id for graph in scene.videos(reversed(scene.video_ids))] == ["a", "b", "c"]
    assert scene["a"] is scene["a"]


def test_names_are_read_without_stray_blanks_and_say_so(tmp_path: Path) -> None:
    content = document()
    hand = next(row for row in content["categories"] if row["name"].lower().startswith("right"))
    plain = read(tmp_path / "plain", content).hand_contacts((0, 40))
    hand["name"] = f" {hand['name'].replace(' ', '  ')} "
    graph = read(tmp_path / "blanks", content)
    assert plain
    assert len(graph.hand_contacts((0, 40))) == len(plain)
    assert [problem.what for problem in graph.problems] == [f"the name {hand['name']!r} is read as 'right hand'"]


MARKS = {"BOM": (b"\xef\xbb\xbf", None), "gzip": (b"\x1f\x8b", "compressed"), "UTF-16": (b"\xff\xfe", "UTF-16")}


@pytest.mark.parametrize(("mark", "complaint"), MARKS.values(), ids=MARKS)
def test_the_message_about_a_file_that_is_no_plain_text_names_its_kind(
    tmp_path: Path, mark: bytes, complaint: str | None
) -> None:
    data = mark + json.dumps(document()).encode()
    if complaint is None:
        assert read_release(data, ProblemLog("v1")).release.annotations
        return
    with pytest.raises(DataError, match=f"v1: is {complaint}.*Fix"):
        read_release(data, ProblemLog("v1"))
