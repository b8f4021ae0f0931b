"""The sampler chooses decided candidates, in balance, whose texts do not give the answer away."""

import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from barista_bench.generate.candidates import (
    DECIDED,
    REPEATED,
    Choice,
    QuestionCandidate,
    Tally,
    are_alike,
    decide_candidate,
    keep_most,
    one_per_event,
    reasons_of,
    sample_candidates,
    with_choices,
)
from barista_bench.generate.shortcuts import ALPHA, GUESSERS, TextQuestion, guess, guessable_indices
from barista_bench.generate.statements import HasValue, Seen
from tests.generate.graphs import candidate_of, graph_document, scene_of

STATES = ("empty", "being filled", "full", "emptying")


def candidate(at: int = 0, *, answer: str = "empty", video: str = "v1", subtask: str = "state") -> QuestionCandidate:
    """A question about a cup; its state is `answer`, and the other choices are wrong."""
    values = dict.fromkeys((answer, *STATES))
    choices = [Choice(value, HasValue("cup", "state", value, at)) for value in values]
    fields = {"subtask": subtask, "video_id": video, "question": f"How is the cup at {at}?"}
    return candidate_of(*choices, **fields, given=(Seen("cup", at),), frames=(at,))


def test_a_candidate_is_asked_with_the_wrong_answers_that_the_graph_excludes(tmp_path: Path) -> None:
    attributes = [("cup", "state", "empty", (0, 50)), ("cup", "state", "being filled", (50, 100))]
    content = graph_document({"cup": "coffee cup"}, attributes=attributes, seen={"cup": [(0, 80)]})
    scene = scene_of(tmp_path, content)
    proved = decide_candidate(candidate(20), scene, 3)
    assert isinstance(proved, QuestionCandidate)
    assert {choice.text for choice in proved.distractors} == {"being filled", "full", "emptying"}
    assert decide_candidate(candidate(60), scene, 3) == "the graph does not prove the answer"
    assert decide_candidate(candidate(95), scene, 3) == "its object is not clearly visible"
    assert decide_candidate(candidate(20), scene, 4) == "too few answers that the graph excludes"


def test_of_one_event_a_subtask_asks_once_and_counts_the_others() -> None:
    tally = Tally()
    asked = [candidate(at, answer=answer) for at in range(10) for answer in ("empty", "full")]
    for question in asked:
        tally[question.subtask, DECIDED] += 1
    kept = one_per_event(asked, 0, tally)
    assert sorted(item.answer_class for item in kept) == ["empty", "full"]
    assert reasons_of("state", tally) == {DECIDED: 2, REPEATED: 18}
    assert kept == one_per_event(asked[::-1], 0, Tally())[::-1]
    named = [msgspec.structs.replace(candidate, event=f"at {candidate.frames[0]}") for candidate in asked]
    assert len(one_per_event(named, 0, Tally())) == 10


def test_the_same_answer_at_the_same_moments_is_asked_for_once() -> None:
    asked = [msgspec.structs.replace(candidate(3), event=name) for name in ("taken up", "moved")]
    tally = Tally({("state", DECIDED): 2})
    assert len(one_per_event(asked, 0, tally)) == 1
    assert reasons_of("state", tally) == {DECIDED: 1, REPEATED: 1}
    later = msgspec.structs.replace(candidate(4), event="moved")
    assert len(one_per_event([*asked, later], 0, Tally())) == 2


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("The red cup.", "red cup", True),
        ("a Cup", "the cup", True),
        ("colour", "color", True),
        ("left hand", "right hand", False),
        ("open", "opened", False),
        ("on", "under", False),
        ("second 1", "second 2", False),
    ],
)
def test_texts_that_a_reader_cannot_tell_apart_are_one_choice(first: str, second: str, same: bool) -> None:
    assert are_alike(first, second) is same


def test_videos_and_answers_are_drawn_in_turn() -> None:
    pool = [candidate(at, answer=STATES[at % 2], video=f"v{at % 3}") for at in range(60)]
    pool += [candidate(at, answer="full", video="v0") for at in range(60, 64)]
    sampled = sample_candidates(pool, 12, seed=0)
    assert Counter(c.right[0].text for c in sampled) == {"empty": 4, "being filled": 4, "full": 4}
    assert max(Counter(c.video_id for c in sampled).values()) <= 6


