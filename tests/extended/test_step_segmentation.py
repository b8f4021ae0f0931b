"""Steps of a clip and their times: the question, the frames of an answer, and its score."""

import json
import random
from pathlib import Path

import pytest

from barista_bench.benchmarks.extended.step_segmentation import StepSampling, StepSegmentation
from barista_bench.benchmarks.parsing import MAX_ENTRIES
from barista_bench.core.example import Example, ParseError
from barista_bench.metrics.temporal_segmentation import temporal_segmentation
from tests.answering import answered, derived_and_skipped as derived
from tests.extended.kit import BOXES, Named, video

TASK = StepSegmentation()
WHOLE = StepSampling(frames=4)
STEPS = [(30, 150, "Prepare cup"), (150, 400, "Brew coffee"), (450, 900, "Froth milk")]


@pytest.fixture
def example(tmp_path: Path) -> Example:
    (only,), skipped = derived(TASK, video(tmp_path, steps=STEPS), WHOLE)
    assert not skipped
    return only


def test_a_video_is_one_clip_with_all_its_steps(example: Example) -> None:
    assert [frame.frame_index for frame in example.frames] == [0, 299, 599, 899]
    assert example.target["segments"] == [{"step": name, "start": a, "end": b} for a, b, name in STEPS]
    text = TASK.prompt(example, BOXES).as_text()
    assert "Frame 2, 9.97 s:\n<image 1>" in text
    assert "  Brew coffee\n  Froth milk\n  Prepare cup\n" in text
    assert "one clip of 30.0 s" in text


def test_clips_of_some_seconds_cut_steps_at_their_ends(tmp_path: Path) -> None:
    root = video(tmp_path, steps=[*STEPS[:2], (890, 903, "Froth milk")], frames=903)
    examples, (skipped,) = derived(TASK, root, StepSampling(frames=4, seconds=10.0))
    assert [example.example_id.partition(":frames_")[2] for example in examples] == ["0_300", "300_600", "600_900"]
    assert examples[1].target["segments"] == [{"step": "Brew coffee", "start": 0, "end": 100}]
    assert (skipped.frame.frame_index, skipped.reason) == (900, "the clip has 3 frames, and 4 are shown")


def test_names_that_differ_only_in_case_are_two_steps(tmp_path: Path) -> None:
    root = video(tmp_path, steps=[(0, 300, "Brew coffee"), (300, 900, "Brew Coffee")])
    (example,), _ = derived(TASK, root, WHOLE)
    assert TASK.aggregate([answered(TASK, example, TASK.reference_answer(example, BOXES))])["f1_50"] == 1


@pytest.mark.parametrize(
    ("steps", "frames", "fps", "reason"),
    [
        (
            [(0, 200, "Brew coffee"), (100, 300, "Froth milk")],
            900,
            30.0,
            "process_steps[0] and process_steps[1] overlap",
        ),
        ([(0, 200, "Brew coffee"), (200, 300, "  ")], 900, 30.0, "process_steps[1] has no name"),
        ([], 900, 30.0, "no process step in the clip"),
        ([(0, 40, "Brew coffee")], 900, None, "the video has no fps"),
    ],
)
def test_skipped_examples_are_counted_with_their_reason(
    tmp_path: Path, steps: list[Named], frames: int, fps: float | None, reason: str
) -> None:
    examples, (skipped,) = derived(TASK, video(tmp_path, steps=steps, frames=frames, fps=fps), WHOLE)
    assert (examples, skipped.reason) == ([], reason)


def test_metrics_equal_labels_made_frame_by_frame_on_500_random_answers(example: Example) -> None:
    rng, names = random.Random(0), ["Prepare cup", "BREW  coffee", "Froth milk"]
    reference = [next((name for a, b, name in STEPS if a <= frame < b), None) for frame in range(900)]
    samples, labels = [], []
    for _ in range(500):
        cuts = [[rng.choice(names), *sorted(rng.sample(range(320), 2))] for _ in range(rng.randint(0, 5))]
        # Tenths of a second are three frames each.
        text = json.dumps([[name, start / 10, end / 10] for name, start, end in cuts])
        is_lost = rng.random() < 0.05
        samples.append(answered(TASK, example, "I cannot tell." if is_lost else text))
        is_lost |= bool(cuts) and all(start >= 300 for _, start, _ in cuts)  # beyond the clip: no entry can be read
        answer: list[str | None] = [None] * 900
        for name, start, end in cuts:
            for frame in range(start * 3, min(end * 3, 900)):
                answer[frame] = {"BREW  coffee": "Brew coffee"}.get(name, name)
        labels.append(None if is_lost else answer)
    wanted = temporal_segmentation(labels, [reference] * 500)
    metrics = TASK.aggregate(samples)
    assert metrics == pytest.approx({name: wanted[name] for name in metrics})
    alone = TASK.score(example, samples[0].prediction)
    assert alone == pytest.approx({name: temporal_segmentation(labels[:1], [reference])[name] for name in alone})


@pytest.mark.parametrize(
    ("text", "segments", "dropped"),
    [
        ('So: [["brew coffee", 1, "2.5 s"]]', [("Brew coffee", 30, 75)], 0),
        ('[["Brew coffee", "0:01", 99], ["Rinse", 1, 2], ["Brew coffee", 3], "x"]', None, 0),
        ('[["Brew coffee", 1, 99], ["Rinse", 1, 2], ["Brew coffee", 3], ["Brew coffee", 5, 5]]',
         [("Brew coffee", 30, 900)], 3),
        ("[]", [], 0),
        (json.dumps([["Rinse", 1, 2]] * MAX_ENTRIES + [["Brew coffee", 1, 2]]), None, 0),
        (json.dumps([["Froth milk", 1, 2]] + [["Rinse", 1, 2]] * MAX_ENTRIES), [("Froth milk", 30, 60)], MAX_ENTRIES),
        ("[1, 2]", None, 0),
        ("Brew coffee, 1-2 s", None, 0),
    ],
)  # fmt: skip
def test_the_last_list_of_entries_is_read(
    example: Example, text: str, segments: list[tuple[str, int, int]] | None, dropped: int
) -> None:
    prediction = TASK.parse(text, example.inputs, BOXES)
    if segments is None:
        assert isinstance(prediction, ParseError)
        return
    assert not isinstance(prediction, ParseError)
    assert prediction.value["segments"] == [{"step": name, "start": a, "end": b} for name, a, b in segments]
    assert prediction.dropped == dropped


def test_the_prior_has_at_each_place_the_most_frequent_step_of_other_videos(tmp_path: Path) -> None:
    for number, border in enumerate((270, 270, 630)):
        steps = [(0, border, "Brew coffee"), (border, 900, "Froth milk")]
        video(tmp_path, steps=steps, video_id=f"v{number}")
    asked, *others = derived(TASK, tmp_path, WHOLE)[0]
    assert json.loads(TASK.prior_answer(asked, tuple(others[:1]), BOXES)) == [
        ["Brew coffee", 0, 9],
        ["Froth milk", 9, 30],
    ]
    # One for each from 9 s to 21 s: the first by name.
    assert json.loads(TASK.prior_answer(asked, tuple(others), BOXES)) == [
        ["Brew coffee", 0, 21],
        ["Froth milk", 21, 30],
    ]
    assert TASK.prior_answer(asked, (), BOXES) == "[]"
