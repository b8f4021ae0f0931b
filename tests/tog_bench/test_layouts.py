"""Other layouts than ours: V-STaR's, and the converting function that the documentation shows."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from barista_bench.benchmarks.tog_bench import TSTVG, open_release
from barista_bench.benchmarks.tog_bench.release import TaskRecord
from tests.answering import read

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
    facts = release.video_records["clip_1"]
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
    assert [p.key.partition(".")[0] for p in release.problems] == [f"[{n}]" for n in range(1, 8)]
    assert all("left out" in p.what for p in release.problems)
    assert "is described otherwise" in release.problems[3].what


@pytest.mark.parametrize("content", [[7], {"videos": []}, [], "1", [{**V_STAR, "answer": ...}]])
def test_a_file_in_no_known_layout_is_a_problem_with_the_remedy(write: Write, content: Any) -> None:
    if isinstance(content, list) and content and isinstance(content[0], dict):
        content = [{key: value for key, value in content[0].items() if value is not ...}]
    release = open_release(write(content))
    assert release.tasks == ()
    (problem,) = release.problems
    assert "neither in our format nor in V-STaR's" in problem.what
    assert "docs/tog_bench.md" in str(problem)


def test_numbers_written_as_text_and_ids_that_are_numbers_are_read(write: Write) -> None:
    written = {**V_STAR, "vid": 12, "width": "200", "fps": "25", "timestamps": ["2", 4]}
    task = only(write({"first": written}, "V_STaR_test.json"))
    assert (task.id, task.video, task.objects[0].intervals) == ("12/0001", "12", [(2.0, 4.0)])


DOCS = (Path(__file__).resolve().parents[2] / "docs" / "tog_bench.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)


def test_the_annotations_that_the_documentation_shows_are_read(write: Write) -> None:
    release = open_release(write(blocks("json")[0]))
    assert not release.problems
    assert [item.kind for item in release.tasks[0].task.objects] == ["implicit", "explicit"]


def test_the_function_in_the_documentation_converts_the_layout_that_it_names(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    lamp = {"name": "lamp", "spans": [{"start": 30, "end": 90}], "tube": {"60": [0.5, 0.5, 0.25, 0.5]}}
    task = {"task_id": 7, "text": "Read.", "type": "imp", "explicit_objects": [], "implicit_objects": [lamp]}
    folder = write({"scene_1": {"size": [200, 100], "fps": 30, "tasks": [task]}}, "theirs.json")
    monkeypatch.chdir(folder)
    exec(blocks("python")[0], {})
    (folder / "theirs.json").unlink()
    task_record = only(folder)
    assert (task_record.id, task_record.video, task_record.kind) == ("7", "scene_1", "implicit")
    assert task_record.objects[0].intervals == [(1.0, 3.0)]
    assert [(b.time, b.box) for b in task_record.objects[0].boxes] == [(2.0, (100.0, 50.0, 150.0, 100.0))]


def test_the_answer_that_the_documentation_shows_is_read_without_loss() -> None:
    task = TSTVG(options={"matcher": "exact"})
    inputs = {"instruction": "Go.", "times": [0.0, 4.0, 8.0, 12.0], "duration": 40.0}
    answer = read(task, blocks("json")[1], inputs | {"frame_width": 1296, "frame_height": 968})
    sink, faucet = cast("Any", answer.value["objects"])
    assert (answer.dropped, sink["intervals"], faucet["intervals"]) == (0, [], [[12, 20], [31, 35]])
    assert faucet["boxes"][0]["box"] == pytest.approx([410, 220, 530, 341], abs=1)


def test_the_task_has_the_options_and_defaults_that_the_documentation_lists() -> None:
    section = DOCS.partition("## How it is scored")[2]
    listed = dict(re.findall(r"^\| `(\w+)` \| `?([^`|]+?)`? \|", section, re.MULTILINE))
    assert listed == {name: str(option.default) for name, option in TSTVG.options.items()}
