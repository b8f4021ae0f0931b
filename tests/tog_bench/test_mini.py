"""Small releases made from scene graphs: the mini kitchen's, and real clips where they lie beside the repository."""

from __future__ import annotations

import json
from collections import Counter
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from barista_bench.benchmarks.tog_bench import BENCHMARK, TSTVG, open_release
from barista_bench.benchmarks.tog_bench.mini import tasks_of_graph
from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Example, Prediction, Scored
from barista_bench.errors import DataError
from barista_bench.scene_graph import SceneGraph

TASK = TSTVG(options={"matcher": "exact"})


def examples(folder: Path) -> list[Example]:
    found = list(TASK.examples(open_release(folder), TASK.sampling))
    assert all(isinstance(item, Example) for item in found)
    return [item for item in found if isinstance(item, Example)]


def test_a_mini_release_keeps_to_the_schema_and_has_no_problem(mini: Path) -> None:
    schema = json.loads(resources.files("barista_bench.benchmarks.tog_bench").joinpath("schema.json").read_bytes())
    jsonschema.validate(json.loads((mini / "annotations.json").read_bytes()), schema)
    assert list(open_release(mini).problems) == []
    assert sorted(path.name for path in mini.glob("*.mp4")) == [f"{v}.mp4" for v in sorted(open_release(mini).facts)]


def test_a_mini_release_has_explicit_and_implicit_tasks_of_one_two_and_more_objects(mini: Path) -> None:
    found = examples(mini)
    groups = Counter((str(e.metadata["kind"]), str(e.metadata["objects"])) for e in found)
    assert set(groups) >= {
        ("explicit", "1"),
        ("explicit", "2"),
        ("implicit", "1"),
        ("implicit", "2"),
        ("implicit", "3+"),
    }
    assert len({e.video_id for e in found}) == 3
    kinds = Counter(str(o["kind"]) for e in found if e.label == "implicit" for o in e.target["objects"])  # type: ignore[union-attr, call-overload, index]
    assert min(kinds["explicit"], kinds["implicit"]) > 0, "implicit tasks also take objects that they name"


def test_intervals_and_boxes_of_a_mini_release_are_those_of_its_scene_graph(kitchen: Path) -> None:
    graph = SceneGraph(kitchen)
    checked = 0
    for task in tasks_of_graph(graph).tasks:
        video = graph[task.video]
        for item in task.objects:
            assert item.id is not None
            for entry in item.boxes:
                x, y, width, height = video.boxes(round(entry.time * 30))[item.id]
                assert entry.box == (x, y, x + width, y + height)
                assert entry.time.is_integer()
                assert any(start <= entry.time <= end for start, end in item.intervals)
                checked += 1
            contacts = [r for r in video.relations() if r.target.id == item.id and r.type == "human_actions"]
            if task.kind == "explicit":
                assert contacts, "explicit tasks are about what hands use"
                starts = {round(r.start / 30, 3) for r in contacts}
                assert any(start in starts for start, _ in item.intervals)
    assert checked > 100


def test_what_an_instruction_names_is_one_object_of_its_video(kitchen: Path) -> None:
    graph = SceneGraph(kitchen)
    tasks = tasks_of_graph(graph).tasks
    assert {task.kind for task in tasks} == {"explicit", "implicit"}
    for task in tasks:
        if task.kind == "explicit":
            count = Counter(item.category for item in graph[task.video].objects)
            for item in task.objects:
                assert item.category in task.instruction
                if count[item.category] > 1:
                    assert f"the {item.category}" not in task.instruction, "a colour tells which is meant"


def test_a_mini_release_is_the_same_every_time(kitchen: Path, mini: Path, tmp_path: Path) -> None:
    assert BENCHMARK.write_mini is not None
    BENCHMARK.write_mini(kitchen, tmp_path / "again")
    for path in mini.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_a_folder_that_holds_something_is_not_overwritten(kitchen: Path, mini: Path) -> None:
    assert BENCHMARK.write_mini is not None
    with pytest.raises(DataError, match="is not empty"):
        BENCHMARK.write_mini(kitchen, mini)


def test_the_oracle_reaches_100_on_a_mini_release(mini: Path) -> None:
    assert_oracle(examples(mini))


def test_tasks_over_real_clips_are_read_asked_and_scored(real_release: Path, tmp_path: Path) -> None:
    assert BENCHMARK.write_mini is not None
    BENCHMARK.write_mini(real_release, tmp_path / "real")
    assert list(open_release(tmp_path / "real").problems) == []
    found = examples(tmp_path / "real")
    assert len(found) >= 10
    assert {e.metadata["objects"] for e in found} >= {"1", "2"}
    assert_oracle(found)


def assert_oracle(found: list[Example]) -> None:
    samples = []
    for example in found:
        prediction = TASK.parse(TASK.reference_answer(example, BoxFormat()), example.inputs, BoxFormat())
        assert isinstance(prediction, Prediction)
        samples.append(Scored(example, prediction))
    shares = {name: value for name, value in TASK.aggregate(samples).items() if isinstance(value, float)}
    assert shares == pytest.approx(dict.fromkeys(shares, 1.0), abs=1e-9)
