"""The leaderboards' counterparts, the published numbers, and the agreement of judge and evidence."""

import random
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, matthews_corrcoef

from barista_bench.benchmarks.egocot.cot import Cot
from barista_bench.benchmarks.egocot.items import BY_CODE, GROUP_SUBTASKS, SUBTASKS
from barista_bench.benchmarks.egocot.paper_tables import judge_and_evidence, paper_tables, set_tables
from barista_bench.core.example import Example, Prediction, Scored
from barista_bench.core.model_samples import ModelSamples, sample_name
from barista_bench.metrics.judge_score.egocot import EGOCOT_SIZES
from barista_bench.tables import Table

TASK = Cot()
# GPT-5.1 on the page: mean, then each group's subtasks and mean; R and SCR, mean and by group.
ACCURACY = "66.71 64.20 63.16 77.00 67.69 66.04 49.40 56.25 55.23 86.99 67.17 70.56 76.63 68.24 79.83 45.28 65.15"
SCR = [4.91, 5.35, 5.25, 1.79, 9.21]
LATE = "At 00:59.00 it happens."
"""Contradicted: the videos of the mini release are shorter."""


def tables(*samples: ModelSamples) -> dict[str, Table]:
    return {table.title.partition(":")[0]: table for table in paper_tables(samples)}


def row(table: Table, index: int = 0) -> dict[str, object]:
    return dict(zip(table.heads, table.values[index], strict=True))


def answered(example: Example, right: bool, reasoning: str) -> Scored:
    letter = str(example.target["answer"]) if right else next(x for x in "ABCD" if x != example.target["answer"])
    return Scored(example, Prediction({"answer": letter, "reasoning": reasoning}))


def of_subtask(example: Example, code: str, number: int) -> Example:
    metadata = {**example.metadata, "subtask": code, "group": BY_CODE[code].group}
    return replace(example, example_id=f"egocot:{code}_{number}", label=code, metadata=metadata)


@pytest.mark.full
def test_samples_that_fit_gpt_5_1_give_its_published_rows(dev: list[Example]) -> None:
    printed = [float(value) for value in ACCURACY.split()]
    by_subtask = dict(zip((s.code for s in SUBTASKS), (v for i, v in enumerate(printed[1:]) if i % 4 < 3), strict=True))
    samples: list[Scored] = []
    scores: dict[str, float] = {}
    for index, subtasks in enumerate(GROUP_SUBTASKS.values()):
        right = {s.code: round(by_subtask[s.code] * EGOCOT_SIZES[s.group][s.code] / 100) for s in subtasks}
        bad = round(SCR[1 + index] * sum(right.values()) / 100)
        for subtask in subtasks:
            for number in range(EGOCOT_SIZES[subtask.group][subtask.code]):
                hit = number < right[subtask.code]
                example = of_subtask(dev[0], subtask.code, number)
                samples.append(answered(example, hit, "Because."))
                scores[sample_name(example.example_id, 0)] = 2.0 if hit and bad > 0 else 4.0
                bad -= hit
    assert len(samples) == 3172
    by_title = tables(ModelSamples("gpt", TASK, (tuple(samples),), {"judge": scores}))
    accuracy = row(by_title["Accuracy leaderboard"])
    assert [round(100 * float(str(value)), 2) for value in list(accuracy.values())[1:]] == printed
    reasoning = row(by_title["Reasoning leaderboard"])
    names = ("Mean", *GROUP_SUBTASKS)
    assert [round(100 * float(str(reasoning[f"{name} SCR"])), 2) for name in names] == SCR


def test_the_tables_of_one_model_without_a_judge(dev: list[Example]) -> None:
    by_title = tables(ModelSamples("m", TASK, ((answered(dev[0], True, LATE), answered(dev[1], False, LATE)),)))
    assert set(by_title) == {"Accuracy leaderboard", "Figure 3", "Evidence-checked reasoning"}
    checked = row(by_title["Evidence-checked reasoning"])
    assert (checked["accuracy"], checked["verified_scr"], checked["contradiction_rate"]) == (0.5, 1.0, 1.0)
    assert row(by_title["Accuracy leaderboard"])["SR"] is None
    assert {*by_title["Figure 3"].series["m"]} == {dev[0].label, dev[1].label}
    assert paper_tables([]) == []


