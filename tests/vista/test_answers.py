"""Reading answers: the released rule word by word, the strict reading, and scores of dual encoders."""

import pytest

from barista_bench.benchmarks.vista.columns import read_answer, write_answer
from barista_bench.core.example import Prediction, write_scores

LABELS = ["label_0", "label_1", "label_10"]


def read(text: str, labels: list[str] = LABELS) -> dict[str, float]:
    parsed = read_answer(text, labels)
    return parsed.value["scores"] if isinstance(parsed, Prediction) else {}


def strict(text: str, labels: list[str] = LABELS) -> dict[str, float] | None:
    parsed = read_answer(text, labels)
    return parsed.value["strict"] if isinstance(parsed, Prediction) else None


AS_ASKED = "1. A hand.\nFinal Scores\n- (label_0) 0\n- (label_1) 5\n- (label_10) 2.5"


def test_an_answer_as_asked_reads_the_same_both_ways() -> None:
    parsed = read_answer(AS_ASKED, LABELS)
    assert isinstance(parsed, Prediction)
    assert parsed.value == {
        "scores": {"label_0": 0.0, "label_1": 5.0, "label_10": 2.5},
        "strict": {"label_0": 0.0, "label_1": 5.0, "label_10": 2.5},
        "missing": [],
    }


def test_neither_text_before_the_last_heading_nor_a_part_of_a_longer_label_counts() -> None:
    text = "Final Scores\n- (label_0) 5\n- (label_1) 5\nNo, again. Final Scores:\n- (label_0) 1\n- (label_10) 2"
    parsed = read_answer(text, LABELS)
    assert isinstance(parsed, Prediction)
    assert parsed.value == {"scores": {"label_0": 1.0, "label_10": 2.0}, "strict": None, "missing": ["label_1"]}


def test_without_a_heading_only_the_released_rule_counts_the_whole_answer() -> None:
    text = "- (label_0) 1\n- (label_1) 2\n- (label_10) 3"
    assert read(text) == {"label_0": 1.0, "label_1": 2.0, "label_10": 3.0}
    assert strict(text) is None


@pytest.mark.parametrize(
    ("line", "score"),
    [
        ("- (label_0) 4/5", 5.0),  # the maximum, as released
        ("- (label_0) 4 out of 5 (frames 3-12)", 12.0),
        ("label_0: 3", 3.0),
        ("**label_0** -> 3.75.", 3.75),
        ("- (LABEL_0) 4", 4.0),  # found in either case; cut only where the case is the same
        ("Between 1 and 2, I give label_0 a 4", 4.0),
        ("4 for label_0", None),  # nothing behind the label
        ("label_0 and label_0 again: 2; label_0", None),
        ("label_0 label_1 5", 5.0),
        ("label_0: -3", 3.0),  # no signs
        ("label_0 _7", None),
        ("label_0 _12", 2.0),  # behind the underscore only the first digit is lost
        ("label_0 beside label_10", 0.0),
        ("LABEL_10 and (LABEL_0) 1", 1.0),  # no cut: 0 of LABEL_10 is a number, 0 of LABEL_0 is not
        ("label_0: v1.2.3", 3.0),  # 1.2, then 3
        ("label_0: .5", 5.0),
        ("label_0: 1e3", 3.0),
        ("label_0: 3,5", 5.0),
        ("label_0: \uff13", None),  # only ASCII digits
        ("label_0:" + " " * 3000 + "4", 4.0),
        ("label_0\x85 4", 4.0),  # a line ends where a line feed is
        ("label_0 five", None),
        ("mylabel_0: 3", None),  # no separate word
        ("label_0: " + "9" * 400, None),  # no number of this world
        ("label_0 1\nlabel_0 3\nlabel_0 2", 3.0),  # of several lines the largest
    ],
)
def test_a_line_gives_a_label_its_largest_number(line: str, score: float | None) -> None:
    assert read(f"Final Scores\n{line}\n- (label_10) 1").get("label_0") == score


@pytest.mark.parametrize(
    "body",
    [
        "- (label_0) 0\n- (label_1) 5",  # one label is absent
        "- (label_0) 0\n- (label_1) 5\n- (label_10) 2\n- (label_10) 2",  # one stands twice
        "- (label_0) 0\n- (label_1) 6\n- (label_10) 2",  # above 5
        "- (label_0) 0\n- (label_1) 4/5\n- (label_10) 2",
        "- (label_0) 0\n- (label_1) 5\n- (label_10) 2\nSo label_1 it is.",
        "- (label_0) 0\n- (Label_1) 5\n- (label_10) 2",
        "- label_0: 0\n- label_1: 5\n- label_10: 2",
    ],
)
def test_the_strict_reading_accepts_only_the_requested_form(body: str) -> None:
    assert strict(f"Final Scores\n{body}") is None
    assert read(f"Final Scores\n{body}")


@pytest.mark.parametrize("frame", ["**{}**:\n\n{}", "## {}\n```\n{}\n```", "{}:\r\n{}\r\n"])
def test_formatting_around_scores_is_ignored(frame: str) -> None:
    lines = "- (label_10) 1\n- (label_0) 0\n- (label_1) 5"
    assert strict(frame.format("Final Scores", lines)) == {"label_0": 0.0, "label_1": 5.0, "label_10": 1.0}


def test_scores_of_a_dual_encoder_are_read_as_they_are() -> None:
    scores = {"label_0": 0.31, "label_1": -0.5, "label_10": 0.0}
    assert read(write_scores(scores)) == strict(write_scores(scores)) == scores
    written = {"label_0": 0.0, "label_1": 5.0, "label_10": 2.5}
    assert strict(write_answer(written)) == written
