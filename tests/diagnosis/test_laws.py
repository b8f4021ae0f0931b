"""Two laws of aids: an exact reasoner needs nothing else, and a literal copier gains nothing.

Copiers are gated where answers are chosen or structured. Where only words are compared, aids supply words: a diagnosis
says so. `activity` has no reasoner: which label annotators give to what is seen does not follow from facts.
"""

from collections import defaultdict
from statistics import fmean

import pytest

from barista_bench.aids.levels import TASK_LEVELS
from barista_bench.errors import BaristaError
from barista_bench.testing.aid_laws import check_aids, copier_gains, reasoner_scores
from barista_bench.testing.laws import LawError
from tests.diagnosis.conftest import Aids
from tests.diagnosis.reasoners import exact_reasoner

PARTLY_SEEN = 0.9
"""Places of what is seen on only a part of a window count by the frames that show it, which aids do not say."""


@pytest.mark.parametrize("name", [name for _, name in TASK_LEVELS if name != "temporal_vqa"])
def test_aids_suffice_and_a_copier_gains_nothing_for_every_set_of_levels(name: str, aids_of: Aids) -> None:
    _, examples, book = aids_of(name)
    check_aids(book, examples, None if name == "activity" else exact_reasoner(book))


def test_aids_suffice_for_every_kind_of_change(aids_of: Aids) -> None:
    _, examples, book = aids_of("temporal_vqa")
    scores: dict[str, list[float]] = defaultdict(list)
    for example in examples:
        scores[str(example.target["category"])] += reasoner_scores(book, [example], exact_reasoner(book))
    for kind, values in scores.items():
        assert fmean(values) >= (PARTLY_SEEN if kind == "relation_change" else 0.9999), kind


def test_a_copier_of_free_text_gains_words_and_is_not_gated(aids_of: Aids) -> None:
    _, examples, book = aids_of("referring")
    gains = copier_gains(book, examples)
    assert max(fmean(values) for values in gains.values()) > 0.02
    check_aids(book, examples, None)


def test_an_aid_that_lacks_facts_breaks_the_law(aids_of: Aids) -> None:
    _, examples, book = aids_of("relations")
    with pytest.raises(LawError, match="tell all facts"):
        check_aids(book, examples, lambda *_: "[]")
    assert issubclass(LawError, BaristaError)
