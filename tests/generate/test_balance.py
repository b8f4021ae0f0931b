"""A set whose wording gives nothing away."""

from __future__ import annotations

from collections import Counter

from barista_bench.generate.candidates import Choice, QuestionCandidate, sample_balanced
from barista_bench.generate.statements import Seen


def candidate(at: int, right: str, distractors: list[str]) -> QuestionCandidate:
    choices = [Choice(text, Seen(text, at)) for text in (right, *distractors)]
    return QuestionCandidate(
        subtask="s",
        video_id=f"v{at % 3}",
        question=f"{at}?",
        right=(choices[0],),
        distractors=tuple(choices[1:]),
        span=(0, 10),
        frames=(at,),
    )


def words(_: QuestionCandidate, choice: Choice) -> list[str]:
    return choice.text.split()


def sampled(candidates: list[QuestionCandidate], size: int = 100) -> list[QuestionCandidate]:
    return sample_balanced(candidates, size, 0, lambda _: 2, words)


NAMES = ["cup", "jar", "pot", "lid"]


def test_each_word_is_wrong_in_proportion_to_how_often_it_is_right() -> None:
    offered = [candidate(at, NAMES[at % 4], [name for name in NAMES if name != NAMES[at % 4]]) for at in range(60)]
    kept = sampled(offered)
    assert len(kept) == 60
    rights = Counter(c.right[0].text for c in kept)
    wrongs = Counter(choice.text for c in kept for choice in c.distractors)
    assert all(len(c.distractors) == 2 for c in kept)
    for name in NAMES:
        assert abs(wrongs[name] - 2 * rights[name]) <= 3 + (2 * rights[name]) ** 0.5


def test_an_answer_that_is_never_wrong_is_asked_for_a_few_times_only() -> None:
    offered = [candidate(at, "tamper", ["cup", "jar", "pot"]) for at in range(40)]
    kept = sampled(offered)
    assert 0 < len(kept) < 8


def test_a_wrong_answer_that_is_never_right_is_passed_over_for_one_that_is() -> None:
    offered = [
        candidate(at, NAMES[at % 4], ["ghost", *(name for name in NAMES if name != NAMES[at % 4])]) for at in range(60)
    ]
    ghosts = sum(choice.text == "ghost" for c in sampled(offered) for choice in c.distractors)
    assert ghosts <= 3


def test_no_more_than_asked_for_in_whatever_order_they_are_offered() -> None:
    offered = [candidate(at, NAMES[at % 4], [name for name in NAMES if name != NAMES[at % 4]]) for at in range(60)]
    kept = sampled(offered, 10)
    assert len(kept) == 10
    assert kept == sampled(offered[::-1], 10)


def test_nothing_of_nothing() -> None:
    assert sampled([]) == []
