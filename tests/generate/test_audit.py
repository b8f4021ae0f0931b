"""The audit of a set: what it counts, what its page says, and that hostile texts stay texts."""

import html
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.data.folder import build
from barista_bench.errors import DataError
from barista_bench.generate.audit import audit_sets, choice_sets, generated_sets
from barista_bench.generate.shortcuts import TextQuestion
from barista_bench.reporting.audit_page import audit_page, verdict

WORDS = ("empty", "full", "open", "closed")


def asked(video: int, right: int, choices: tuple[str, ...] = WORDS, question: str = "Which?") -> TextQuestion:
    return TextQuestion(f"v{video}", question, choices, (right,))


def test_balance_places_lengths_and_shared_words_are_counted_and_choices_alike_named() -> None:
    (audit,) = audit_sets({"state": [asked(0, 0), asked(0, 0), asked(1, 3), asked(1, 3)]})
    assert (audit.items, audit.videos, audit.per_video) == (4, 2, (2, 2.0, 2))
    assert dict(audit.answers) == {"empty": 2, "closed": 2}
    assert audit.places == (2, 0, 0, 2)
    assert (audit.longest_right, audit.longest_chance) == (0.5, 0.25)
    (audit,) = audit_sets({"state": [asked(video, 1, question="Is it full?") for video in range(3)]})
    assert (audit.shared_right, audit.shared_distractors) == (1.0, 0.0)
    (audit,) = audit_sets({"state": [asked(0, 0, ("a cup", "the cup", "a jar", "a pot"))]})
    assert audit.alike == ((0, "a cup", "the cup"),)


def test_a_set_that_can_be_guessed_is_said_to_be_and_a_fair_one_is_not() -> None:
    rng = random.Random(0)
    guessed = [asked(at % 6, WORDS.index("full")) for at in range(60)]
    fair = [asked(at % 6, rng.randrange(4)) for at in range(60)]
    audits = audit_sets({"guessed": guessed, "fair": fair})
    assert verdict(audits) == "guessed can be guessed better than by chance without looking at the video."
    for audit in audits:
        assert all(result.p_adjusted >= result.guesses.p_value for result in audit.guessers)
    (alone,) = audit_sets({"alone": [asked(0, 0)]})
    assert "not known" in verdict([alone])


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
    with pytest.raises(DataError, match=r"no task of it gives choices\. Remedy"):
        choice_sets(str(folder), "tog_bench")


def test_hostile_texts_are_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    page = audit_page(hostile, audit_sets({hostile: [asked(0, 0, (hostile, "b", "c", "d")), asked(1, 1)]}))
    assert hostile not in page
    assert "&lt;script&gt;" in page


def test_what_was_generated_is_audited_by_family_and_subtask(tmp_path: Path) -> None:
    choices = [{"text": word} for word in WORDS]
    lines = [
        {"subtask": subtask, "video_id": "v", "question": "Which?", "choices": choices, "correct": [1]}
        for subtask in ("state", "state", "rvos_parts")
    ]
    (tmp_path / "handyvqa.items.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert generated_sets(tmp_path) == {"handyvqa state": [TextQuestion("v", "Which?", WORDS, (1,))] * 2}
    (tmp_path / "egocot.items.jsonl").write_text('{"subtask": 1}')
    with pytest.raises(DataError, match=r"egocot\.items\.jsonl.*Remedy"):
        generated_sets(tmp_path)
