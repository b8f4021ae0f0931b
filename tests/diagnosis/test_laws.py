"""Two laws of aids: an exact reasoner needs nothing else, and a literal copier gains nothing.

Copiers are gated where answers are chosen or structured. Where only words are compared, aids supply words: a diagnosis
says so. `activity` has no reasoner: facts do not decide which label annotators give to an activity.
"""

from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest

from barista_bench.aids.texts import AidBook
from barista_bench.benchmarks import get_task
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.errors import BaristaError
from barista_bench.mini import write_kitchen
from barista_bench.testing.aid_laws import ENOUGH, check_aid_laws, copier_gains, reasoner_scores
from barista_bench.testing.laws import LawError
from tests.conftest import MadeOnce
from tests.diagnosis.conftest import SAMPLING, TASKS, Aids
from tests.diagnosis.reasoners import exact_reasoner

PARTLY_SEEN = 0.9
"""Places of what is seen on only a part of a window count by the frames that show it, which aids do not say."""


@pytest.mark.parametrize("name", [name for name in TASKS if name != "temporal_vqa"])
def test_aids_suffice_and_a_copier_gains_nothing_for_every_set_of_levels(name: str, aids_of: Aids) -> None:
    _, examples, book = aids_of(name)
    check_aid_laws(book, examples, None if name == "activity" else exact_reasoner(book))


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
    check_aid_laws(book, examples, None)


def test_an_aid_that_lacks_facts_breaks_the_law(aids_of: Aids) -> None:
    _, examples, book = aids_of("relations")
    with pytest.raises(LawError, match="tell all facts"):
        check_aid_laws(book, examples, lambda *_: "[]")
    assert issubclass(LawError, BaristaError)


@pytest.fixture(scope="session")
def many_kitchens(made_once: MadeOnce) -> Path:
    """At least 500 examples of each task."""

    def make(root: Path) -> None:
        write_kitchen(root / "kitchen", videos=38, width=128, height=72, fps=15, seconds=(8.0, 9.0), num_proc=1)
        sampling = {
            **SAMPLING,
            "relations": {"frame_step": 10},
            "activity": {"frames": 4},
            "grounding": {"limit": 600},
            "hand_object": {"limit": 600},
        }
        build(root / "kitchen", root / "data", frames="linked", sampling=sampling, cache=False)

    return made_once("diagnosis/many", make) / "data"


@pytest.mark.full
@pytest.mark.parametrize("name", ["grounding", "hand_object", "relations", "activity"])
def test_the_upper_limit_of_a_copiers_gain_is_below_two_hundredths(name: str, many_kitchens: Path) -> None:
    task, examples = get_task("barista", name), open_examples(many_kitchens, "barista", name)
    book = AidBook.open(task, examples.examples, str(many_kitchens))
    assert sum(bool(book.levels(example)) for example in examples.examples) >= ENOUGH
    check_aid_laws(book, examples.examples, None)
