"""Annotations in our format: the schema, the reader, and the cost of each mistake."""

import copy
import json
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from barista_bench.benchmarks.tog_bench import open_release
from barista_bench.benchmarks.tog_bench.release import AnnotationFile, TogRelease
from barista_bench.scene_graph.shown_format import record_schema
from tests.tog_bench.conftest import Content, box, content

Write = Callable[..., Path]
SCHEMA: dict[str, Any] = json.loads(
    resources.files("barista_bench.benchmarks.tog_bench").joinpath("schema.json").read_bytes()
)


def ids(release: TogRelease) -> list[str]:
    return [placed.task.id for placed in release.tasks]


def changed(*path: str | int, to: object) -> Content:
    """The usual content with another value, or without it where `to` is ..."""
    made: Any = content()
    parent = made
    for step in path[:-1]:
        parent = parent[step]
    if to is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = to
    return made


def test_the_packaged_schema_is_the_records() -> None:
    head = {name: SCHEMA[name] for name in ("$schema", "title")}
    exported = {**head, **json.loads(json.dumps(record_schema(AnnotationFile)))}
    assert exported == SCHEMA, "write schema.json again: json.dump(exported, file, indent=2)"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_file_that_keeps_to_the_schema_is_read_without_a_problem(write: Write) -> None:
    jsonschema.validate(content(), SCHEMA)
    release = open_release(write(content()))
    assert list(release.problems) == []
    assert ids(release) == ["a/0", "b/0", "b/1"], "by video, then as in the file"
    assert [(p.file, p.row) for p in release.tasks] == [("annotations.json", row) for row in (1, 0, 2)]
    assert release.video_records["room_b"].scene == "Bathroom"
    assert release.tasks[1].task.objects[1].synonyms == ["tap"]


def test_the_reader_takes_all_files_of_a_folder_or_one_file(write: Write, tmp_path: Path) -> None:
    folder = write(content())
    other = content()
    other["tasks"] = [{**other["tasks"][0], "id": "b/9"}]
    write(other, "more.json")
    write("{}", "_draft.json")
    assert ids(open_release(folder)) == ["a/0", "b/0", "b/1", "b/9"]
    assert ids(open_release(folder / "more.json")) == ["b/9"]
    assert open_release(folder / "more.json", tmp_path).videos == tmp_path
    assert open_release(folder).video_path("room_a") == (folder / "room_a.mp4").resolve()


WRONG: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("tasks", 0, "instruction"), ..., "tasks[0]: Object missing required field `instruction`"),
    (("tasks", 0, "instruction"), "  ", "tasks[0].instruction"),
    (("tasks", 0, "kind"), "both", "tasks[0].kind: Invalid enum value"),
    (("tasks", 0, "video"), "room_c", "tasks[0].video"),
    (("tasks", 0, "note"), "x", "tasks[0]: Object contains unknown field `note`"),
    (("tasks", 0, "objects"), [], "tasks[0].objects: Expected `array` of length >= 1"),
    (("tasks", 0, "objects", 0, "category"), " ", "tasks[0].objects[0].category"),
    (("tasks", 0, "objects", 0, "intervals"), [[5, 1]], "tasks[0].objects[0].intervals[0]"),
    (("tasks", 0, "objects", 0, "intervals"), [[0, 1, 2]], "intervals[0]: Expected `array` of length 2"),
    (("tasks", 0, "objects", 0, "intervals"), [["0", "1"]], "intervals[0][0]: Expected `float`, got `str`"),
    (("tasks", 0, "objects", 0, "boxes"), [], "tasks[0].objects[0].boxes: Expected `array` of length >= 1"),
    (("tasks", 0, "objects", 0, "boxes", 3), box(3, 9, 9, 9, 20), "tasks[0].objects[0].boxes[3]"),
    (("tasks", 0, "objects", 0, "boxes", 3), box(3, 97, 0, 99, 9), "tasks[0].objects[0].boxes[3]"),
    (("tasks", 0, "objects", 0, "boxes", 3), box(2, 0, 0, 9, 9), "tasks[0].objects[0].boxes[3]"),
    (("tasks", 0, "objects", 0, "boxes", 3), box(-1, 0, 0, 9, 9), "boxes[3].time: Expected `float` >= 0"),
    (("tasks", 0, "objects", 0, "boxes", 3), box(60, 0, 0, 9, 9), "tasks[0].objects[0]"),
]


