"""Submissions in which log, figures, settings and dataset disagree are refused; honest ones are taken."""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.status import Status
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.errors import BaristaError
from barista_bench.judging.judge_folder import VERDICTS_FILE
from barista_bench.judging.scoring import score_judged
from barista_bench.runs.log.inputs import digest, sample_keys
from barista_bench.runs.log.sample_log import LOG_FILE, SampleRecord
from barista_bench.runs.run_folder import CONFIG_FILE, JUDGE_FILE, judge_folders
from barista_bench.runs.score.results import write_results
from barista_bench.runs.score.scoring import read_scored, score
from tests.hub.conftest import run_of
from tests.hub.forging import (
    Forgery,
    Records,
    contents,
    edit,
    first,
    forge_log,
    more,
    other,
    read_log,
    submit,
    write_log,
)
from tests.hub.made_results import judged, results
from tests.judging.judges import VQA

RELATIONS = "barista", "relations"


@pytest.fixture
def run(honest_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest_run, tmp_path / "run"))


def test_the_honest_run_is_taken_says_that_it_is_self_reported_and_is_not_written_to(
    run: Path, honest_data: Path
) -> None:
    before = contents(run)
    for dataset in (None, honest_data):
        (entry,) = submit(run, dataset=dataset).eval_results().root
        assert "self-reported; 95% interval" in str(entry.notes)
        assert "2 repetition(s)" in str(entry.notes)
    assert contents(run) == before


def test_a_limited_run_is_taken_on_request_and_marked(honest_data: Path, tmp_path: Path) -> None:
    run_of(honest_data, tmp_path / "run", "relations", lambda *_: "[]", limit=3)
    with pytest.raises(BaristaError, match=r"cut to 3 examples"):
        submit(tmp_path / "run", dataset=honest_data)
    (entry,) = submit(tmp_path / "run", dataset=honest_data, allow_incomplete=True).eval_results().root
    assert str(entry.notes).startswith("INCOMPLETE: cut to 3 examples")


def _another_metric(metrics: dict[str, Any]) -> dict[str, Any]:
    *_, name = (name for name in metrics if name != "micro_f1")
    return {**metrics, name: {"mean": 0.9, "std": 0.0, "repetitions": [0.9, 0.9], "low": 0.9, "high": 0.9}}


METRICS: list[tuple[str, object]] = [
    ("metrics", _another_metric),
    ("metrics.micro_f1.mean", more),
    ("metrics.micro_f1.low", more),
    ("metrics", lambda metrics: {"micro_f1": metrics["micro_f1"]}),
    ("breakdowns", first(first(lambda cell: {**cell, "metric": {**cell["metric"], "mean": 0.99}}))),
    ("details", lambda details: details[::-1]),
    ("coverage.answered", lambda answered: answered - 1),
    ("repetitions", 3),
    ("options", {"matcher": "exact"}),
    ("generation.temperature", 0.0),
    ("prompts.wording", "release@4086ce5"),
    ("dataset.content_hash", "ab" * 32),
    ("dataset.examples", 1),
    ("model.revision", "c" * 40),
    ("model.box_format.order", "yxyx"),
    ("barista_bench", "0.0.1"),
]


@pytest.mark.full
@pytest.mark.parametrize(("field", "value"), METRICS, ids=[f"{n}-{field}" for n, (field, _) in enumerate(METRICS)])
def test_edited_results_are_refused(run: Path, field: str, value: object) -> None:
    before = json.loads((run / "results.json").read_text())
    edit(run / "results.json", field, value)
    assert json.loads((run / "results.json").read_text()) != before, "nothing was forged"
    with pytest.raises(BaristaError, match=r"results\.json: .*Fix"):
        submit(run, allow_incomplete=True)


def right_answers(data: Path) -> Callable[[str, int], str]:
    task, examples = get_task(*RELATIONS), open_examples(data, *RELATIONS).examples
    right = {example.example_id: task.reference_answer(example, BoxFormat()) for example in examples}
    return lambda example_id, seed: right[example_id]


def rekeyed(folder: Path, record: SampleRecord, **changes: Any) -> SampleRecord:
    """The record with a change, and with the key of the changed record."""
    record = other(record, **changes)
    identity = json.loads((folder / CONFIG_FILE).read_text())["identity"]
    model = {name: value for name, value in identity["model"].items() if name != "box_format"}
    key = sample_keys(model, identity["generation"])(record.example_id, record.fingerprint, record.repetition)
    return other(record, key=key)


def wrong(record: SampleRecord) -> bool:
    return record.text == "[]"


def _answers_of_another_example(folder: Path) -> None:
    records = read_log(folder / LOG_FILE)
    good = next(record for record in records if not wrong(record))
    names = {record.example_id for record in records if wrong(record)}
    forged = [
        rekeyed(folder, good, example_id=r.example_id, repetition=r.repetition) if wrong(r) else r for r in records
    ]
    assert names
    write_log(folder / LOG_FILE, forged)


