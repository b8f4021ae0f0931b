"""A reward equals the score that `score` computes of the same answer, for any answer."""

import json
import random
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError, DataError
from barista_bench.models.predictions_file import FORMAT
from barista_bench.rewards import TaskReward, task_reward
from barista_bench.runs.score.scoring import score
from barista_bench.testing import HOSTILE_ANSWERS
from barista_bench.testing.hostile_answers import damaged_forms
from barista_bench.training.exporting import PARQUET, export_training_set
from barista_bench.training.reward_rows import read_reference, why_untrainable, write_reference
from barista_bench.training.task_rewards import floors_of
from tests.conformance.task_examples import SMALL, TASKS, Releases, options_of
from tests.conftest import MadeOnce
from tests.one_run import run

GRID = BoxFormat()
TRAINABLE = [kind for kind in TASKS if not why_untrainable(kind())]
LOGGED = 1000
every_task = pytest.mark.parametrize("kind", TRAINABLE, ids=lambda kind: f"{kind.benchmark}-{kind.name}")


@pytest.fixture(scope="module")
def releases(source_of: Callable[[str], Path]) -> Releases:
    return Releases(source_of)


@pytest.fixture(scope="module")
def relations(built: Path) -> list[Example]:
    return list(open_examples(built, "barista", "relations", split="train").examples)[:4]


def reward_of(kind: type[Task], **settings: Any) -> TaskReward:
    return task_reward(kind.name, benchmark=kind.benchmark, options=options_of(kind), **settings)


def answers_about(task: Task, examples: list[Example], seed: int) -> Iterator[str]:
    """Right, random, damaged and hostile answers; none with reasoning, which a log stores elsewhere."""
    rng, example = random.Random(seed), examples[seed % len(examples)]
    right = task.reference_answer(example, GRID)
    several = (task.random_answer(example, rng, GRID) for _ in range(LOGGED))
    others = (task.reference_answer(other, GRID) for other in examples)
    forms = [right, *others, *damaged_forms(right), *damaged_forms(task.random_answer(example, rng, GRID))]
    written = dict.fromkeys(chain(forms, HOSTILE_ANSWERS, islice(several, 200)))
    return (text for text in written if "think>" not in text and "\ud800" not in text)


