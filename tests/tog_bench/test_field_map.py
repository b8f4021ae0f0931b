"""Other layouts through field maps: the official release, once it is there, should need nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from barista_bench.benchmarks.tog_bench import TSTVG, open_release
from barista_bench.benchmarks.tog_bench.annotations import TaskRecord
from barista_bench.benchmarks.tog_bench.field_map import Node, packaged_maps, parse_field_map
from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Prediction
from barista_bench.errors import ConfigError, DataError

Write = Callable[..., Path]

V_STAR = {
    "vid": "clip_1",
    "domain": "Daily",
    "fps": 25.0,
    "width": 200,
    "height": 100,
    "frame_count": 500,
    "question": "What is on the table?",
    "answer": "laptop",
    "timestamps": [2.0, 4.0],
    "bboxes": [
        {"timestamp": t, "frame_index": 25 * t, "xmin": 10, "ymin": 20, "xmax": 60, "ymax": 80} for t in (2, 3, 4)
    ],
}


def only(folder: Path) -> TaskRecord:
    release = open_release(folder)
    assert not release.problems, list(map(str, release.problems))
    (placed,) = release.tasks
    return placed.task


def test_v_star_files_are_read_as_they_are(write: Write) -> None:
    folder = write([V_STAR, {**V_STAR, "question": "And behind it?"}], "V_STaR_test.json")
    release = open_release(folder)
    assert not release.problems
    assert [p.task.id for p in release.tasks] == ["clip_1/0001", "clip_1/0002"]
    task = release.tasks[0].task
    assert (task.video, task.instruction, task.kind) == ("clip_1", "What is on the table?", "explicit")
    (item,) = task.objects
    assert (item.category, item.intervals) == ("laptop", [(2.0, 4.0)])
    assert [(b.time, b.box) for b in item.boxes] == [(float(t), (10, 20, 60, 80)) for t in (2, 3, 4)]
    facts = release.facts["clip_1"]
    assert (facts.width, facts.height, facts.fps, facts.frame_count) == (200, 100, 25.0, 500)


def test_a_broken_record_costs_that_record_and_is_named(write: Write) -> None:
    broken = [
        {**V_STAR, "timestamps": [2.0]},
        {**V_STAR, "bboxes": [{"timestamp": 2}]},
        {**V_STAR, "width": "wide"},
        {**V_STAR, "fps": 30.0},
        {**V_STAR, "answer": None},
        7,
        {**V_STAR, "timestamps": [2, float(10**13)]},
    ]
    release = open_release(write([V_STAR, *broken]))
    assert len(release.tasks) == 1
    assert [p.key for p in release.problems] == [f"[{n}]" for n in range(1, 8)]
    assert all("left out" in p.what for p in release.problems)
    assert "says other things of the video" in release.problems[3].what


# What the official release might look like: each row a layout, its map, and what it holds.
LISTS_BY_KIND = (
    {
        "scene0707_00": {
            "meta": {"size": [1296, 968], "fps": 30},
            "tasks": [
                {
                    "task_id": 12,
                    "text": "Turn on the water.",
                    "type": "imp",
                    "explicit_objects": [],
                    "implicit_objects": {
                        "faucet": {"spans": [{"s": 60, "e": 120}], "tube": {"60": [0.5, 0.5, 0.25, 0.5]}},
                    },
                }
            ],
        }
    },
    """
    name: ours
    records: "*.tasks.*"
    video:
      id: ^^@
      width: ^^.meta.size.0
      height: ^^.meta.size.1
      fps: ^^.meta.fps
    task:
      id: task_id
      instruction: text
      kind: {at: type, values: {exp: explicit, imp: implicit}}
    objects:
      - {at: explicit_objects, many: true, kind: {value: explicit}, category: "@",
         intervals: {at: spans}, boxes: {at: tube}}
      - at: implicit_objects
        many: true
        kind: {value: implicit}
        category: "@"
        intervals: {at: spans, many: true, start: s, end: e, unit: frames}
        boxes: {at: tube, time: "@", unit: frames, box: "", order: xywh, scale: 1}
    """,
    ("12", "implicit", "faucet", [(2.0, 4.0)], [(2.0, (648.0, 484.0, 972.0, 968.0))]),
)
READ = {"q": "t1", "file": "clips/a.mkv", "w": 100, "h": 50, "say": "Read."}
ROWS = (
    "\n".join(
        json.dumps(row)
        for row in (
            {**READ, "obj": "lamp", "t0": "0:02", "t1": "0:04", "track": [["0:02", 500, 250, 1000, 500]]},
            {**READ, "obj": "book", "t0": "0:01", "t1": "0:05", "track": [["0:03", 0, 0, 500, 500]]},
        )
    ),
    """
    name: rows
    records: "*"
    grouped: true
    video: {id: {at: file, stem: true, add: .mkv}, width: w, height: h}
    task: {id: q, instruction: say, kind: {value: implicit}}
    objects:
      - category: obj
        intervals: {at: "", start: t0, end: t1, unit: clock}
        boxes: {at: track, time: "0", unit: clock, box: ["1", "2", "3", "4"], order: yxyx, scale: 1000}
    """,
    ("t1", "implicit", "lamp", [(2.0, 4.0)], [(2.0, (25.0, 25.0, 50.0, 50.0))]),
)  # fmt: skip
CENTRES = (
    {
        "data": [
            {
                "v": {"name": "a", "wh": ["640", "480"]},
                "instruction": "Sit down.",
                "target": {"label": "chair", "alt": ["seat"], "ms": [1500, 2500], "uid": 9},
                "track": [{"at": 2000, "c": [320, 240, 64, 48]}],
            }
        ]
    },
    """
    name: centres
    records: data.*
    video: {id: v.name, width: v.wh.0, height: v.wh.1, scene: {value: Office}}
    task: {instruction: instruction, kind: {value: explicit}}
    objects:
      - at: target
        category: label
        synonyms: alt
        id: uid
        intervals: {at: ms, unit: milliseconds}
        boxes: {at: ^.track, time: at, box: c, order: cxcywh, unit: milliseconds}
    """,
    ("a/0001", "explicit", "chair", [(1.5, 2.5)], [(2.0, (288.0, 216.0, 352.0, 264.0))]),
)


@pytest.mark.parametrize(("layout", "field_map", "wanted"), [LISTS_BY_KIND, ROWS, CENTRES])
def test_another_layout_needs_a_map_and_no_code(write: Write, layout: Any, field_map: str, wanted: Any) -> None:
    write(field_map, "field_map.yaml")
    task = only(write(layout, "official.jsonl" if isinstance(layout, str) else "official.json"))
    item = task.objects[0]
    boxes = [(b.time, b.box) for b in item.boxes]
    assert (task.id, task.kind, item.category, item.intervals, boxes) == wanted


def test_records_of_one_task_are_joined_and_those_that_disagree_are_named(write: Write) -> None:
    layout, field_map, _ = ROWS
    write(field_map, "field_map.yaml")
    task = only(write(layout, "rows.jsonl"))
    assert (task.video, [item.category for item in task.objects]) == ("a.mkv", ["lamp", "book"])
    third = {**json.loads(layout.splitlines()[0]), "say": "Write."}
    release = open_release(write(f"{layout}\n{json.dumps(third)}\n", "rows.jsonl"))
    assert [p.key for p in release.problems] == ["[2]"]
    assert len(release.tasks[0].task.objects) == 2


def test_our_own_files_are_read_as_they_are_beside_a_field_map(write: Write) -> None:
    from tests.tog_bench.conftest import content

    write(content())
    assert len(open_release(write(CENTRES[1], "field_map.yaml")).tasks) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [", "is no YAML"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("name: x", "missing required field"),
        (CENTRES[1].replace("category:", "categry:"), "unknown field `categry`"),
        (CENTRES[1].replace("order: cxcywh", "order: zigzag"), "Invalid enum value 'zigzag'"),
        (CENTRES[1].replace("scene: {value: Office}", "scene: {}"), "either `at`, a path, or `value`"),
        (CENTRES[1].replace("name: centres", "name: centres\n    grouped: true"), "grouped records need task.id"),
        ("!!python/object/apply:os.system ['true']", "is no YAML"),
        ("- " * 50_000, "nested too deeply"),
        ("x" * 1_100_000, "larger than"),
    ],
)
def test_a_field_map_that_cannot_be_used_is_refused_by_name(write: Write, text: str, message: str) -> None:
    write(CENTRES[0])
    folder = write(text, "field_map.yaml")
    with pytest.raises(ConfigError, match=r"field_map\.yaml") as caught:
        open_release(folder)
    assert message in str(caught.value)
    assert "Remedy" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("category: label", "category: ^^^^^^.x"),
        ("category: label", "category: __class__"),
        ("category: label", "category: label.upper"),
        ("category: label", "category: alt"),
        ("synonyms: alt", "synonyms: label"),
        ("box: c,", "box: at,"),
        ("unit: milliseconds}\n", "unit: frames}\n"),
        ("unit: milliseconds}\n", "unit: clock}\n"),
        ("{value: explicit}", "{at: instruction, values: {Stand up.: explicit}}"),
        ("category: label", "category: " + "a." * 30 + "a"),
    ],
)
def test_a_path_that_leads_nowhere_is_a_problem_of_the_record_and_not_an_error(
    write: Write, old: str, new: str
) -> None:
    assert old in CENTRES[1]
    write(CENTRES[1].replace(old, new), "field_map.yaml")
    release = open_release(write(CENTRES[0]))
    assert release.tasks == ()
    (problem,) = release.problems
    assert problem.key in ("data[0]", "task a/0001")


def test_paths_go_down_by_key_and_index_and_up_by_carets() -> None:
    value = {"a": [{"b": 5}, {"b": 6}], "c": {"x": {"d": 1}, "y": {"d": 2}}}
    found = list(Node(value).each("a.*"))
    assert [node.at("b").value for node in found] == [5, 6]
    assert found[1].at("@").value == 1
    assert found[0].at("^.1.b").value == 6
    assert found[0].at("^^.c.y.d").value == 2
    assert [node.at("@").value for node in Node(value).each("c.*")] == ["x", "y"]
    assert [node.at("^@").value for node in Node(value).each("c.*.d")] == ["x", "y"]
    for path in ("a.5", "a.-1", "a.x", "z", "^"):
        with pytest.raises(DataError):
            Node(value).at(path)


def test_the_packaged_maps_say_by_which_keys_they_are_known() -> None:
    maps = packaged_maps()
    assert [item.name for item in maps] == ["v_star"]
    assert all(item.recognised_by for item in maps)


def test_a_map_is_read_from_bytes_as_from_a_file() -> None:
    assert parse_field_map(CENTRES[1].encode(), "here").objects[0].boxes.order == "cxcywh"


DOCS = (Path(__file__).resolve().parents[2] / "docs" / "tog_bench.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)


def test_the_annotations_that_the_documentation_shows_are_read(write: Write) -> None:
    release = open_release(write(blocks("json")[0]))
    assert not release.problems
    assert [item.kind for item in release.tasks[0].task.objects] == ["implicit", "explicit"]


def test_the_field_maps_that_the_documentation_shows_read_what_it_says(write: Write) -> None:
    v_star, two_lists = blocks("yaml")
    assert parse_field_map(v_star.encode(), "docs") == packaged_maps()[0]
    lamp = {"name": "lamp", "spans": [{"s": 30, "e": 90}], "tube": {"60": [0.5, 0.5, 0.25, 0.5]}}
    task = {"task_id": 7, "text": "Read.", "type": "imp", "explicit_objects": [], "implicit_objects": [lamp]}
    write({"scene_1": {"size": [200, 100], "fps": 30, "tasks": [task]}})
    found = only(write(two_lists, "field_map.yaml"))
    assert (found.id, found.video, found.kind) == ("7", "scene_1", "implicit")
    assert found.objects[0].intervals == [(1.0, 3.0)]
    assert [(b.time, b.box) for b in found.objects[0].boxes] == [(2.0, (100.0, 50.0, 150.0, 100.0))]


def test_the_answer_that_the_documentation_shows_is_read_without_loss() -> None:
    task = TSTVG(options={"matcher": "exact"})
    inputs = {"times": [0.0, 4.0, 8.0, 12.0], "frame_width": 1296, "frame_height": 968, "duration": 40.0}
    answer = task.parse(blocks("json")[1], inputs, BoxFormat())
    assert isinstance(answer, Prediction)
    sink, faucet = cast("Any", answer.value["objects"])
    assert (answer.dropped, sink["intervals"], faucet["intervals"]) == (0, [], [[12, 20], [31, 35]])
    assert faucet["boxes"][0]["box"] == pytest.approx([410, 220, 530, 341], abs=1)


def test_the_options_and_defaults_that_the_documentation_lists_are_those_of_the_task() -> None:
    listed = dict(
        re.findall(r"^\| `(\w+)` \| `?([^`|]+?)`? \|", DOCS.partition("## How it is scored")[2], re.MULTILINE)
    )
    assert listed == {name: str(option.default) for name, option in TSTVG.options.items()}
