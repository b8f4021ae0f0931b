"""A set with a wording that gives nothing away."""

from collections import Counter

import msgspec

from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.handyvqa.family import sample_balanced
from barista_bench.generate.statements import Seen
from tests.generate.graphs import candidate_of


def candidate(at: int, right: str, distractors: list[str]) -> QuestionCandidate:
    choices = [Choice(text, Seen(text, at)) for text in (right, *distractors)]
    return candidate_of(*choices, video_id=f"v{at % 3}", question=f"{at}?", frames=(at,))


def words(_: QuestionCandidate, choice: Choice) -> list[str]:
    return choice.text.split()


def sampled(candidates: list[QuestionCandidate], size: int = 100) -> list[QuestionCandidate]:
    return sample_balanced(candidates, size, 0, lambda _: 2, words)


NAMES = ["cup", "jar", "pot", "lid"]
OFFERED = [candidate(at, NAMES[at % 4], [name for name in NAMES if name != NAMES[at % 4]]) for at in range(60)]


def test_each_word_is_wrong_in_proportion_to_how_often_it_is_right() -> None:
    kept = sampled(OFFERED)
    assert len(kept) == 60
    rights = Counter(c.right[0].text for c in kept)
    wrongs = Counter(choice.text for c in kept for choice in c.distractors)
    assert all(len(c.distractors) == 2 for c in kept)
    for name in NAMES:
        assert abs(wrongs[name] - 2 * rights[name]) <= 3 + (2 * rights[name]) ** 0.5


def test_an_answer_that_is_never_wrong_is_asked_for_a_few_times_and_one_never_right_passed_over() -> None:
    kept = sampled([candidate(at, "tamper", ["cup", "jar", "pot"]) for at in range(40)])
    assert 0 < len(kept) < 8
    ghost = Choice("ghost", Seen("ghost", 0))
    haunted = [msgspec.structs.replace(c, distractors=(ghost, *c.distractors)) for c in OFFERED]
    assert sum(choice == ghost for c in sampled(haunted) for choice in c.distractors) <= 3


def test_the_sampler_takes_no_more_than_asked_in_any_order_of_offers() -> None:
    kept = sampled(OFFERED, 10)
    assert len(kept) == 10
    assert kept == sampled(OFFERED[::-1], 10)
    assert sampled([]) == []
