"""The task: examples, prompt, figures, and the refusal of hidden answers."""

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from barista_bench.benchmarks.egocot.cot import Cot, CotSampling
from barista_bench.benchmarks.egocot.release import EgocotRelease, open_release
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, Prediction, Scored, SkippedExample
from barista_bench.errors import DataError
from tests.answering import read
from tests.egocot.made import record, write

TASK = Cot()
BOXES = BoxFormat()


def answered(example: Example, letter: str | None, reasoning: str = "") -> Scored:
    return Scored(example, None if letter is None else Prediction({"answer": letter, "reasoning": reasoning}))


def wrong(example: Example) -> str:
    return next(label for label in "ABCD" if label != example.target["answer"])


def oracle(example: Example) -> Scored:
    return Scored(example, read(TASK, TASK.reference_answer(example, BOXES), example))


def test_frames_can_be_asked_for_by_rate(mini_release: EgocotRelease) -> None:
    example = next(iter(TASK.examples(mini_release, CotSampling(rate=1.0, max_frames=5))))
    assert isinstance(example, Example)
    assert len(example.frames) == 5
    example = next(iter(TASK.examples(mini_release, CotSampling(rate=1.0))))
    assert isinstance(example, Example)
    assert [frame.frame_index for frame in example.frames[:3]] == [0, 30, 60]


def test_absent_and_broken_media_are_skipped_with_a_reason(tmp_path: Path) -> None:
    write(tmp_path, "dev.json", [record("q1"), record("q2", media_id="broken", source=None)])
    (tmp_path / "media").mkdir()
    (tmp_path / "media/broken.mp4").write_bytes(b"no video")
    items = list(TASK.examples(open_release(tmp_path), CotSampling(frames=2)))
    assert all(isinstance(item, SkippedExample) for item in items)
    reasons = {item.frame.video_id: item.reason for item in items if isinstance(item, SkippedExample)}
    assert "under the terms of those" in reasons["clip_1"]
    assert "broken.mp4" in reasons["broken"]


def test_the_records_of_the_page_load_run_and_score_over_a_stand_in_video(
    page_folder: Path, small_kitchen: Path, tmp_path: Path
) -> None:
    """The page has no media. Any video serves, since the test reads no pixels."""
    clip = next(small_kitchen.glob("*/video.mp4"))
    (tmp_path / "media").mkdir()
    release = open_release(page_folder, tmp_path)
    for item in release.items.values():
        shutil.copy(clip, release.video_path(item.media_id))
    examples = [item for item in TASK.examples(release, CotSampling(frames=2)) if isinstance(item, Example)]
    assert len(examples) == 5
    metrics = TASK.aggregate([oracle(example) for example in examples])
    assert metrics["accuracy"] == 1.0
    assert metrics["n_claims"] > 5
    assert set(metrics["per_group"]) == {"EGP", "STR", "PCI", "HGR"}


def test_an_unreadable_answer_is_wrong_and_misses_all_evidence(dev: list[Example]) -> None:
    metrics = TASK.aggregate([answered(dev[0], None), oracle(dev[1])])
    assert (metrics["accuracy"], metrics["coverage"], metrics["n_failed"]) == (0.5, 0.5, 1)
    assert 0 < metrics["claim_recall"] < 1


def test_verified_scr_counts_right_answers_with_a_false_claim(dev: list[Example]) -> None:
    late = "At 00:59.00 it happens."  # the videos have some seconds
    samples = [
        answered(dev[0], str(dev[0].target["answer"]), late),
        answered(dev[1], str(dev[1].target["answer"]), "Because."),
        answered(dev[2], wrong(dev[2]), late),
    ]
    metrics = TASK.aggregate(samples)
    assert (metrics["accuracy"], metrics["verified_scr"]) == (2 / 3, 1 / 2)
    assert (metrics["contradiction_rate"], metrics["n_claims"]) == (1.0, 2)


def reference(samples: list[Scored]) -> dict[str, float]:
    """The figures from their definitions, one sample after the other."""
    right = claims = good = bad = bad_right = 0
    for sample in samples:
        if sample.prediction is None:
            continue
        checked = TASK.check(sample.example, sample.prediction)
        verdicts = [finding.verdict for finding in checked.findings]
        hit = sample.prediction.value["answer"] == sample.example.target["answer"]
        right += hit
        claims += len(verdicts)
        good += verdicts.count("supported")
        bad += verdicts.count("contradicted")
        bad_right += hit and "contradicted" in verdicts
    metrics = {"accuracy": right / len(samples)}
    metrics |= {"claim_precision": good / claims, "contradiction_rate": bad / claims} if claims else {}
    return metrics | ({"verified_scr": bad_right / right} if right else {})


