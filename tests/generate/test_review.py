"""People review items: the sent files, the returned files, and the effect on the set."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from barista_bench.errors import DataError
from barista_bench.generate.candidates import Item, with_choices
from barista_bench.generate.generator import generate
from barista_bench.generate.review import (
    ReviewedItem,
    apply_review,
    read_review,
    retention_by_subtask,
    review_bytes,
    review_rows,
)
from tests.generate.test_sampling import STATES, candidate

ITEMS = with_choices([candidate(at, answer=STATES[at % 4]) for at in range(4)], "state", lambda _: 3, seed=0)
ROWS = review_rows("handyvqa", ITEMS, [item.id.encode() for item in ITEMS])


def judged(at: int, verdict: str, **fields: object) -> ReviewedItem:
    return msgspec.structs.replace(ROWS[at], verdict=verdict, reviewer="ada", reason="unclear", **fields)


def kept(*rows: ReviewedItem) -> list[Item]:
    return apply_review("handyvqa", ITEMS, ROWS, {row.item: row for row in rows})


def test_rejected_items_go_and_revised_texts_count() -> None:
    texts = tuple(text.upper() for text in ROWS[1].choices)
    items = kept(judged(0, "reject"), judged(1, "revise", question="Really?", choices=texts), judged(2, "accept"))
    assert [item.id for item in items] == [item.id for item in ITEMS[1:]]
    assert items[0].candidate.question == "Really?"
    assert tuple(choice.text for choice in items[0].choices) == texts
    assert items[0].candidate.right[0].text == texts[ITEMS[1].correct[0]]
    assert [c.statement for c in items[0].choices] == [c.statement for c in ITEMS[1].choices]
    assert items[1:] == ITEMS[2:]
    assert kept(judged(0, "reject", item="egocot/aog_00000")) == ITEMS, "verdicts on other families are left alone"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (msgspec.structs.replace(ROWS[0], proof="0"), "another item"),
        (judged(0, "revise", correct=(9,)), "answer were changed"),
        (judged(0, "revise", choices=("a",)), "choices or answer were changed"),
        (judged(0, "accept", item="handyvqa/state_99999"), "is not generated"),
    ],
)
def test_a_review_of_other_items_is_refused(row: ReviewedItem, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        kept(row)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"verdict": "reject", "reviewer": "ada", "reason": ""}, "without a reason"),
        ({"verdict": "accept", "reviewer": ""}, "no reviewer"),
        ({"verdict": "perhaps", "reviewer": "ada"}, "no reviewed item"),
        ({"verdict": "", "more": 1}, "no reviewed item"),
    ],
)
def test_a_verdict_that_says_too_little_is_refused(tmp_path: Path, row: dict[str, object], complaint: str) -> None:
    path = tmp_path / "review.jsonl"
    good = review_bytes([judged(0, "reject"), ROWS[1]])
    path.write_bytes(good)
    assert list(read_review(path).values()) == [judged(0, "reject"), ROWS[1]]
    path.write_bytes(good + msgspec.json.encode({**msgspec.to_builtins(ROWS[2]), **row}) + b"\n")
    with pytest.raises(DataError, match=rf"line 3: .*{complaint}.*Fix"):
        read_review(path)
    path.write_bytes(good * 2)
    with pytest.raises(DataError, match="stands twice"):
        read_review(path)


def test_retention_counts_reviewed_items_with_the_reasons() -> None:
    review = {row.item: row for row in (judged(0, "reject"), judged(1, "revise"), judged(2, "accept"))}
    (row,) = retention_by_subtask(ROWS, review)
    assert (row.reviewed, row.accepted, row.revised, row.rejected) == (3, 1, 1, 1)
    assert row.reasons == {"unclear": 2}
    assert row.rate == pytest.approx(2 / 3)
    assert retention_by_subtask(ROWS, {})[0].rate is None


def test_texts_that_a_whole_set_shares_cannot_be_revised(
    small_kitchen: Path, generated: Callable[[str], Path], tmp_path: Path
) -> None:
    rows = list(read_review(generated("vista").parent / "review.jsonl").values())
    revised = msgspec.structs.replace(rows[0], question="Really?", verdict="revise", reason="unclear", reviewer="ada")
    (tmp_path / "review.jsonl").write_bytes(review_bytes([revised]))
    with pytest.raises(DataError, match=r"its whole set shares its texts\. Fix: reject it"):
        generate(small_kitchen, tmp_path / "again", ["vista"], per_subtask=4, review=tmp_path / "review.jsonl")
