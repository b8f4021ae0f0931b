"""Activities in own words beside multiple choice: the same clips, how answers are read, and the gap."""

from pathlib import Path

import numpy as np
import pytest

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.benchmarks.barista.activity_choices import ActivitySampling
from barista_bench.benchmarks.extended.open_activity import OpenActivity, paper_tables
from barista_bench.core.example import Example, ParseError, Prediction
from barista_bench.core.model_samples import ModelSamples
from barista_bench.judging.rubric import load_rubric
from barista_bench.tables import RangedScore
from tests.answering import answered, derived_and_skipped as derived
from tests.extended.kit import BOXES, Named, video

TASK, BY_CHOICE = OpenActivity(), Activity()
ALL = ActivitySampling(seed=42, frames=4, choices=4, per_class=2, same_verb=2)
ACTIVITIES: list[Named] = [
    (0, 100, "Open lid"), (100, 200, "Close lid"), (200, 300, "Grasp cup"), (280, 400, "Place cup"),
    (400, 402, "Pour milk"), (500, 600, "Open lid"), (600, 700, "Press button"), (700, 800, "Pour"),
]  # fmt: skip


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("videos")
    for number in range(4):
        video(root, activities=ACTIVITIES[number % 2 :], video_id=f"v{number}")
    return root


@pytest.mark.parametrize("protocol", ["release", "paper"])
def test_the_clips_equal_the_clips_of_the_question_with_choices(videos: Path, protocol: str) -> None:
    openly, skipped = derived(OpenActivity(options={"protocol": protocol}), videos, ALL)
    by_choice, skipped_there = derived(Activity(options={"protocol": protocol}), videos, ALL)
    assert len(openly) > 5
    assert [example.frames for example in openly] == [example.frames for example in by_choice]
    assert [example.metadata for example in openly] == [example.metadata for example in by_choice]
    assert skipped == skipped_there
    assert any("is called 'Pour'" in item.reason for item in skipped)


@pytest.mark.parametrize(
    ("text", "activity"),
    [
        ("I see a hand.\nActivity: Open lid", "Open lid"),
        ("It is **round**.\n**Activity: Open lid**", "Open lid"),
        ("- **Activity:** Open lid", "Open lid"),
        ("2. __activity__ : `Open lid`", "Open lid"),
        ("### Activity:\n\n* Open lid\n", "Open lid"),
        (" open lid ", "open lid"),
        ("I see a hand.\nOpen lid", None),
        (f"Activity: {'lid ' * 51}", None),
        ("", None),
        (" **\n", None),
    ],
)
def test_the_last_labelled_line_is_the_answer_without_marks_and_within_a_bound(text: str, activity: str | None) -> None:
    prediction = TASK.parse(text, {}, BOXES)
    assert (
        isinstance(prediction, ParseError) if activity is None else prediction == Prediction({"activities": [activity]})
    )


def test_failures_say_which_part_is_wrong(videos: Path) -> None:
    examples, _ = derived(TASK, videos, ALL)
    example = next(item for item in examples if item.label == "Open lid")
    kinds = {
        answer: [failure.kind for failure in TASK.failures(example, answered(TASK, example, answer).prediction)]
        for answer in ("Open lid", "Unlock lid", "Close lid", "Open door", "Pour milk", "")
    }
    assert list(kinds.values()) == [
        [], [], ["wrong_verb"], ["wrong_object"], ["wrong_verb", "wrong_object"], ["format"]
    ]  # fmt: skip
    exactly = OpenActivity(options={"matcher": "exact"})
    assert [
        task.score(example, Prediction({"activities": ["Unlock lid"]}))["accuracy"] for task in (TASK, exactly)
    ] == [1, 0]


def test_a_judge_sees_the_name_and_the_answer_by_a_rubric_of_the_task(videos: Path) -> None:
    example = derived(TASK, videos, ALL)[0][0]
    shown = TASK.show_to_judge(example, Prediction({"activities": ["take it"]}))
    assert (shown.reference, shown.answer) == (example.label, "take it")
    assert load_rubric(TASK).names == ("correctness",)


def samples_of(model: str, task: Activity | OpenActivity, examples: list[Example], right: list[bool]) -> ModelSamples:
    answers = [task.reference_answer(item, BOXES) if hit else "none" for item, hit in zip(examples, right, strict=True)]
    run = tuple(answered(task, item, text) for item, text in zip(examples, answers, strict=True))
    return ModelSamples(model, task, (run, run))


def test_the_gap_is_taken_on_the_clips_that_were_asked_in_both_ways(videos: Path) -> None:
    openly, by_choice = derived(TASK, videos, ALL)[0], derived(BY_CHOICE, videos, ALL)[0]
    rng = np.random.default_rng(0)
    right_openly, right_by_choice = (rng.random(len(openly)) < fraction for fraction in (0.3, 0.8))
    models = [
        samples_of("m", TASK, openly[1:], right_openly[1:].tolist()),
        samples_of("m", BY_CHOICE, by_choice[:-1], right_by_choice[:-1].tolist()),
        samples_of("other", BY_CHOICE, by_choice, right_by_choice.tolist()),
    ]
    (table,) = paper_tables(models)
    ((name, clips, with_choices, in_own_words, gap),) = table.values
    assert (name, clips) == ("m", len(openly) - 2)
    assert with_choices == pytest.approx(right_by_choice[1:-1].mean())
    assert in_own_words == pytest.approx(right_openly[1:-1].mean())
    assert isinstance(gap, RangedScore)
    assert gap.value == pytest.approx(right_by_choice[1:-1].mean() - right_openly[1:-1].mean())
    assert gap.low <= gap.value <= gap.high
    assert paper_tables(models[1:]) == []
