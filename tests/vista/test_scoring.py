"""Figures of a run: against the metric, by hand where the metric's own tests do not reach, and resampled.

tests/metrics/test_sequence_matching.py compares the metric with an independent computation. This file tests what a task
passes to it: the scores, the grouping of videos, and the values for missing answers.
"""

import random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.vista.matching import All
from barista_bench.benchmarks.vista.release import VistaRelease
from barista_bench.benchmarks.vista.scoring import majority_f1
from barista_bench.core.example import Scored
from barista_bench.metrics.sequence_matching import sequence_matching
from tests.vista.made import by_set, example, match, scored

TASK = All()


def random_set(number: int, rng: random.Random) -> list[Scored]:
    """One problem set: few score values, so that ties are common; missing labels, unread videos, single videos."""
    labels = [f"label_{at}" for at in range(rng.randint(2, 6))]
    count = rng.choice([1, 2, 2, 3, 3, 5, 9])
    grain = rng.choice([1, 4, 1000])
    lost = rng.choice([0.0, 0.0, 0.2, 1.0])
    samples = []
    for video in range(count):
        asked = example(f"alfred/x/y/{number}", f"v{video}", labels, [rng.choice(labels)], videos=count)
        scores = {label: rng.randint(0, 5 * grain) / grain for label in labels if rng.random() > 0.1}
        samples.append(scored(asked, None if rng.random() < lost or not scores else scores))
    return samples


def row_of(sample: Scored) -> list[float]:
    """As the metric takes it: a label without a score has the lowest, and so have all of a video that is not read."""
    scores = sample.prediction.value["scores"] if sample.prediction else {}
    return [scores.get(label, -0.1) for label in sample.example.inputs["labels"]]


@pytest.mark.parametrize("how", All.options["standardise"].choices)
def test_figures_equal_the_metric_over_the_sets_of_the_samples(how: str) -> None:
    rng = random.Random(11)
    sets = [random_set(number, rng) for number in range(200)]
    sets = [samples for samples in sets if any(sample.prediction for sample in samples)]
    references = [
        [sample.example.inputs["labels"].index(sample.example.target["labels"][0]) for sample in samples]
        for samples in sets
    ]
    wanted = sequence_matching([list(map(row_of, samples)) for samples in sets], references, standardise=how)
    samples, task = [sample for of_set in sets for sample in of_set], All(options={"standardise": how})
    rng.shuffle(samples)  # samples of different sets come mixed
    metrics = task.aggregate(samples)
    names = {"macro_f1": "macro_f1", "macro_f1_low": "ci_low", "macro_f1_high": "ci_high"}
    assert [metrics[name] for name in names] == pytest.approx([wanted[name] for name in names.values()], abs=1e-12)
    assert (metrics["unscored_problem_sets"], metrics["ties"]) == (wanted["n_unscored"], wanted["n_ties"])
    drawn = task.statistics(samples).compute_metrics(np.ones((1, len(samples))))
    assert drawn["macro_f1"][0] == pytest.approx(metrics["macro_f1"], abs=1e-12)
    if how == "label":
        for problem_set, alone in zip(sets, wanted["per_set"], strict=True):
            matched = match(problem_set)
            assert matched.f1 == pytest.approx(alone["macro_f1"])
            assert matched.majority == pytest.approx(alone["majority_f1"])
    else:
        assert metrics["macro_f1"] != pytest.approx(TASK.aggregate(samples)["macro_f1"], abs=1e-6)


@pytest.mark.full
def test_the_majority_baseline_of_the_real_release_follows_from_its_entries(real_vista: VistaRelease) -> None:
    from sklearn import config_context
    from sklearn.metrics import f1_score

    for problem_set in real_vista.sets.values():
        labels = list(problem_set.descriptions)
        places = [tuple(labels.index(label) for label in video.labels) for video in problem_set.videos]
        if all(len(labels) == 1 for labels in places):
            reference = [label for (label,) in places]
            mode = max(sorted(set(reference)), key=reference.count)
            with config_context(skip_parameter_validation=True):
                expected = f1_score(reference, [mode] * len(reference), average="macro", zero_division=0)
            assert majority_f1(places) == pytest.approx(expected, abs=1e-12)


