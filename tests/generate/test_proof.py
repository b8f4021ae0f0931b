"""An evaluator without the generator's code proves every generated item from the raw annotation file: statements hold
or do not, texts say the statements, and releases ask proved questions."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks import BENCHMARKS, get_task
from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.generate.generator import generate
from tests.folders import content
from tests.generate.raw_proof import proved
from tests.generate.raw_texts import reads, unsaid
from tests.generate.raw_video import RawVideo

FAMILIES = ("vista", "handyvqa", "tog_bench", "egocot")

Line = dict[str, Any]


def lines_of(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def faults(source: Path, folder: Path, families: tuple[str, ...]) -> Iterator[str]:
    """Statements of a generated folder's items that the raw files do not prove."""
    videos: dict[str, RawVideo] = {}
    for family in families:
        for item in lines_of(folder / f"{family}.items.jsonl"):
            video_id = item["video_id"]
            if video_id not in videos:
                videos[video_id] = RawVideo(source / video_id / "coco_annotation.json")
            yield from unsaid(videos[video_id], item)
            for said, expected in said_of(item):
                truth = proved(videos[video_id], said)
                if truth is not expected:
                    yield f"{family}/{item['id']}: {json.dumps(said)} should be {expected}, is {truth}"


def said_of(item: Line) -> Iterator[tuple[Line, bool]]:
    """Pairs (statement, expected truth) of all given statements and all choices."""
    yield from ((said, True) for said in item["given"])
    yield from ((choice["statement"], at in item["correct"]) for at, choice in enumerate(item["choices"]))


Asked = tuple[str, tuple[str, ...]]
"""A question as a release asks it, and the texts shown to choose from, in order."""


ASKED_IN = ("question", "query", "instruction")
"""Columns that hold the question; ViSTa has none."""


def of_items(path: Path) -> list[tuple[Asked, tuple[str, ...] | None]]:
    """Questions, by the file of their items' evidence, with the right texts; ViSTa's questions are its sets'
    questions."""
    rows: list[tuple[Asked, tuple[str, ...] | None]] = []
    for item in lines_of(path):
        texts = tuple(choice["text"] for choice in item["choices"])
        rights = tuple(sorted(texts[at] for at in item["correct"]))
        question = "" if path.name.startswith("vista") else item["question"]
        is_shown = not path.name.startswith("tog") and not item["subtask"].startswith("rvos")
        rows.append(((question, texts if is_shown else ()), rights))
    return rows


def of_release(folder: Path, family: str) -> list[tuple[Asked, tuple[str, ...] | None]]:
    """Questions, as `build` reads the release, with the right texts; None where the release hides them."""
    benchmark = BENCHMARKS[family]
    assert benchmark.open_release is not None
    release = benchmark.open_release(folder / family, None)
    assert not any(problem.severity == "error" for problem in release.problems)
    rows: list[tuple[Asked, tuple[str, ...] | None]] = []
    for name in ["all"] if family == "vista" else [task.name for task in benchmark.tasks]:
        task = get_task(family, name)
        for example in task.examples(release, task.sampling):
            assert isinstance(example, Example), example
            question = next((str(example.inputs[key]) for key in ASKED_IN if key in example.inputs), "")
            rows.append(((question, tuple(task.choices(example).values())), _rights(task, example)))
    return rows


def _rights(task: Task, example: Example) -> tuple[str, ...] | None:
    if not task.has_answer(example):
        return None
    choices, target = task.choices(example), dict[str, Any](example.target)
    if choices:
        return tuple(sorted(choices[label] for label in task.correct_choices(example) or target["labels"]))
    if "phrases" in target:
        return tuple(sorted(target["phrases"]))
    return tuple(sorted(item["category"] for item in target["objects"]))


def differing(folder: Path, families: tuple[str, ...]) -> Iterator[str]:
    """What releases ask otherwise than the files of what their items rest on."""
    for family in families:
        items, built = of_items(folder / f"{family}.items.jsonl"), of_release(folder, family)
        for row, count in (Counter(asked for asked, _ in items) - Counter(asked for asked, _ in built)).items():
            yield f"{family}: {count} x not in the release: {row}"
        known = Counter(row for row in built if row[1] is not None)
        assert known
        yield from (f"{family}: other right answers: {row}" for row in known - Counter(items))
        if len(items) != len(built):
            yield f"{family}: {len(items)} items, {len(built)} in the release"
    # Options of a question with masks for answers are not shown.
    stated = {item["id"]: item for item in lines_of(folder / "handyvqa.items.jsonl")} if "handyvqa" in families else {}
    for record in (row for path in (folder / "handyvqa").glob("rvos_*.jsonl") for row in lines_of(path)):
        item = stated[record["id"]]
        if (record["options"], record["correct_idx"]) != ([c["text"] for c in item["choices"]], item["correct"]):
            yield f"handyvqa: other options: {record['id']}"


@pytest.mark.parametrize("family", FAMILIES[1:])
@pytest.mark.full
def test_a_sample_of_the_kitchen_is_proved_and_its_release_asks_proved_questions(
    small_kitchen: Path, generated: Callable[[str], Path], family: str
) -> None:
    folder = generated(family).parent
    assert not list(faults(small_kitchen, folder, (family,)))
    assert not list(differing(folder, (family,)))


@pytest.mark.full
def test_the_proof_fails_where_a_wrong_choice_is_called_right(
    small_kitchen: Path, generated: Callable[[str], Path]
) -> None:
    items = lines_of(generated("egocot").parent / "egocot.items.jsonl")
    videos = {item["video_id"]: RawVideo(small_kitchen / item["video_id"] / "coco_annotation.json") for item in items}
    for item in items:
        for at, choice in enumerate(item["choices"]):
            assert proved(videos[item["video_id"]], choice["statement"]) is (at in item["correct"])


@pytest.mark.full
def test_no_other_text_is_read_as_the_statement_of_a_choice(
    small_kitchen: Path, generated: Callable[[str], Path]
) -> None:
    for item in lines_of(generated("egocot").parent / "egocot.items.jsonl"):
        video = RawVideo(small_kitchen / item["video_id"] / "coco_annotation.json")
        for choice, other in combinations(item["choices"], 2):
            assert not reads(video, choice["statement"], other["text"], item["question"])
            assert not reads(video, other["statement"], choice["text"], item["question"])


@pytest.mark.full
@pytest.mark.parametrize("source", ["small_kitchen", "real_release"])
def test_all_of_the_kitchen_and_of_the_real_clips_is_proved(
    request: pytest.FixtureRequest, tmp_path: Path, source: str
) -> None:
    graphs = request.getfixturevalue(source)
    generate(graphs, tmp_path / "all", FAMILIES)
    assert not list(faults(graphs, tmp_path / "all", FAMILIES))
    assert not list(differing(tmp_path / "all", FAMILIES))


@pytest.mark.full
@pytest.mark.usefixtures("ready_workers")
def test_generating_again_on_two_processes_gives_the_same_bytes(
    small_kitchen: Path, generated: Callable[[str], Path], tmp_path: Path
) -> None:
    """The items that the session generated of each family from one kitchen, perhaps in another process."""
    for family in FAMILIES:
        generate(small_kitchen, tmp_path / family, [family], per_subtask=4, num_proc=2)
        once = content(generated(family).parent)
        assert once
        assert content(tmp_path / family) == once