@given(st.randoms(use_true_random=False), st.integers(1, 30))
def test_the_draw_does_not_depend_on_the_order_of_candidates(rng: random.Random, size: int) -> None:
    pool = [candidate(at, answer=STATES[at % 4], video=f"v{at % 5}") for at in range(40)]
    shuffled = rng.sample(pool, len(pool))
    assert sample_candidates(shuffled, size, seed=3) == sample_candidates(pool, size, seed=3)
    assert sorted(c.frames for c in keep_most(shuffled, size, 3)) == sorted(c.frames for c in keep_most(pool, size, 3))


def test_a_video_keeps_of_each_subtask_no_more_than_it_may_offer() -> None:
    pool = [candidate(at, answer=STATES[at % 2], subtask=name) for name in ("a", "b") for at in range(20)]
    kept = keep_most(pool, 6, seed=0)
    assert Counter((c.subtask, c.right[0].text) for c in kept) == {
        (subtask, answer): 3 for subtask in "ab" for answer in STATES[:2]
    }


def test_the_right_choice_takes_each_place_equally_often_and_all_choices_are_kept() -> None:
    sampled = [candidate(at, answer=STATES[at % 4]) for at in range(40)]
    items = with_choices(sampled, "state", lambda _: 3, seed=0)
    assert Counter(item.correct for item in items) == {(index,): 10 for index in range(4)}
    for item, source in zip(items, sampled, strict=True):
        assert item.choices[item.correct[0]] == source.right[0]
        assert {choice.text for choice in item.choices} == set(STATES)
    assert len({item.id for item in items}) == 40


def test_a_choice_is_wrong_in_proportion_to_how_often_it_is_right() -> None:
    sampled = [candidate(at, answer="empty" if at % 4 else "full") for at in range(40)]
    items = with_choices(sampled, "state", lambda _: 1, seed=0)
    distractors = Counter(
        choice.text for item in items for at, choice in enumerate(item.choices) if at not in item.correct
    )
    assert distractors["empty"] == 10  # wherever it is not right
    assert distractors["full"] >= 10  # as often as it is right
    assert abs(distractors["being filled"] - distractors["emptying"]) <= 1  # never right: all share the rest equally


def asked(video: int, question: str, choices: tuple[str, ...], right: str) -> TextQuestion:
    return TextQuestion(f"v{video}", question, choices, (choices.index(right),))


def fair(count: int, seed: int = 0) -> list[TextQuestion]:
    rng = random.Random(seed)
    return [asked(at % 8, "Which?", tuple(rng.sample(STATES, 4)), rng.choice(STATES)) for at in range(count)]


@pytest.mark.parametrize("guesser", ["text", "prior"])
def test_the_guesser_finds_a_usual_answer_and_misses_an_unusual_one(guesser: str) -> None:
    biased, _ = guess(usual(60), guesser) or pytest.fail("learned nothing")
    unbiased, _ = guess(fair(200), guesser) or pytest.fail("learned nothing")
    assert biased.accuracy == 1.0
    assert biased.p_value < 1e-9 < 0.01 < unbiased.p_value
    assert abs(unbiased.accuracy - 0.25) < 0.12
    assert unbiased.chance == 0.25


def test_the_guesser_finds_an_answer_that_the_question_text_gives_away() -> None:
    rng = random.Random(1)
    candidates = [
        asked(at % 8, f"Which of these, {STATES[at % 4]}?", tuple(rng.sample(STATES, 4)), STATES[at % 4])
        for at in range(80)
    ]
    text, _ = guess(candidates, "text") or pytest.fail("learned nothing")
    prior, _ = guess(candidates, "prior") or pytest.fail("learned nothing")
    assert text.accuracy > 0.9
    assert prior.accuracy < 0.5


def usual(count: int) -> list[TextQuestion]:
    """`full` is right at every place."""
    rng = random.Random(1)
    return [asked(at % 8, "Which?", tuple(rng.sample(STATES, 4)), "full") for at in range(count)]


def test_guessable_questions_are_dropped_until_guessing_is_at_chance_or_below_a_ceiling() -> None:
    mixed = [*fair(60), *usual(40)]
    left_out = set(guessable_indices(mixed))
    kept = [question for at, question in enumerate(mixed) if at not in left_out]
    for guesser in GUESSERS:
        assert all(guesses.p_value >= ALPHA for guesses in guess(kept, guesser) or ())
    assert not guessable_indices(kept)
    fewer = set(guessable_indices(mixed, ceiling=0.4))
    prior, _ = guess([question for at, question in enumerate(mixed) if at not in fewer], "prior") or pytest.fail(
        "nothing"
    )
    assert prior.accuracy <= 0.4
    assert 0 < len(fewer) < len(left_out)
    assert guess([asked(0, "Which?", STATES, "full")] * 9, "prior") is None, "one video gives nothing to learn from"
