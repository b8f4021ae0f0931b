"""Several reviews of the same items: the verdict that counts for each item, and how well the reviewers agree.

Each reviewer has a review file (`review.py`). The verdict of the lead's file counts if there is one. Otherwise, the
verdict of more than half of the reviewers who judged the item counts. Reviewers who revise an item agree only if their
texts are equal. An item without such a verdict is undecided, and needs the lead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from barista_bench.errors import DataError
from barista_bench.generate.review import KEPT, Retention, ReviewedItem, read_review, retention_by_subtask
from barista_bench.stats.agreement import krippendorff_alpha


class ItemVotes(NamedTuple):
    """The verdicts of the reviewers on one item, and the lead's row. `item` is the row of the first file."""

    item: ReviewedItem
    votes: tuple[ReviewedItem, ...]
    lead: ReviewedItem | None

    @property
    def majority(self) -> ReviewedItem | None:
        """Return the first row with the verdict of more than half of the reviewers."""
        (verdict, count), *_ = Counter(row.verdict for row in self.votes).most_common() or [("", 0)]
        rows = [row for row in self.votes if row.verdict == verdict]
        has_one_text = verdict != "revise" or len({(row.question, row.choices) for row in rows}) == 1
        return rows[0] if 2 * count > len(self.votes) and has_one_text else None

    @property
    def decided(self) -> ReviewedItem | None:
        """Return the row that counts: the row without a verdict if no one judged the item, None if it is undecided."""
        if self.lead or not self.votes:
            return self.lead or self.item
        return self.majority

    @property
    def passes(self) -> int:
        """Return the number of people, with the lead, who keep the item with the texts that count."""
        decided = self.decided
        if not decided or decided.verdict not in KEPT:
            return 0
        rows = (*self.votes, *([self.lead] if self.lead else []))
        kept = decided.verdict, decided.question, decided.choices
        return len({row.reviewer for row in rows if (row.verdict, row.question, row.choices) == kept})


class ReviewStatistics(msgspec.Struct, frozen=True):
    """The result of a review by several people.

    Args:
        items: number of items in the files.
        retention: kept and rejected items of each subtask, by the verdicts that count.
        compared: number of items that two or more reviewers judged. The lead does not count as a reviewer.
        agreed: number of compared items on which all reviewers gave the same verdict.
        alpha: Krippendorff's alpha of the verdicts on compared items, as nominal values. None if no items are compared,
            or if all verdicts are equal.
        adjudicated: number of items that the lead decided.
        overruled: number of adjudicated items on which a majority of the reviewers had another verdict.
        undecided: ids of the items that need the lead.
    """

    items: int
    retention: tuple[Retention, ...]
    compared: int
    agreed: int
    alpha: float | None
    adjudicated: int
    overruled: int
    undecided: tuple[str, ...]

    @property
    def total(self) -> Retention:
        """Return the retention over all subtasks."""
        reasons = Counter[str]()
        for row in self.retention:
            reasons.update(row.reasons)
        return Retention(
            subtask="all",
            reviewed=sum(row.reviewed for row in self.retention),
            accepted=sum(row.accepted for row in self.retention),
            revised=sum(row.revised for row in self.retention),
            rejected=sum(row.rejected for row in self.retention),
            reasons=dict(reasons.most_common()),
        )


def read_votes(files: Sequence[Path], lead: Path | None = None) -> list[ItemVotes]:
    """Read the review files of several reviewers and of a lead. Returns the items in the order of the files.

    Raises:
        DataError: a file is invalid, or two files are about different items.
    """
    reviews = {path: read_review(path) for path in (*files, *([lead] if lead else []))}
    first_seen: dict[str, tuple[Path, ReviewedItem]] = {}
    for path, review in reviews.items():
        for name, row in review.items():
            first_path, first = first_seen.setdefault(name, (path, row))
            if (row.proof, row.correct) != (first.proof, first.correct):
                remedy = "give reviews of the items of one call of `generate`"
                raise DataError(f"{path}: {name}: is another item than in {first_path}. Fix: {remedy}")
    voting, leading = [reviews[path] for path in files], reviews[lead] if lead else {}
    return [_votes(row, voting, leading) for _, row in first_seen.values()]


def _votes(
    item: ReviewedItem, reviews: Sequence[Mapping[str, ReviewedItem]], lead: Mapping[str, ReviewedItem]
) -> ItemVotes:
    rows = (review.get(item.item) for review in reviews)
    lead_row = lead.get(item.item)
    votes = tuple(row for row in rows if row and row.verdict)
    return ItemVotes(item, votes, lead_row if lead_row and lead_row.verdict else None)


def decided_review(files: Sequence[Path], lead: Path | None = None) -> dict[str, ReviewedItem]:
    """Return the verdict that counts for each item, by id.

    Raises:
        DataError: a file cannot be used, or an item is undecided.
    """
    review, undecided = {}, []
    for votes in read_votes(files, lead):
        if decided := votes.decided:
            review[decided.item] = decided
        else:
            undecided.append(votes.item.item)
    if undecided:
        where = "in the file of --lead" if lead else "in a review file of a lead, and name it with --lead"
        raise DataError(
            f"{undecided[0]}: the reviewers do not agree, as on {len(undecided) - 1} other items. "
            f"Fix: give each a verdict {where} (`barista-bench generate reviewed` lists them)"
        )
    return review


def review_statistics(items: Sequence[ItemVotes]) -> ReviewStatistics:
    """Return the retention and the agreement of a review."""
    compared = [votes for votes in items if len(votes.votes) > 1]
    adjudicated = [votes for votes in items if votes.lead]
    overruled = [row for row in adjudicated if row.lead and row.majority and row.lead.verdict != row.majority.verdict]
    decided = {votes.item.item: votes.decided for votes in items}
    blank = [msgspec.structs.replace(votes.item, verdict="") for votes in items]
    review = {name: row for name, row in decided.items() if row}
    return ReviewStatistics(
        items=len(items),
        retention=tuple(retention_by_subtask(blank, review)),
        compared=len(compared),
        agreed=sum(len({row.verdict for row in votes.votes}) == 1 for votes in compared),
        alpha=krippendorff_alpha([[row.verdict for row in votes.votes] for votes in compared]),
        adjudicated=len(adjudicated),
        overruled=len(overruled),
        undecided=tuple(name for name, row in decided.items() if row is None),
    )
