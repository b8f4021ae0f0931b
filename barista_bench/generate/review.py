"""The review of generated items by people, in a file that decides which items are released.

The file has one JSON object per line. `generate` writes it with empty verdicts. A reviewer, or the studio's page, fills
in `verdict` (accept, revise, reject), `reason` and `reviewer`. For `revise`, the texts in `question` and `choices` are
changed too. If `generate` is run again with the file, it leaves out rejected items and uses revised texts. The proof of
an item stays the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from barista_bench.errors import DataError
from barista_bench.files.reading import read_json_lines
from barista_bench.generate.candidates import Choice, Item

MAX_LINE = 2**20
"""Maximum number of bytes of one reviewed item."""
_REMEDY = "Fix: generate with the same graphs, domain, seed and number of items as when the review file was written"
Verdict = Literal["accept", "revise", "reject"]
KEPT: tuple[Verdict, ...] = ("accept", "revise")
"""Verdicts after which an item stays in the set. All verdicts except accept need a reason."""
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]
Note = Annotated[str, msgspec.Meta(max_length=10_000)]


class ReviewedItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One item and its review.

    Args:
        item: id of the item, `<family>/<id>`.
        proof: SHA-256 of the generated item. It ensures that no verdict is applied to another item.
        question: the question as generated or revised.
        choices: the choices as generated or revised, in the order asked.
        correct: indices of the right choices. A revision does not change the answer.
        verdict: accept, revise or reject; empty before review.
        reason: why the item is revised or rejected. It is short, so that equal reasons can be counted.
        reviewer: the reviewer's name.
    """

    item: Text
    subtask: Text
    video_id: Text
    proof: Text
    question: Text
    choices: tuple[Text, ...]
    correct: tuple[int, ...]
    verdict: Verdict | Literal[""] = ""
    reason: Note = ""
    reviewer: Note = ""


class Retention(msgspec.Struct, frozen=True):
    """The number of items of one subtask that are kept after review.

    `reasons` counts the reasons of rejections and revisions.
    """

    subtask: str
    reviewed: int
    accepted: int
    revised: int
    rejected: int
    reasons: dict[str, int]

    @property
    def rate(self) -> float | None:
        """Return the share of reviewed items that were kept, or None without reviewed items."""
        return (self.accepted + self.revised) / self.reviewed if self.reviewed else None


def review_rows(family: str, items: Sequence[Item], lines: Sequence[bytes]) -> list[ReviewedItem]:
    """Return the rows of the review file for new items.

    `lines` are the lines of the items file. Their hashes identify the items.
    """
    return [
        ReviewedItem(
            item=f"{family}/{item.id}",
            subtask=item.candidate.subtask,
            video_id=item.candidate.video_id,
            proof=hashlib.sha256(line).hexdigest(),
            question=item.candidate.question,
            choices=tuple(choice.text for choice in item.choices),
            correct=item.correct,
        )
        for item, line in zip(items, lines, strict=True)
    ]


def review_bytes(rows: Iterable[ReviewedItem]) -> bytes:
    """Return the content of a review file."""
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def read_review(path: Path) -> dict[str, ReviewedItem]:
    """Read reviewed items by id.

    Raises:
        DataError: a line is invalid, an id is repeated, or a verdict other than accept has no reason or no reviewer.
    """
    remedy = "correct that line, or generate the file again"
    decode = msgspec.json.Decoder(ReviewedItem).decode
    rows: dict[str, ReviewedItem] = {}
    for number, row in read_json_lines(path, MAX_LINE, decode, what="no reviewed item", remedy=remedy):
        problem = f"{row.item!r} stands twice" if row.item in rows else verdict_problem(row)
        if problem:
            raise DataError(f"{path}: line {number}: {problem}. Fix: {remedy}")
        rows[row.item] = row
    return rows


def verdict_problem(row: ReviewedItem) -> str:
    """Return the fields that a verdict lacks; empty if the verdict is complete."""
    if row.verdict and not row.reviewer:
        return f"{row.item!r} has a verdict and no reviewer"
    if row.verdict not in ("", "accept") and not row.reason:
        return f"{row.item!r} is to {row.verdict} without a reason"
    return ""


def apply_review(
    family: str, items: Sequence[Item], rows: Sequence[ReviewedItem], review: Mapping[str, ReviewedItem]
) -> list[Item]:
    """Return the items that are kept, with revised texts. `rows` are the items as generated.

    Raises:
        DataError: the review belongs to other items, or changes an item's answer or number of choices.
    """
    kept_items = []
    unknown = sorted({item for item in review if item.partition("/")[0] == family} - {row.item for row in rows})
    if unknown:
        raise DataError(f"{unknown[0]}: is in the review, but is not generated. {_REMEDY}")
    for item, row in zip(items, rows, strict=True):
        reviewed = review.get(row.item, row)
        if reviewed.proof != row.proof:
            raise DataError(f"{row.item}: the review is of another item of that id. {_REMEDY}")
        if (len(reviewed.choices), reviewed.correct) != (len(row.choices), row.correct):
            raise DataError(f"{row.item}: its choices or answer were changed. Fix: revise only texts, or reject it")
        if reviewed.verdict in ("", *KEPT):
            kept_items.append(_with_texts(item, reviewed) if reviewed.verdict == "revise" else item)
    return kept_items


def _with_texts(item: Item, revision: ReviewedItem) -> Item:
    right = tuple(Choice(revision.choices[index], item.choices[index].statement) for index in item.correct)
    choices = tuple(Choice(text, choice.statement) for text, choice in zip(revision.choices, item.choices, strict=True))
    candidate = msgspec.structs.replace(item.candidate, question=revision.question, right=right or item.candidate.right)
    return msgspec.structs.replace(item, candidate=candidate, choices=choices)


def retention_by_subtask(rows: Iterable[ReviewedItem], review: Mapping[str, ReviewedItem]) -> list[Retention]:
    """Return the retention of each subtask, in the order of `rows`."""
    by_subtask: dict[str, list[ReviewedItem]] = {}
    for row in rows:
        by_subtask.setdefault(row.subtask, []).append(review.get(row.item, row))
    tables = []
    for subtask, group in by_subtask.items():
        counts = Counter(row.verdict for row in group)
        reasons = Counter(sorted(row.reason for row in group if row.verdict in ("revise", "reject")))
        numbers = counts["accept"], counts["revise"], counts["reject"]
        tables.append(Retention(subtask, sum(numbers), *numbers, dict(reasons.most_common())))
    return tables