def test_a_set_without_answered_videos_is_all_wrong() -> None:
    samples = [scored(example(video=f"v{at}", reference=[label]), None) for at, label in enumerate("abc")]
    assert match(samples).f1 == match(samples).strict == 0.0
    assert match(samples).unread == 3
    assert TASK.aggregate(samples)["coverage"] == 0.0


def test_the_strict_reading_counts_other_answers_as_wrong() -> None:
    rows = [{"a": 5.0, "b": 0.0, "c": 0.0}, {"a": 0.0, "b": 5.0, "c": 0.0}, {"a": 0.0, "b": 0.0, "c": 5.0}]
    samples = [
        scored(example(video=f"v{at}", reference=[label]), row, strict=label != "c")
        for at, (label, row) in enumerate(zip("abc", rows, strict=True))
    ]
    metrics = match(samples)
    assert metrics.f1 == 1.0
    assert metrics.strict == pytest.approx(2 / 3)  # c is never found, a and b always


def test_an_incomplete_set_is_scored_over_its_present_videos_and_flagged() -> None:
    rows = [{"a": 5.0, "b": 0.0}, {"a": 0.0, "b": 5.0}]
    samples = [
        scored(example(video=f"v{at}", labels="ab", reference=[label], videos=3), row)
        for at, (label, row) in enumerate(zip("ab", rows, strict=True))
    ]
    metrics = TASK.aggregate(samples)
    assert (metrics["macro_f1"], metrics["incomplete_problem_sets"], metrics["problem_sets"]) == (1.0, 1, 1)


def test_a_single_video_leaves_its_set_unscored() -> None:
    alone = [scored(example(videos=1), {"a": 5.0, "b": 0.0, "c": 0.0})]
    metrics = TASK.aggregate(alone)
    assert "macro_f1" not in metrics
    assert (metrics["unscored_problem_sets"], metrics["top1"]) == (1, 1.0)
    assert np.isnan(TASK.statistics(alone).compute_metrics(np.ones((2, 1)))["macro_f1"]).all()


@pytest.mark.parametrize("reference", ["on", "off"])
def test_the_order_of_labels_does_not_decide_a_set_with_one_remaining_label(reference: str) -> None:
    asked = [example("alfred/x/y/1", f"v{at}", ["on", "off"], [reference], videos=6) for at in range(3)]
    samples = [scored(example, {label: 5.0 * (label == reference) for label in ("on", "off")}) for example in asked]
    metrics = match(samples)
    assert (metrics.f1, metrics.strict, metrics.majority, metrics.is_complete) == (None, None, None, False)
    assert TASK.aggregate(samples)["unscored_problem_sets"] == 1
    assert np.isnan(TASK.statistics(samples).compute_metrics(np.ones((1, 3)))["macro_f1"][0])


def test_any_of_several_fitting_labels_is_right() -> None:
    labels = ["break", "find", "mine"]
    references = (["break", "mine"], ["find"], ["mine"])
    asked = [example(video=f"v{at}", labels=labels, reference=reference) for at, reference in enumerate(references)]
    # A mistake is one about the first label: `break` has no hit, `find` one of two, `mine` its one.
    for chosen, f1 in (("break", 1.0), ("mine", 1.0), ("find", (0 + 2 / 3 + 1) / 3)):
        samples = [
            scored(example, {label: 5.0 * (label == best) for label in labels})
            for example, best in zip(asked, (chosen, "find", "mine"), strict=True)
        ]
        assert match(samples).f1 == pytest.approx(f1)


