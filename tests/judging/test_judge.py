"""Judging a run: each distinct answer once, every reply with its status, figures as done by hand."""

import contextlib
import io
import itertools
import json
import math
import re
import runpy
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.errors import ConfigError
from barista_bench.judging.rubric import load_rubric
from barista_bench.judging.scoring import score_judged
from barista_bench.judging.session import judge
from barista_bench.models import Completion, Failure, Request, TokenLogprob
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner
from barista_bench.runs.log.sample_log import read_records
from barista_bench.runs.score.scoring import score
from tests.judging.conftest import never
from tests.judging.judges import ONE_CRITERION, VQA, ScriptedJudge, by_hash, criterion, judged, material, verdict
from tests.judging.test_injection import ATTACKS


def example_ids(run: Path) -> list[str]:
    return sorted({record.example_id for record in read_records(run / "samples.jsonl")})


def test_every_published_aggregate_equals_a_sum_done_by_hand(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA)
    asked = use(ScriptedJudge(by_hash))
    results = judged(run, verdicts_per_answer=3)
    # By hand: criterion -> run -> example -> mean over draws, only from the scripted scores.
    scores: dict[tuple[str, str], list[int]] = {}
    for request in asked.requests:
        given = [json.loads(by_hash(request, draw).text)["score"] for draw in range(3)]
        scores[material(request)["answer"], criterion(request)] = given
    samples = score(run).samples
    per_run: dict[int, dict[str, list[float]]] = {}
    for sample in samples:
        for name in ("accuracy", "completeness"):
            listed = scores[str(sample.prediction.value["answer"]), name]
            per_run.setdefault(sample.record.repetition, {}).setdefault(name, []).append(sum(listed) / 3 / 10)
    for name in ("accuracy", "completeness"):
        means = [statistics.fmean(per_run[number][name]) for number in (0, 1)]
        assert results.metrics[name].repetitions == pytest.approx(means)
        assert results.metrics[name].mean == pytest.approx(statistics.fmean(means))
        assert results.metrics[name].std == pytest.approx(statistics.stdev(means))
        variances = [statistics.variance(values) for (_, criterion_), values in scores.items() if criterion_ == name]
        assert results.sd_of_verdicts[name] == pytest.approx(math.sqrt(statistics.fmean(variances)) / 10)
    pairs = [zip(*per_run[number].values(), strict=True) for number in (0, 1)]
    assert results.metrics["mean"].repetitions == pytest.approx(
        [statistics.fmean(map(statistics.fmean, p)) for p in pairs]
    )
    labels = {sample.example.label for sample in samples}
    assert set(results.per_category) == labels
    for label in labels:
        listed = [
            statistics.fmean(scores[str(s.prediction.value["answer"]), "accuracy"]) / 10
            for s in samples
            if s.example.label == label and s.record.repetition == 1
        ]
        assert results.per_category[label].metrics["accuracy"].repetitions[1] == pytest.approx(statistics.fmean(listed))
        assert results.per_category[label].examples == len(listed)
    assert results.coverage.judged == results.coverage.expected == len(samples)
    assert results.coverage.verdicts["ok"] == len(samples) * 2 * 3
    assert results.scoring == {"weighted": 0, "inferred": 0, "plain": len(samples) * 6}
    assert (results.input_tokens, results.output_tokens) == (len(samples) * 600, len(samples) * 60)


def test_referring_is_judged_by_its_structured_reference(make_run: Callable, use: Callable) -> None:
    run = make_run("referring", lambda example, seed: f"Description: thing {example}")
    asked = use(ScriptedJudge(lambda *_: verdict(4)))
    results = judged(run)
    assert results.rubric.criteria == ["correctness"]
    assert results.metrics["mean"].mean == results.metrics["correctness"].mean == pytest.approx(0.4)
    shown = [material(request) for request in asked.requests]
    assert all(fields["reference"].startswith("Object: ") for fields in shown)
    assert all("{box}" in fields["question"] for fields in shown), "a place that nobody fills"
    assert {fields["answer"] for fields in shown} == {f"thing {example}" for example in example_ids(run)}


def test_equal_answers_are_judged_once_and_count_for_each_sample(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, lambda example, seed: "Answer: the same", repetitions=3)
    asked = use(ScriptedJudge(by_hash))
    results = judged(run, verdicts_per_answer=2)
    distinct = {json.dumps(material(request)) for request in asked.requests}
    assert len(asked.requests) == 2 * len(distinct)
    assert len(distinct) < results.coverage.judged
    assert len(set(results.metrics["accuracy"].repetitions)) == 1
    assert results.coverage.judged == 3 * len(example_ids(run))


