"""What begins next: which frames are shown, which moments are asked about, how answers are read."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.extended.anticipation import Anticipation, AnticipationSampling
from barista_bench.core.example import ParseError, Prediction
from tests.answering import answered, derived_and_skipped as derived
from tests.extended.kit import BOXES, Named, video

TASK = Anticipation()
ALL = AnticipationSampling(frames=4, seconds=2.0)


@given(
    fps=st.sampled_from([1.0, 12.5, 23.976, 25.0, 30.0, 59.94]), start=st.integers(0, 880), seconds=st.floats(0.2, 9)
)
def test_no_frame_is_shown_from_the_moment_on(
    tmp_path_factory: pytest.TempPathFactory, fps: float, start: int, seconds: float
) -> None:
    root = video(tmp_path_factory.mktemp("v"), activities=[(start, 890, "Open lid")], fps=fps)
    examples, skipped = derived(TASK, root, AnticipationSampling(frames=3, seconds=seconds))
    assert len(examples) + len(skipped) == 3
    for example in examples:
        frames = [frame.frame_index for frame in example.frames]
        ahead = example.inputs["ahead"]
        assert isinstance(ahead, int)
        assert Fraction(start - max(frames)) / Fraction(str(fps)) > ahead
        assert max(frames) < int(str(example.metadata["moment"])) <= start - ahead * fps
        assert len(frames) == 3
        assert all(a < b for a, b in pairwise(frames))


def test_each_activity_is_asked_about_at_every_horizon_that_leaves_enough_to_see(tmp_path: Path) -> None:
    root = video(tmp_path, activities=[(100, 130, "Open lid"), (300, 330, "Pour milk")])
    examples, skipped = derived(TASK, root, ALL)
    assert [(e.label, e.metadata["horizon"], [f.frame_index for f in e.frames]) for e in examples] == [
        ("Open lid", 1, [10, 29, 49, 69]),
        ("Pour milk", 1, [210, 229, 249, 269]),
        ("Pour milk", 2, [180, 199, 219, 239]),
        ("Pour milk", 5, [90, 109, 129, 149]),
    ]
    assert [item.text for item in skipped] == [
        f"activities[0], {horizon} s ahead: too little is filmed before that" for horizon in (2, 5)
    ]
    assert examples[0].target == {"activity": "Open lid", "class_id": "open-lid", "classes": ["Open lid", "Pour milk"]}
    assert "after the film has stopped" in TASK.prompt(examples[0], BOXES).as_text()
    assert "Pour milk" not in TASK.prompt(examples[1], BOXES).as_text()


def test_without_a_length_frames_come_from_the_whole_video_before_the_activity(tmp_path: Path) -> None:
    root = video(tmp_path, activities=[(100, 130, "Open lid")])
    examples, _ = derived(TASK, root, AnticipationSampling(frames=3, seconds=None))
    assert [[frame.frame_index for frame in example.frames] for example in examples] == [[0, 34, 69], [0, 19, 39]]


@pytest.mark.parametrize(
    ("activities", "reason"),
    [
        ([(600, 630, "Open lid"), (600, 640, "Pour milk")], "another one begins with it"),
        ([(600, 630, "Pour"), (610, 640, "")], "is called 'Pour', not 'Verb noun'"),
    ],
)
def test_skipped_examples_are_counted_with_their_reason(tmp_path: Path, activities: list[Named], reason: str) -> None:
    examples, skipped = derived(TASK, video(tmp_path, activities=activities), ALL)
    assert examples == []
    assert any(reason in item.reason for item in skipped)


def test_a_video_without_fps_has_no_moments(tmp_path: Path) -> None:
    examples, skipped = derived(TASK, video(tmp_path, activities=[(600, 630, "Open lid")], fps=None), ALL)
    assert (len(examples), len(skipped)) == (0, 3)


@pytest.mark.parametrize(
    ("text", "names", "dropped"),
    [
        ('["Open lid", "Pour milk"]', ["Open lid", "Pour milk"], 0),
        ('First [1], so: ```json\n["open  lid", "Open Lid", 3, ""]\n```', ["open lid"], 3),
        ('["a","b","c","d","e","f"]', ["a", "b", "c", "d", "e"], 1),
        ('["Open lid"] or rather ["Pour milk"]', ["Pour milk"], 0),
    ],
)
def test_the_last_list_of_names_is_read(text: str, names: list[str], dropped: int) -> None:
    assert TASK.parse(text, {}, BOXES) == Prediction({"activities": names}, dropped)


@pytest.mark.parametrize("text", ["", "Open lid", "[]", "[1, 2]", '["', '["\\ud83d"]', "[" * 5000])
def test_any_other_answer_is_unreadable(text: str) -> None:
    assert isinstance(TASK.parse(text, {}, BOXES), ParseError)


def test_ranks_are_explained(tmp_path: Path) -> None:
    root = video(tmp_path, activities=[(300, 330, "Open lid"), (600, 630, "Pour milk")])
    examples, _ = derived(TASK, root, ALL)
    second = answered(TASK, examples[0], '["Close lid", "Open lid"]')
    assert TASK.score(examples[0], second.prediction) == {"top_1": 0.0, "top_5": 1.0}
    rows = TASK.explain(examples[0], second.prediction).rows
    assert [(row.kind, row.text) for row in rows] == [
        ("hit", "Open lid: guess 2, 'Open lid'"),
        ("wrong", "'Close lid'"),
    ]