def random_samples(examples: list[Example], rng: random.Random) -> list[Scored]:
    sentences = [str(step) for example in examples for step in example.target["reasoning"]]
    letters = [None, *"ABCD"]
    return [
        answered(rng.choice(examples), rng.choice(letters), " ".join(rng.sample(sentences, rng.randint(0, 4))))
        for _ in range(rng.randint(1, 12))
    ]


def test_metrics_equal_their_definitions_on_random_samples(dev: list[Example]) -> None:
    rng = random.Random(1)
    for _ in range(40):
        samples = random_samples(dev, rng)
        metrics = TASK.aggregate(samples)
        want = reference(samples)
        assert {name: metrics[name] for name in want} == pytest.approx(want)
        for name in ("group", "subtask"):
            parts = metrics[f"per_{name}"]
            assert sum(part["support"] for part in parts.values()) == len(samples)
            for value, values in parts.items():
                mine = reference([s for s in samples if s.example.metadata[name] == value])
                assert {k: values[k] for k in mine} == pytest.approx(mine)


def test_hidden_answers_can_be_run_and_never_scored(hidden: list[Example]) -> None:
    example = hidden[0]
    assert example.target == {"answer": None, "reasoning": []}
    assert TASK.prompt(example, BOXES).parts
    parsed = read(TASK, "It is held.\nANSWER: A", example)
    assert TASK.score(example, parsed) == {}
    refused: list[Callable[[], object]] = [
        lambda: TASK.aggregate([Scored(example, parsed)]),
        lambda: TASK.statistics([Scored(example, parsed)]).compute_metrics(np.ones((1, 1))),
        lambda: TASK.check(example, parsed),
        lambda: TASK.rationale(example, parsed),
        lambda: TASK.explain(example, parsed),
        lambda: TASK.failures(example, parsed),
        lambda: TASK.reference_answer(example, BOXES),
    ]
    for ask in refused:
        with pytest.raises(DataError, match=r"answer is hidden \(split test\).*Fix: score the split dev"):
            ask()


def test_the_prior_is_the_commonest_letter_of_the_subtask_in_other_videos(dev: list[Example]) -> None:
    def other(label: str, letter: str) -> Example:
        return replace(dev[0], label=label, target={"answer": letter, "reasoning": []})

    asked = replace(dev[0], label="AOG")
    others = [other("AOG", "C"), *[other("HOA", "B")] * 5]
    assert TASK.prior_answer(asked, others, BOXES) == "ANSWER: C"
    assert TASK.prior_answer(asked, others[1:], BOXES) == "ANSWER: B"
    assert TASK.prior_answer(asked, [], BOXES) == "ANSWER: A"


def test_explanations_and_failures_name_the_contradicted_claims(dev: list[Example]) -> None:
    sample = answered(dev[0], wrong(dev[0]), "At 00:59.00 it happens.")
    rows = TASK.explain(dev[0], sample.prediction).rows
    assert [row.kind for row in rows] == ["miss", "wrong", "wrong"]
    assert "00:59.00 (the video is over by then)" in rows[-1].text
    assert [failure.kind for failure in TASK.failures(dev[0], sample.prediction)] == ["wrong_option", "wrong_time"]
    assert TASK.failures(dev[0], oracle(dev[0]).prediction) == ()
    assert [failure.kind for failure in TASK.failures(dev[0], None)] == ["format"]
    assert [row.kind for row in TASK.explain(dev[0], None).rows] == ["miss"]


def test_boxes_in_focus_are_drawn_on_the_frame_of_their_time(mini_release: EgocotRelease) -> None:
    drawn = 0
    for example in TASK.examples(mini_release, CotSampling(rate=4.0)):
        assert isinstance(example, Example)
        for overlay in TASK.overlays(example, None):
            time = float(str(example.inputs["times"][overlay.image]))
            boxes = example.evidence["focused_boxes"]
            near = [b for b in boxes if abs(b["time"] - time) <= 0.26]
            assert list(overlay.box) in [b["box"] for b in near]
            drawn += 1
    assert drawn > 10


def test_the_judge_sees_the_choices_in_words(dev: list[Example]) -> None:
    shown = TASK.rationale(dev[0], Prediction({"answer": wrong(dev[0]), "reasoning": "Because."}))
    right = str(dev[0].target["answer"])
    assert shown.correct_answer == f"{right}. {TASK.choices(dev[0])[right]}"
    assert shown.answer.startswith(f"{wrong(dev[0])}. ")
    assert all(text in shown.question for text in TASK.choices(dev[0]).values())
    assert shown.reference_reasoning.splitlines() == dev[0].target["reasoning"]
