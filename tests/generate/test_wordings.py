"""Wordings: enough of them, all with the same claim in them, and dealt so that none tells the answer."""

import re
from collections import Counter

import pytest

from barista_bench.generate.audit import audit_sets
from barista_bench.generate.candidates import Choice, Item
from barista_bench.generate.shortcuts import TextQuestion, guessable_indices
from barista_bench.generate.statements import Seen
from barista_bench.generate.wordings import _templates, assign_forms, plain_text, wording_forms
from barista_bench.reporting.audit_page import verdict
from tests.generate.graphs import candidate_of

WORDINGS = [f"{family}/{key}" for family, keys in _templates().items() for key in keys]


@pytest.mark.parametrize("wording", WORDINGS)
def test_a_wording_has_twelve_forms_that_all_contain_the_filled_in_words(wording: str) -> None:
    every = wording_forms(wording)
    assert len(set(every)) == len(every) >= 12
    slots = [sorted(re.findall(r"\{(\w+)", form)) for form in every]
    assert all(names == slots[0] for names in slots)
    assert all(re.search(r"[.?]$|\{end\}$", form) and "  " not in form for form in every)


def item(at: int, answer: str) -> Item:
    right = Choice(answer, Seen(answer, at))
    slots = {"time": "00:01.00", "side": "left"}
    said = {"question": plain_text("egocot/AOG", slots), "wording": "egocot/AOG", "slots": slots}
    candidate = candidate_of(right, subtask="AOG", video_id=f"v{at % 5}", frames=(at,), **said)
    return Item(id=f"i{at}", candidate=candidate, choices=(right,), correct=(0,))


def test_forms_fall_to_every_answer_equally_often_by_seed() -> None:
    items = [item(at, "cup" if at % 3 else "jar") for at in range(96)]
    said = assign_forms(items, 0)
    assert [row.id for row in said] == [row.id for row in items]
    assert said == assign_forms(items, 0) != assign_forms(items, 1)
    number = len(wording_forms("egocot/AOG"))
    for answer, count in (("cup", 64), ("jar", 32)):
        dealt = Counter(row.candidate.form for row in said if row.candidate.right_text == answer)
        assert len(dealt) == number
        assert set(dealt.values()) <= {count // number, -(-count // number)}
    assert all("00:01.00" in row.candidate.question and "left hand" in row.candidate.question for row in said)


@pytest.mark.parametrize("label", ["form", "difficulty"])
def test_a_form_or_a_level_that_tells_the_place_is_found_and_left_out(label: str) -> None:
    choices = [[f"{at}{letter}" for letter in "abcd"] for at in range(60)]
    told = [
        TextQuestion(f"v{at % 6}", "Which?", tuple(c), (at % 4,), **{label: str(at % 4)})
        for at, c in enumerate(choices)
    ]
    audits = audit_sets({"told": told})
    assert verdict(audits).startswith("told can be guessed")
    by_guesser = {result.guesser: result for result in audits[0].guessers if not result.guesses.opposite}
    assert by_guesser[label].guesses.accuracy == 1.0
    assert label in by_guesser
    assert len({"form", "difficulty"} & set(by_guesser)) == 1
    assert len(guessable_indices(told)) > 20