def test_models_are_ranked_by_their_mean_and_runs_are_averaged(dev: list[Example]) -> None:
    poor = ModelSamples("poor", TASK, ((answered(dev[0], False, ""),), (answered(dev[0], True, ""),)))
    good = ModelSamples("good", TASK, ((answered(dev[0], True, ""),),))
    table = tables(poor, good)["Accuracy leaderboard"]
    assert [row(table, index)["model"] for index in (0, 1)] == ["good", "poor"]
    assert row(table, 1)["Mean"] == 0.5


def test_a_missing_rationale_is_zero_and_a_missing_verdict_is_not(dev: list[Example]) -> None:
    samples = (answered(dev[0], True, ""), answered(dev[1], True, "Because."), answered(dev[2], True, "So."))
    judged = {"judge": {sample_name(dev[2].example_id, 0): 4.0}}
    reasoning = row(tables(ModelSamples("m", TASK, (samples,), judged))["Reasoning leaderboard"])
    assert (reasoning["Mean R"], reasoning["Mean SCR"]) == (2.0, 0.5)
    assert reasoning["judged"] == pytest.approx(2 / 3)


def test_agreement_of_judge_and_evidence_equals_scikit_learns(dev: list[Example]) -> None:
    rng = random.Random(3)
    for _ in range(20):
        runs = tuple(
            tuple(answered(example, rng.random() < 0.8, rng.choice(["", "Because.", LATE])) for example in dev)
            for _ in range(2)
        )
        scores = {
            sample_name(example.example_id, run): float(rng.randint(0, 5))
            for run in range(2)
            for example in dev
            if rng.random() < 0.9
        }
        model = ModelSamples("m", TASK, runs, {"judge": scores})
        pairs = [
            (scores[name] <= 2, sample.prediction.value["reasoning"] == LATE)
            for number, run in enumerate(runs)
            for sample in run
            if (name := sample_name(sample.example.example_id, number)) in scores
            and sample.prediction is not None
            and sample.prediction.value["reasoning"]
            and sample.prediction.value["answer"] == sample.example.target["answer"]
        ]
        first, second = (np.array(column) for column in zip(*pairs, strict=True))
        metrics = judge_and_evidence(model, "judge")
        assert (metrics.n, metrics.judge, metrics.evidence) == (len(pairs), first.sum(), second.sum())
        assert metrics.both == (first & second).sum()
        assert metrics.phi == pytest.approx(matthews_corrcoef(first, second))
        assert metrics.kappa == pytest.approx(cohen_kappa_score(first, second))


def test_agreement_is_undefined_where_one_rater_always_gives_the_same_verdict(dev: list[Example]) -> None:
    run = (answered(dev[0], True, "Because."), answered(dev[1], True, "Because."))
    scores = {sample_name(dev[0].example_id, 0): 0.0, sample_name(dev[1].example_id, 0): 5.0}
    metrics = judge_and_evidence(ModelSamples("m", TASK, (run,), {"judge": scores}), "judge")
    assert (metrics.n, metrics.judge, metrics.evidence, metrics.phi, metrics.kappa) == (2, 1, 0, None, None)


def test_metric_2_counts_questions_by_subtask_and_videos_by_source(dev: list[Example]) -> None:
    counted = {"AOG": 3, "HOTR": 2, "GOT": 1}
    examples = [of_subtask(dev[0], code, number) for code, count in counted.items() for number in range(count)]
    other = replace(dev[0], frames=tuple(replace(frame, video_id="other") for frame in dev[0].frames))
    other = replace(other, metadata={**other.metadata, "subtask": "GOT", "source": "elsewhere"})
    questions, videos = set_tables({"cot": [*examples, other]})
    bars = {code: (group, count) for group, counts in questions.series.items() for code, count in counts.items()}
    assert bars == {"AOG": ("EGP", 3), "HOTR": ("STR", 2), "GOT": ("HGR", 2)}
    assert videos.series["videos"] == {"coffee making": 1, "elsewhere": 1}
    assert set_tables({}) == []