@pytest.mark.parametrize(("path", "value", "where"), WRONG)
def test_a_mistake_in_a_task_costs_that_task_and_is_named(
    write: Write, path: tuple[str | int, ...], value: object, where: str
) -> None:
    release = open_release(write(changed(*path, to=value)))
    assert ids(release) == ["a/0", "b/1"]
    (problem,) = release.problems
    assert problem.severity == "error"
    assert where in f"{problem.key}: {problem.what}"
    assert problem.file == "annotations.json"
    assert problem.remedy


def test_the_schema_checks_every_rule_that_a_schema_can_state() -> None:
    for path, value, where in WRONG:
        if ": " in where:
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(changed(*path, to=value), SCHEMA)


def test_a_video_that_cannot_be_used_costs_its_tasks(write: Write) -> None:
    release = open_release(write(changed("videos", 0, "id", to="../room_b")))
    assert ids(release) == ["a/0"]
    assert [p.key for p in release.problems] == ["videos[0].id", "tasks[0].video", "tasks[2].video"]
    assert ids(open_release(write(changed("videos", 0, "width", to=0)))) == ["a/0"]


def test_boxes_are_cut_at_the_frame_and_sorted_by_time_and_the_same_box_twice_is_one(write: Write) -> None:
    boxes = [box(8, -5, 0, 50, 70), box(4, 1, 1, 9, 9), box(4.0001, 1, 1, 9, 9)]
    release = open_release(write(changed("tasks", 2, "objects", 0, "boxes", to=boxes)))
    track = release.tasks[2].task.objects[0].boxes
    assert [(b.time, b.box) for b in track] == [(4.0, (1, 1, 9, 9)), (8.0, (0, 0, 50, 64))]
    assert [(p.severity, p.key) for p in release.problems] == [("warning", "tasks[2].objects[0].boxes[0]")]


def test_boxes_outside_of_all_intervals_and_kinds_that_disagree_are_warned_of(write: Write) -> None:
    made = changed("tasks", 2, "objects", 0, "boxes", to=[box(4, 1, 1, 9, 9), box(9, 1, 1, 9, 9)])
    made["tasks"][1]["objects"][0]["kind"] = "implicit"
    release = open_release(write(made))
    assert {p.severity for p in release.problems} == {"warning"}
    assert [p.key for p in release.problems] == ["tasks[1].kind", "tasks[2].objects[0].boxes"]
    assert len(release.tasks) == 3


def test_a_task_whose_id_is_taken_is_left_out(write: Write) -> None:
    made = content()
    made["tasks"].append(copy.deepcopy(made["tasks"][0]))
    release = open_release(write(made))
    assert ids(release) == ["a/0", "b/0", "b/1"]
    assert [p.key for p in release.problems] == ["tasks[3].id"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        '{"format": "tog_bench", "version": 2, "videos": [], "tasks": []}',
        '{"format": "tog_bench", "version": 1, "videos": {}, "tasks": []}',
        '{"format": "tog_bench", "version": 1, "videos": [], "tasks": [], "extra": 1}',
        '{"tasks": [1, 2]}',
        "NaN",
        "[]",
    ],
)
def test_a_file_that_cannot_be_used_is_left_out_and_named(write: Write, text: str) -> None:
    write(content())
    release = open_release(write(text, "broken.json"))
    assert len(release.tasks) == 3
    (problem,) = release.problems
    assert (problem.severity, problem.file) == ("error", "broken.json")
    assert "Fix" in str(problem)


def test_a_video_that_two_files_describe_otherwise_keeps_the_tasks_of_the_first(write: Write) -> None:
    other = changed("videos", 0, "width", to=960)
    other["tasks"] = [{**task, "id": f"z{task['id']}"} for task in other["tasks"]]
    write(content())
    release = open_release(write(other, "more.json"))
    assert ids(release) == ["a/0", "za/0", "b/0", "b/1"]
    assert release.video_records["room_b"].width == 96
    assert [(p.file, p.key) for p in release.problems] == [("more.json", "videos")]


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("junk", [None, 1e308, "\ud83d", [], {"a": 1}])
def test_a_bad_value_anywhere_loses_only_its_record(tmp_path: Path, junk: object) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    file = folder / "annotations.json"
    for path in places(content()):
        if path and not (path[-2:-1] == ("boxes",) and path[-1] not in (0, 1)):
            file.write_text(json.dumps(changed(*path, to=junk)), encoding="utf-8")
            release = open_release(folder)
            assert all(problem.remedy and problem.what for problem in release.problems), path
            assert all(item.boxes for placed in release.tasks for item in placed.task.objects)


def test_messages_about_a_file_do_not_grow_with_it(write: Write) -> None:
    problems = open_release(write(changed("version", to=int("9" * 4000)))).problems
    assert problems
    assert all(len(str(problem)) < 1000 for problem in problems)