def _answers_of_another_model(folder: Path) -> None:
    records = read_log(folder / LOG_FILE)
    key = sample_keys({"name": "a/better"}, {})(records[0].example_id, records[0].fingerprint, 0)
    write_log(folder / LOG_FILE, [*records, other(records[0], key=key)])


def _a_damaged_line(folder: Path) -> None:
    lines = (folder / LOG_FILE).read_bytes().splitlines(keepends=True)
    (folder / LOG_FILE).write_bytes(b"".join([lines[0].replace(b'"key"', b'"kez"'), *lines[1:]]))


def _a_second_rank(folder: Path) -> None:
    """Better answers in a log of another process, which is read first."""
    records = read_log(folder / LOG_FILE)
    good = next(record.text for record in records if not wrong(record))
    (folder / LOG_FILE).rename(folder / "samples-1.jsonl")
    write_log(folder / "samples-0.jsonl", [other(record, text=good) for record in records if wrong(record)])


LOGS: dict[str, Forgery] = {
    "a run left out": forge_log(lambda records: [r for r in records if r.repetition == 0]),
    "wrong answers left out": forge_log(lambda records: [r for r in records if not wrong(r)]),
    "wrong answers as failures": forge_log(
        lambda records: [other(r, status=Status.INFRA_ERROR, text=None, error="no") if wrong(r) else r for r in records]
    ),
    "examples changed": forge_log(lambda records: [other(r, example_id=records[0].example_id) for r in records]),
    "an unknown example": forge_log(lambda records: [*records, other(records[0], example_id="no such", key="k")]),
    "answers of another example": _answers_of_another_example,
    "a run's answers twice": forge_log(
        lambda records: [other(r, repetition=1) for r in records if r.repetition == 0] + records
    ),
    "a second answer first": forge_log(lambda records: [other(records[0], text="[ ]"), *records]),
    "a second log": _a_second_rank,
    "answers of another model": _answers_of_another_model,
    "other questions": forge_log(lambda records: [other(r, fingerprint="f" * 64) for r in records]),
    "a damaged line": _a_damaged_line,
}


def settings(field: str, value: object) -> Forgery:
    return lambda folder: edit(folder / CONFIG_FILE, field, value)


def fitting(field: str, value: object, **cut: Any) -> Forgery:
    """A limit or split that leaves wrong answers out, with the hash of the examples that are left."""

    def forge(folder: Path) -> None:
        data = json.loads((folder / CONFIG_FILE).read_text())["data"]["absolute_path"]
        edit(folder / CONFIG_FILE, field, value)
        edit(folder / CONFIG_FILE, "identity.content_hash", open_examples(data, *RELATIONS, **cut).content_hash)

    return forge


SETTINGS: dict[str, Forgery] = {
    "fewer runs": settings("repetitions", 1),
    "limit and hash": fitting("data.limit", 3, limit=3),
    "split and hash": fitting("identity.split", "test", split="test"),
    "examples": settings("identity.content_hash", "ab" * 32),
    "revision": settings("identity.model.revision", "c" * 40),
    "temperature": settings("identity.generation.temperature", 0.0),
    "task version": settings("identity.task_version", 1),
    "hash of the prompts": settings("identity.prompts_hash", "ab" * 32),
    "name of the wording": settings("prompts.wording", "release@4086ce5"),
    "a wording of another harness": settings("prompts.wording", "recorded:00000000"),
}


@pytest.mark.full
@pytest.mark.parametrize("rescored", [False, True], ids=["stale", "rescored"])
@pytest.mark.parametrize("name", [*LOGS, *SETTINGS])
def test_forged_logs_and_settings_are_refused_scored_again_or_not(run: Path, name: str, rescored: bool) -> None:
    before = contents(run)
    (LOGS | SETTINGS)[name](run)
    assert contents(run) != before, "nothing was forged"
    if rescored:
        with suppress(BaristaError):
            score(run)
    with pytest.raises(BaristaError, match="Fix"):
        submit(run)


def test_the_order_of_boxes_is_part_of_the_question_of_a_run_with_boxes(small_release: Path, tmp_path: Path) -> None:
    data = build(small_release, tmp_path / "d", configs=["grounding"], sampling={"frame_step": 20}, cache=False).folder
    run = run_of(data, tmp_path / "run", "grounding", lambda *_: "[]")
    assert submit(run).rows
    settings("identity.model.box_format.order", "yxyx")(run)
    score(run)
    with pytest.raises(BaristaError, match=r"run\.json: identity\.prompts_hash: is .*Fix"):
        submit(run)


def test_edited_answers_are_refused_without_scoring_them(run: Path, honest_data: Path) -> None:
    """Scored again they are a run like any other: that no model wrote them is nowhere to be seen."""
    right = right_answers(honest_data)
    forge_log(lambda records: [other(r, text=right(r.example_id, 0)) for r in records])(run)
    with pytest.raises(BaristaError, match=r"results\.json: .*Fix"):
        submit(run)