def test_groups_are_environments_levels_and_types() -> None:
    sets = [("virtual_home", 2, "general"), ("virtual_home", 8, "permutation"), ("real_world", 8, "permutation")]
    samples = []
    for number, (environment, level, kind) in enumerate(sets):
        for at, label in enumerate("abc"):
            asked = example(f"s{number}", f"v{at}", reference=[label], environment=environment, level=level, kind=kind)
            samples.append(scored(asked, {name: 5.0 * (name == (label if number else "a")) for name in "abc"}))
    metrics = TASK.aggregate(samples)
    by_level = {name: group["macro_f1"] for name, group in metrics["per_level"].items()}
    assert by_level == pytest.approx({"2": 1 / 6, "8": 1.0})
    sets_in = {name: group["problem_sets"] for name, group in metrics["per_environment"].items()}
    assert sets_in == {"real_world": 1, "virtual_home": 2}
    assert list(metrics["per_type"]) == ["general", "permutation"]


# --- resampling ------------------------------------------------------------------------------------------------------


def drawn_samples() -> list[Scored]:
    rng = random.Random(7)
    return [sample for number in range(12) for sample in random_set(number, rng)]


def test_a_draw_of_sets_is_the_mean_over_the_sets_drawn() -> None:
    samples = drawn_samples()
    sets = by_set(samples)
    rng = np.random.default_rng(3)
    weights = rng.multinomial(len(sets), np.full(len(sets), 1 / len(sets)), size=40).astype(float)
    places = {name: at for at, name in enumerate(sets)}
    columns = [places[sample.example.inputs["problem_set"]] for sample in samples]
    drawn = TASK.statistics(samples).compute_metrics(weights[:, columns])
    f1 = [match(samples).f1 for samples in sets.values()]
    for row, value in zip(weights, drawn["macro_f1"], strict=True):
        chosen = [score for score, times in zip(f1, row, strict=True) if score is not None for _ in range(int(times))]
        assert value == pytest.approx(np.mean(chosen), abs=1e-12)


def test_two_models_that_change_sides_are_scored_apart() -> None:
    """The samples of both models side by side, and a choice of one model for each set, as the permutation test asks."""
    first = drawn_samples()
    rng = random.Random(8)
    second = [
        scored(sample.example, {label: rng.random() * 5 for label in sample.example.inputs["labels"]})
        for sample in first
    ]
    both = [sample for pair in zip(first, second, strict=True) for sample in pair]
    names = list(by_set(first))
    flips = np.random.default_rng(1).integers(2, size=(10, len(names))).astype(float)
    moved = flips[:, [names.index(sample.example.inputs["problem_set"]) for sample in first]]
    weights = np.stack([1 - moved, moved], axis=2).reshape(len(flips), -1)
    drawn = TASK.statistics(both).compute_metrics(weights)["macro_f1"]
    for row, value in zip(moved, drawn, strict=True):
        mixed = [b if flip else a for a, b, flip in zip(first, second, row, strict=True)]
        assert value == pytest.approx(TASK.aggregate(mixed)["macro_f1"], abs=1e-12)


@given(st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_samples_drawn_one_by_one_are_a_set_of_those_drawn(counts: list[int]) -> None:
    rows = [{"a": 5.0, "b": 1.0}, {"a": 2.0, "b": 3.0}, {"a": 4.0, "b": 0.0}]
    samples = [
        scored(example(video=f"v{at}", labels="ab", reference=["a" if at else "b"]), row) for at, row in enumerate(rows)
    ]
    (value,) = TASK.statistics(samples).compute_metrics(np.array([counts], dtype=float))["macro_f1"]
    taken = {count for count in counts if count}
    repeated = [
        sample
        for sample, count in zip(samples, counts, strict=True)
        for _ in range(min(count, 1) if len(taken) == 1 else count)
    ]
    expected = match(repeated).f1 if repeated else None
    assert np.isnan(value) if expected is None else value == pytest.approx(expected, abs=1e-12)