@pytest.mark.full
@every_task
def test_rewards_equal_the_sample_scores_of_logged_answers(
    kind: type[Task], source_of: Callable[[str], Path], made_once: MadeOnce, tmp_path: Path
) -> None:
    sampling = {"limit": 20, **SMALL.get(kind.name, {})}
    settings: dict[str, Any] = {"configs": (kind.name,), "cache": False, "progress": False, "sampling": sampling}
    data = made_once(
        f"rewarded/{kind.benchmark}/{kind.name}",
        lambda out: build(source_of(kind.benchmark), out, benchmark=kind.benchmark, **settings),
    )
    task = get_task(kind.benchmark, kind.name)
    asked = open_examples(data, kind.benchmark, kind.name, split="all").examples
    examples = [example for example in asked if task.has_answer(example)]
    repetitions = -(-LOGGED // len(examples))
    with (tmp_path / "answers.jsonl").open("w") as file:
        file.write(json.dumps({"format": FORMAT, "box_format": str(GRID)}) + "\n")
        for index, example in enumerate(examples):
            texts = list(answers_about(task, examples, index))
            random.Random(index).shuffle(texts)
            for repetition in range(repetitions):
                line = {"example_id": example.example_id, "answer": texts[repetition % len(texts)]}
                file.write(json.dumps({**line, "repetition": repetition}) + "\n")
        for example in asked:
            if not task.has_answer(example):  # asked and not scored
                file.write(json.dumps({"example_id": example.example_id, "answer": ""}) + "\n")
    settings = {"benchmark": kind.benchmark, "task": kind.name, "option": options_of(kind), "progress": False}
    models = {f"predictions:{tmp_path / 'answers.jsonl'}": repetitions, "chance": 2, "oracle": 1, "prior": 1}
    if len(examples) < len(asked):  # the oracle knows no hidden answer
        del models["oracle"]
    reward, compared, seen = reward_of(kind), 0, set()
    for number, (model, repeated) in enumerate(models.items()):
        run(data, tmp_path / str(number), model=model, repetitions=repeated, **settings)
        samples = score(tmp_path / str(number)).samples
        references = [read_reference(write_reference(sample.example, task, GRID)) for sample in samples]
        parts = reward.parts([sample.record.text or "" for sample in samples], references)
        for sample, each in zip(samples, parts, strict=True):
            assert each is not None
            assert each["score"] == sample.scores[task.sample_score], sample.record.text
            assert each["parsed"] == (sample.prediction is not None)
            seen.add(each["score"])
        compared += len(samples)
        if model == "oracle":
            assert all(each and each["format"] == each["score"] == 1 for each in parts)
    assert compared > LOGGED
    assert len(seen) > 1


@pytest.mark.full
@every_task
def test_no_answer_raises_and_every_reward_is_a_fraction(kind: type[Task], releases: Releases) -> None:
    task, reward = kind(options=options_of(kind)), reward_of(kind)
    example = next(example for example in releases.examples(kind) if task.has_answer(example))
    texts = [*HOSTILE_ANSWERS, *damaged_forms(task.reference_answer(example, GRID)), "<think>x", "\ud800"]
    rows = [write_reference(example, task, GRID)] * len(texts)
    rewards = reward(completions=[[{"role": "assistant", "content": text}] for text in texts], reference=rows)
    assert all(value is not None and 0 <= value <= 1 for value in rewards)
    assert rewards == [reward(completions=[text], reference=rows[:1])[0] for text in texts]


def test_a_reward_is_the_weighted_mean_of_its_parts(relations: list[Example]) -> None:
    task, example = get_task("barista", "relations"), relations[0]
    right, row = task.reference_answer(example, GRID), write_reference(example, task, GRID)
    answers = {
        "right": right,
        "fenced": f"```json\n{right}\n```",
        "in prose": f"It is {right}",
        "prose": "a cup",
        "": "",
    }
    logged: dict[str, float] = {}
    reward = task_reward("relations", weights={"format": 1, "parsed": 1, "score": 2})
    rewards = reward(
        prompts=[[]] * 5, completions=list(answers.values()), reference=[row] * 5, trainer_state=None,
        log_metric=logged.__setitem__,
    )  # fmt: skip
    assert dict(zip(answers, rewards, strict=True)) == {"right": 1, "fenced": 1, "in prose": 0.75, "prose": 0, "": 0}
    assert logged == {"relations/format": 0.4, "relations/parsed": 0.6, "relations/score": 0.6, "relations/earned": 0.6}
    assert reward.__name__ == "relations"


def test_reasoning_is_no_part_of_an_answer(relations: list[Example]) -> None:
    task, example = get_task("barista", "relations"), relations[0]
    right, row = task.reference_answer(example, GRID), write_reference(example, task, GRID)
    turns = [[{"role": "assistant", "content": [{"type": "text", "text": f"<think>[]</think>{right}"}]}], []]
    assert task_reward("relations")(completions=turns, reference=[row, row]) == [1, 0]


def test_rows_of_other_tasks_have_no_reward(relations: list[Example]) -> None:
    row = write_reference(relations[0], get_task("barista", "relations"), GRID)
    assert task_reward("grounding")(completions=["[]"], reference=[row]) == [None]


def test_rows_of_another_version_are_refused(relations: list[Example], monkeypatch: pytest.MonkeyPatch) -> None:
    task = get_task("barista", "relations")
    row = write_reference(relations[0], task, GRID)
    monkeypatch.setattr(type(task), "version", task.version + 1)
    with pytest.raises(ConfigError, match="Fix: export the rows again"):
        task_reward("relations")(completions=["[]"], reference=[row])
    with pytest.raises(DataError, match="Fix: take the rows"):
        task_reward("relations")(completions=["[]"], reference=["{}"])


@pytest.mark.parametrize(
    ("name", "benchmark", "weights", "message"),
    [
        ("mask_tracking", "extended", {"score": 1}, "no text answers it"),
        ("relations", "barista", {"truth": 1}, "no part 'truth'"),
        ("relations", "barista", {"score": -1}, "give no mean"),
        ("relations", "barista", {}, "give no mean"),
    ],
)
def test_a_reward_that_says_nothing_is_refused(name: str, benchmark: str, weights: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        task_reward(name, benchmark=benchmark, weights=weights)


@pytest.mark.full
def test_naming_all_choices_earns_the_reward_of_a_blind_choice(releases: Releases) -> None:
    (kind,) = (kind for kind in TRAINABLE if (kind.benchmark, kind.name) == ("handyvqa", "objects"))
    task, reward = kind(), reward_of(kind)
    for example in releases.examples(kind):
        everything = "ANSWER: " + ", ".join(task.choices(example))
        right, row = task.reference_answer(example, GRID), write_reference(example, task, GRID)
        best, listed = reward.parts([right, everything], [read_reference(row)] * 2)
        assert best is not None
        assert best["score"] == best["earned"] == 1
        assert listed is not None
        assert listed["score"] > 0
        assert listed["earned"] == 0.5


@pytest.mark.full
@pytest.mark.parametrize("name", ["temporal_scene_graph", "step_segmentation"])
def test_listing_entries_again_lowers_the_reward(name: str, releases: Releases) -> None:
    (kind,) = (kind for kind in TRAINABLE if kind.name == name)
    task, reward, example = kind(), reward_of(kind), releases.examples(kind)[0]
    right = json.loads(task.reference_answer(example, GRID))
    entries = next(iter(right.values())) if isinstance(right, dict) else right
    random.Random(0).shuffle(entries)
    longer = entries + [task_entry for _ in range(3) for task_entry in entries]
    row = read_reference(write_reference(example, task, GRID))
    full, listed = reward.parts([json.dumps(each) for each in (entries, longer)], [row] * 2)
    assert full is not None
    assert full["earned"] == full["score"] == 1
    assert listed is not None
    assert listed["earned"] <= listed["score"]
    assert listed["earned"] < 0.3, listed


@pytest.mark.full
@pytest.mark.parametrize("name", ["rvos_objects", "step_segmentation", "temporal_scene_graph"])
def test_references_of_other_videos_earn_no_reward(name: str, releases: Releases) -> None:
    (kind,) = (kind for kind in TRAINABLE if kind.name == name)
    task, reward = kind(), reward_of(kind)
    examples = [example for example in releases.examples(kind) if task.has_answer(example)][:8]
    answers = [task.reference_answer(example, GRID) for example in examples]
    for example, floor in zip(examples, floors_of(task, examples), strict=True):
        earned = []
        for known in (0.0, floor):
            row = read_reference(write_reference(example, task, GRID, known))
            earned.append([parts["earned"] if parts else None for parts in reward.parts(answers, [row] * len(answers))])
        others = [n for n, other in enumerate(examples) if other.video_id != example.video_id]
        assert floor == np.quantile([earned[0][n] for n in others], 0.97, method="higher")
        assert all(earned[1][n] == 0 for n in others if earned[0][n] <= floor)
        assert earned[1][examples.index(example)] == (floor < 1)


@pytest.mark.full
def test_a_right_letter_earns_the_supported_part_of_its_rationale(releases: Releases) -> None:
    (kind,) = (kind for kind in TRAINABLE if kind.name == "cot")
    task, reward, supported = kind(), reward_of(kind), 0
    for example in filter(task.has_answer, releases.examples(kind)):
        right = task.reference_answer(example, GRID)
        reasons, letter = right.rsplit("\n", 1)
        wrong = next(label for label in task.choices(example) if label not in task.correct_choices(example))
        false = f"1. At 00:00:00.100 the right hand holds the zebra at 99:00:00.\n{letter}"
        echo = f"{task.prompt(example, GRID).as_text()}\n{letter}"
        texts = [right, f"{reasons}\nANSWER: {wrong}", letter, false, echo]
        row = read_reference(write_reference(example, task, GRID, *floors_of(task, [example])))
        parts = [each or {} for each in reward.parts(texts, [row] * len(texts))]
        assert [each["grounded"] for each in parts[1:4]] == [0, 0, 0]
        full, *others = (each["earned"] for each in parts)
        assert others == [0, 0, 0, 0]
        supported += bool(full)
    assert supported


def test_prompts_show_no_reference(built: Path, tmp_path: Path) -> None:
    done = export_training_set(built, tmp_path / "out", "prompts", tasks=["relations", "grounding"], box_format=GRID)
    rows = datasets.Dataset.from_parquet(str(tmp_path / "out" / PARQUET), cache_dir=str(tmp_path / "cache"))
    assert len(rows) == done.rows
    assert rows.column_names == ["example_id", "images", "prompt", "reference"]
    names = ("relations", "grounding")
    sets = [open_examples(built, "barista", name, split="train").examples for name in names]
    trained = {example.example_id: example for example in chain(*sets)}
    for row in rows:
        reference = read_reference(row["reference"])
        example, task = trained.pop(row["example_id"]), get_task("barista", reference.task)
        assert reference.example == example
        parts = [part for turn in row["prompt"] for part in turn["content"]]
        own = [part for turn in task.prompt(example, GRID).messages() for part in turn["content"]]
        assert [part["text"] for part in parts] == [part.get("text") for part in own]
        assert len(row["images"]) == sum(part["type"] == "image" for part in parts)
    assert not trained