def test_a_forgery_is_also_refused_when_called_incomplete(run: Path) -> None:
    _answers_of_another_example(run)
    score(run)
    with pytest.raises(BaristaError, match=r"line \d+: answers another question than the run's"):
        submit(run, allow_incomplete=True)


def test_a_dataset_with_other_answers_is_refused_by_the_published_one(
    run: Path, honest_data: Path, tmp_path: Path
) -> None:
    """Edited truth with a fitting hash: the run itself contradicts nothing."""
    forged = Path(shutil.copytree(honest_data, tmp_path / "forged"))
    for path in (forged / "relations").glob("*.parquet"):
        table = pq.read_table(path)
        rows = table.to_pylist()
        for line in rows:
            line["target"] = {name: [] for name in line["target"]}
        pq.write_table(type(table).from_pylist(rows, schema=table.schema), path)
    edit(run / CONFIG_FILE, "data.path", str(forged))
    edit(run / CONFIG_FILE, "identity.content_hash", open_examples(forged, *RELATIONS).content_hash)
    score(run)
    with pytest.raises(BaristaError, match=r"was run on examples \w+, and .*barista holds"):
        submit(run, dataset=honest_data)


@pytest.fixture
def run_and_judge(judged_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged_run, tmp_path / "run"))


def test_a_run_with_its_own_judge_is_submitted(run_and_judge: Path) -> None:
    before = contents(run_and_judge)
    (entry,) = submit(run_and_judge).eval_results().root
    assert "maker/judge, 2 verdict(s)" in str(entry.notes)
    assert contents(run_and_judge) == before


def judge_of(run: Path) -> Path:
    (folder,) = judge_folders(run)
    return folder


def in_judge(file: str, field: str, value: object) -> Forgery:
    return lambda run: edit(judge_of(run) / file, field, value)


def forge_verdicts(change: Callable[[Records], Sequence[SampleRecord]]) -> Forgery:
    return lambda run: forge_log(change, VERDICTS_FILE)(judge_of(run))


def best(record: SampleRecord) -> SampleRecord:
    return other(record, text=json.dumps({"score": 10, "reason": "fine"}), logprobs=None)


JUDGE_METRICS: dict[str, Forgery] = {
    "mean": in_judge("results.json", "metrics.mean.mean", more),
    "interval": in_judge("results.json", "metrics.mean.low", None),
    "name of the judge": in_judge("results.json", "judge.name", "maker/better"),
    "copied": lambda run: write_results(judged(results(VQA), value=0.9), judge_of(run) / "results.json"),
    "verdicts": forge_verdicts(lambda records: [best(r) for r in records]),
}
JUDGE_LOGS: dict[str, Forgery] = {
    "verdicts left out": forge_verdicts(lambda records: records[2:]),
    "verdicts on other answers": forge_verdicts(lambda records: [other(r, example_id="item") for r in records]),
    "verdicts by another form": forge_verdicts(lambda records: [other(r, fingerprint=digest("form")) for r in records]),
    "a verdict more": forge_verdicts(lambda records: [*records, other(records[0], repetition=2, key=digest("more"))]),
    "answers changed later": forge_log(lambda records: [other(r, text="Answer: something else") for r in records]),
    "judge": in_judge(JUDGE_FILE, "identity.model.name", "maker/better"),
    "fewer criteria": in_judge(JUDGE_FILE, "rubric.criteria", lambda criteria: criteria[:1]),
    "name of the rubric": in_judge(JUDGE_FILE, "rubric.wording", "release@4086ce5"),
    "steps": in_judge(JUDGE_FILE, "steps", first(lambda steps: steps[:1])),
    "temperature": in_judge(JUDGE_FILE, "generation.temperature", 0.123),
    "no description": in_judge(JUDGE_FILE, "generation", {"heat": 1}),
}


@pytest.mark.parametrize("name", JUDGE_METRICS)
def test_forged_metrics_of_a_judge_are_refused(run_and_judge: Path, name: str) -> None:
    before = contents(run_and_judge)
    JUDGE_METRICS[name](run_and_judge)
    assert contents(run_and_judge) != before, "nothing was forged"
    with pytest.raises(BaristaError, match="Fix"):
        submit(run_and_judge, allow_incomplete=True)


@pytest.mark.full
@pytest.mark.parametrize("rescored", [False, True], ids=["stale", "rescored"])
@pytest.mark.parametrize("name", JUDGE_LOGS)
def test_forged_verdicts_are_refused_scored_again_or_not(run_and_judge: Path, name: str, rescored: bool) -> None:
    before = contents(run_and_judge)
    JUDGE_LOGS[name](run_and_judge)
    assert contents(run_and_judge) != before, "nothing was forged"
    if rescored:
        with suppress(BaristaError):
            score(run_and_judge)
        with suppress(BaristaError):
            score_judged(read_scored(run_and_judge, options={}), judge_of(run_and_judge))
    with pytest.raises(BaristaError, match="Fix"):
        submit(run_and_judge)