def test_the_model_under_test_is_never_asked(
    make_run: Callable, use: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(VQA)
    monkeypatch.setattr(runner, "load_model", lambda *_: ScriptedModel("student", never))
    use(ScriptedJudge(by_hash))
    assert judge(run, "any").asked > 0


REPLIES = {
    "ok": verdict(8),
    "parse_error": verdict(11),
    "refused": Completion("No.", finish_reason="refusal"),
    "truncated": Completion('{"score": 9, "rea', finish_reason="length"),
    "infra_error": Failure("no network"),
}


@pytest.mark.parametrize("status", [name for name in REPLIES if name != "ok"])
def test_an_unusable_verdict_gets_its_status_and_never_counts_as_zero(
    status: str, make_run: Callable, use: Callable
) -> None:
    run = make_run(VQA, lambda example, seed: f"Answer: {example}", repetitions=1)
    bad = example_ids(run)[0]
    use(ScriptedJudge(lambda request, _: REPLIES[status if material(request)["answer"] == bad else "ok"]))
    results = judged(run, verdicts_per_answer=1)
    assert results.metrics["mean"].mean == pytest.approx(0.8)
    assert results.coverage.verdicts[status] == 2
    assert results.coverage.judged == results.coverage.expected - 1


def test_verdicts_that_were_not_asked_yet_are_missing_and_no_zeros(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(lambda *_: verdict(6)))
    session = judge(run, "any", verdicts_per_answer=1)
    log = session.folder / "verdicts.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-3]))
    results = score_judged(session.run, session.folder).results
    assert results.coverage.verdicts["missing"] == 3
    assert results.metrics["mean"].mean == pytest.approx(0.6)


def test_a_draw_that_failed_leaves_the_others_to_count(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(lambda _, draw: [verdict(4), Completion("?"), verdict(8)][draw]))
    results = judged(run, verdicts_per_answer=3)
    assert results.metrics["mean"].mean == pytest.approx(0.6)
    assert results.coverage.judged == results.coverage.expected
    assert results.coverage.verdicts["parse_error"] == 2 * results.coverage.expected


def test_empty_answers_are_not_judged_but_lower_the_coverage(make_run: Callable, use: Callable) -> None:
    answers = itertools.chain(["  "], itertools.repeat("Answer: a lid"))
    run = make_run(VQA, lambda example, seed: next(answers))
    use(ScriptedJudge(lambda *_: verdict(10)))
    results = judged(run, verdicts_per_answer=1)
    assert results.metrics["mean"].mean == 1.0
    assert results.coverage.answered == results.coverage.judged == results.coverage.expected - 1
    assert results.coverage.finished == results.coverage.expected


def weighted_reply(request: Request, draw: int) -> Completion:
    top = (("7", math.log(0.5)), ("8", math.log(0.25)), ("x", math.log(0.25)))
    tokens = [TokenLogprob(text, 0.0, ((text, 0.0),)) for text in ('{"score": ', "7", ', "reason": "r"}')]
    tokens[1] = TokenLogprob("7", math.log(0.5), top)
    return Completion('{"score": 7, "reason": "r"}', logprobs=tuple(tokens))


def test_scores_are_weighted_where_the_judge_gives_log_probabilities(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    asked = use(ScriptedJudge(weighted_reply))
    session = judge(run, "any", verdicts_per_answer=1)
    judged = score_judged(session.run, session.folder)
    # (0.5 * 7 + 0.25 * 8) / 0.75 / 10, by hand
    assert judged.results.metrics["accuracy"].mean == pytest.approx(0.55 / 0.75)
    assert judged.results.scoring == {"weighted": len(asked.asked), "inferred": 0, "plain": 0}
    assert {verdict.scoring for verdicts in judged.verdicts.values() for verdict in verdicts} == {"weighted"}
    assert (asked.configs[0].top_logprobs, asked.configs[0].temperature) == (20, 0.7)


def spelt_reply(score: str, *tokens: dict[str, float]) -> Completion:
    """A reply with its score in these tokens, each the first of its alternatives with their probabilities."""
    chosen = [
        TokenLogprob(next(iter(top)), 0.0, tuple((name, math.log(fraction)) for name, fraction in top.items()))
        for top in tokens
    ]
    before, after = '{"score": ', ', "reason": "r"}'
    return Completion(
        f"{before}{score}{after}", logprobs=(TokenLogprob(before, 0.0), *chosen, TokenLogprob(after, 0.0))
    )


@pytest.mark.parametrize(
    ("ten", "meant", "inferred"),
    [([{"1": 1.0}, {"0": 1.0}], 10, True), ([{"10": 1.0}], 1, False)],
    ids=["ten is split", "ten is one token"],
)
def test_a_one_among_the_alternatives_is_read_as_the_judge_writes_its_tens(
    ten: list[dict[str, float]], meant: int, inferred: bool, make_run: Callable, use: Callable
) -> None:
    run = make_run(VQA, repetitions=1)
    nine = spelt_reply("9", {"9": 0.75, "1": 0.25})
    use(ScriptedJudge(lambda r, p: spelt_reply("10", *ten) if criterion(r) == "completeness" else nine))
    session = judge(run, "any", verdicts_per_answer=1)
    judged = score_judged(session.run, session.folder)
    assert judged.results.metrics["completeness"].mean == pytest.approx(1.0)
    # Known from the tens of another criterion, by hand.
    assert judged.results.metrics["accuracy"].mean == pytest.approx((0.75 * 9 + 0.25 * meant) / 10)
    assert (judged.results.scoring["inferred"] > 0) is inferred


@pytest.mark.parametrize("task", ["referring", VQA])
def test_the_oracle_gives_full_marks_only_to_the_reference(
    task: str, make_run: Callable, eventful_dataset: Path
) -> None:
    from barista_bench.benchmarks import get_task
    from barista_bench.core.boxes import BoxFormat
    from barista_bench.data.frozen import read_frozen

    kind = get_task("barista", task)
    examples = {e.example_id: e for e in read_frozen(eventful_dataset / "frozen" / f"{task}.jsonl")}
    right = sorted(examples)[0]
    run = make_run(
        task,
        lambda example, seed: kind.reference_answer(examples[example], BoxFormat()) if example == right else "A lid.",
        repetitions=1,
    )
    results = judged(run, "oracle")
    assert results.metrics["mean"].mean == pytest.approx(1 / len(examples))


def test_lexical_gives_the_tasks_own_overlap_in_tenths(make_run: Callable) -> None:
    run = make_run(
        VQA, lambda example, seed: "Answer: the cup is now under the coffee machine, and it rains", repetitions=1
    )
    session = judge(run, "lexical", verdicts_per_answer=5)
    judged = score_judged(session.run, session.folder)
    assert judged.results.verdicts_per_answer == 1
    names = {"accuracy": "lexical_precision", "completeness": "lexical_recall"}
    for sample in session.run.samples:
        of_sample = {verdict.criterion: verdict.score for verdict in judged.verdicts[sample.example.example_id, 0]}
        assert of_sample == {name: math.floor(sample.scores[metric] * 10 + 0.5) for name, metric in names.items()}
    assert judge(run, "lexical").asked == 0


def test_lexical_refuses_a_criterion_without_a_metric(make_run: Callable, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(ONE_CRITERION)
    with pytest.raises(ConfigError, match="fit names no score"):
        judge(make_run(VQA, repetitions=1), "lexical", rubric=mine)


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "judging.md").read_text()


def test_the_python_examples_run(make_run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    make_run("temporal_vqa").rename(tmp_path / "runs" / "mine" / "temporal_vqa")
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    with contextlib.redirect_stdout(said):
        for block in blocks:
            (tmp_path / "block.py").write_text(block)
            runpy.run_path(str(tmp_path / "block.py"))
    lines = said.getvalue().splitlines()
    assert lines[0].endswith(" 24")
    assert lines[1:4] == [
        "JudgeVerdict(score=7, reason='wrong colour')",
        "score is 11, not from 0 to 10",
        "not JSON: Expecting value",
    ]
    assert lines[4].startswith("WeightedScore(score=7.333333")


def test_the_rubric_of_the_page_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "rubric.yaml").write_text(text)
    assert load_rubric(get_task("barista", "referring"), tmp_path / "rubric.yaml").names == ("brevity",)


def test_the_page_has_the_right_number_of_attacks() -> None:
    assert f"holds {len(set(ATTACKS))} attacks" in PAGE
