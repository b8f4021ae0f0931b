"""The audit of a set: its counts, the text of its page, and hostile texts, which stay texts."""

import html
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barista_bench.data.folder import build
from barista_bench.errors import DataError
from barista_bench.generate.audit import audit_sets, choice_sets, generated_sets
from barista_bench.generate.shortcuts import ALPHA, GUESSERS, TextQuestion, guess, guessable_indices
from barista_bench.reporting.audit_page import audit_page, verdict

WORDS = ("empty", "full", "open", "closed")


def asked(video: int, right: int, choices: tuple[str, ...] = WORDS, question: str = "Which?") -> TextQuestion:
    return TextQuestion(f"v{video}", question, choices, (right,))


def test_balance_and_places_are_counted_and_similar_choices_are_named() -> None:
    (audit,) = audit_sets({"state": [asked(0, 0), asked(0, 0), asked(1, 3), asked(1, 3)]})
    assert (audit.items, audit.videos, audit.per_video) == (4, 2, (2, 2.0, 2))
    assert dict(audit.answers) == {"empty": 2, "closed": 2}
    assert audit.places == (2, 0, 0, 2)
    (audit,) = audit_sets({"state": [asked(0, 0, ("a cup", "the cup", "a jar", "a pot"))]})
    assert audit.alike == ((0, "a cup", "the cup"),)


def test_the_audit_calls_a_guessable_set_guessable_and_a_fair_set_fair() -> None:
    rng = random.Random(0)
    guessed = [asked(at % 6, WORDS.index("full")) for at in range(60)]
    fair = [asked(at % 6, rng.randrange(4)) for at in range(60)]
    audits = audit_sets({"guessed": guessed, "fair": fair})
    assert verdict(audits) == "guessed can be guessed better than by chance without looking at the video."
    for audit in audits:
        assert all(result.p_adjusted >= result.guesses.p_value for result in audit.guessers)


@pytest.mark.full
def test_a_built_set_is_audited_task_by_task(generated: Callable[[str], Path], tmp_path: Path) -> None:
    folder = build(generated("handyvqa"), tmp_path / "set", benchmark="handyvqa", frames="linked", cache=False).folder
    sets = choice_sets(str(folder), "handyvqa")
    assert sets
    assert not {"rvos_objects", "rvos_parts"} & set(sets)
    page = audit_page("a set", audit_sets(sets))
    assert all(f'id="task-{at}"' in page for at in range(len(sets)))
    assert "script-src 'none'" in html.unescape(page)


def test_a_set_without_choices_is_an_error(generated: Callable[[str], Path], tmp_path: Path) -> None:
    folder = build(generated("tog_bench"), tmp_path / "set", benchmark="tog_bench", frames="linked", cache=False).folder
    with pytest.raises(DataError, match=r"none of its tasks has choices\. Fix"):
        choice_sets(str(folder), "tog_bench")


def test_hostile_texts_are_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    page = audit_page(hostile, audit_sets({hostile: [asked(0, 0, (hostile, "b", "c", "d")), asked(1, 1)]}))
    assert hostile not in page
    assert "&lt;script&gt;" in page


def test_the_audit_counts_generated_items_by_family_and_subtask(tmp_path: Path) -> None:
    choices = [{"text": word} for word in WORDS]
    lines = [
        {"subtask": subtask, "video_id": "v", "question": "Which?", "choices": choices, "correct": [1]}
        for subtask in ("state", "state", "rvos_parts")
    ]
    (tmp_path / "handyvqa.items.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert generated_sets(tmp_path) == {"handyvqa state": [TextQuestion("v", "Which?", WORDS, (1,))] * 2}
    (tmp_path / "egocot.items.jsonl").write_text('{"subtask": 1}')
    with pytest.raises(DataError, match=r"egocot\.items\.jsonl.*Fix"):
        generated_sets(tmp_path)


NUMBERS = tuple(f"{number:0{4 + number % 4}d}" for number in range(400))


def distinct(at: int, right: int, **fields: Any) -> TextQuestion:
    """A question with four choices that no other question has."""
    return TextQuestion(f"v{at % 6}", "Which?", NUMBERS[4 * at : 4 * at + 4], (right,))._replace(**fields)


SHORTCUTS: dict[str, Callable[[int], TextQuestion]] = {
    "place": lambda at: distinct(at, 2),
    "length": lambda at: distinct(at, 3),
    "overlap": lambda at: distinct(at, at % 4, question=f"Is it {NUMBERS[4 * at + at % 4]}?"),
    "offered": lambda at: distinct(at, at % 4, choices=tuple(f"{at} {i}" if i != at % 4 else "full" for i in range(4))),
    "offered_in_video": lambda at: distinct(
        at, at % 4, choices=tuple(f"{at} {i}" if i != at % 4 else f"full {at % 6}" for i in range(4))
    ),
    "same_video": lambda at: distinct(
        at, (at % 6 + at // 6) % 4, choices=tuple(f"{(i - at // 6) % 4}" for i in range(4))
    ),
}


@pytest.mark.parametrize("guesser", SHORTCUTS)
def test_a_shortcut_is_found_in_either_direction_and_removed(guesser: str) -> None:
    told = [SHORTCUTS[guesser](at) for at in range(60)]
    guesses, _ = guess(told, guesser) or pytest.fail("learned nothing")
    assert guesses.accuracy == 1.0
    kept = sorted(set(range(len(told))) - set(guessable_indices(told)))
    for name in GUESSERS:
        assert all(guesses.p_value >= ALPHA for guesses in guess([told[at] for at in kept], name) or ()), name


def test_the_opposite_of_a_guesser_is_tested_too() -> None:
    shortest = [distinct(at, 0) for at in range(60)]
    longest, opposite = guess(shortest, "length") or pytest.fail("learned nothing")
    assert (longest.accuracy, opposite.accuracy) == (0.0, 1.0)
    assert opposite.p_value < 1e-9
    (audit,) = audit_sets({"state": shortest})
    assert audit.best.p_adjusted < ALPHA


def test_answers_of_half_of_the_videos_that_return_in_the_other_half_are_found() -> None:
    usual = [asked(at % 6, at % 6 // 4) for at in range(60)]
    guesses, _ = guess(usual, "half") or pytest.fail("learned nothing")
    assert guesses.p_value < ALPHA
    assert guess(usual[:1], "half") is None
