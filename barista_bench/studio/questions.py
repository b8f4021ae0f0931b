"""The page to review generated questions: shows the items of review files with their moments, and saves verdicts.

A click on "accept", "revise" or "reject" becomes a stored verdict in these files:

1. `static/questions.js`: `itemParts` of `Review` makes the buttons, and `decide` sends the verdict to
   `/api/review/verdict`. (`server.py` calls the function that `QuestionRoutes.writes` names for the path.)
2. `QuestionRoutes._decide`, here, checks the verdict, and replaces the review file.
3. `generate/review.py` defines the file and the verdicts (`Verdict`, `KEPT`), says what a verdict lacks
   (`verdict_problem`), and counts the verdicts (`Retention`).

`static/shapes.d.ts` declares the verdicts and the fields of an item for the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from barista_bench.errors import DataError
from barista_bench.files.reading import read_json_lines
from barista_bench.files.writing import atomic_write, locked_for_update
from barista_bench.generate.family import FAMILIES, family_class
from barista_bench.generate.review import (
    MAX_LINE,
    Note,
    ReviewedItem,
    Text,
    Verdict,
    read_review,
    review_bytes,
    verdict_problem,
)
from barista_bench.studio.workspace import GRAPH, Json, Routes, Workspace, sent_as


class ItemVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict from the page. `file` is the number of the review file; texts are revised or unchanged."""

    file: int
    item: Text
    verdict: Verdict
    question: Text
    choices: tuple[Text, ...]
    reason: Note = ""


class ItemMoment(msgspec.Struct, frozen=True):
    """An item's place in its video: the shown frames [start, stop), the moments asked about, and the objects' ids."""

    id: str
    video_id: str
    span: tuple[int, int]
    frames: tuple[int, ...]
    objects: tuple[str, ...]


class QuestionRoutes(Routes):
    """Requests about the opened review files. Every verdict is saved in its file before the page receives a reply."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.reads = {"/api/review": lambda query: {"items": list(self._items())}}
        self.writes = {"/api/review/verdict": lambda body: self._decide(sent_as(ItemVerdict, body))}

    def _items(self) -> Iterator[Json]:
        release = self._workspace.release
        for number, path in enumerate(self._workspace.reviews):
            moments: dict[str, dict[str, ItemMoment]] = {}
            for row in read_review(path).values():
                family, _, item_id = row.item.partition("/")
                if family not in moments:
                    moments[family] = _moments(path.parent, family)
                moment = moments[family].get(item_id)
                yield {
                    **msgspec.to_builtins(row),
                    "file": number,
                    "moment": moment if moment is not None and moment.video_id == row.video_id else None,
                    "kind": GRAPH if release is not None and row.video_id in release else None,
                    "revisable": _is_revisable(family),
                }

    def _decide(self, verdict: ItemVerdict) -> Json:
        """Save one verdict by replacing the complete file, and return the item.

        Raises DataError for an unknown item, a verdict without a reason, or a change that is not allowed.
        """
        reviews = self._workspace.reviews
        if not 0 <= verdict.file < len(reviews):
            raise DataError(f"no review file {verdict.file} is open. Fix: load the page again")
        with locked_for_update(reviews[verdict.file]) as path:
            rows = read_review(path)  # reads the present content, since the file may have been edited
            if verdict.item not in rows:
                raise DataError(f"{path}: no item {verdict.item!r}. Fix: load the page again")
            rows[verdict.item] = decided = _with_verdict(rows[verdict.item], verdict, self._workspace.person)
            with atomic_write(path, durable=True) as partial:
                partial.write_bytes(review_bytes(rows.values()))
        return msgspec.to_builtins(decided)


def _with_verdict(row: ReviewedItem, verdict: ItemVerdict, person: str) -> ReviewedItem:
    """Return the item with its verdict.

    Raises DataError for a verdict that `generate` would refuse or misread.
    """
    is_changed = (verdict.question, verdict.choices) != (row.question, row.choices)
    problem = ""
    if len(verdict.choices) != len(row.choices):
        problem = "a revision keeps the number of choices"
    elif is_changed and verdict.verdict != "revise":
        problem = "only a revision changes texts"
    elif not all(text.strip() for text in (verdict.question, *verdict.choices)):
        problem = "a text is blank"
    elif verdict.verdict == "revise" and not _is_revisable(row.item.partition("/")[0]):
        problem = "its whole set shares its texts: accept or reject it"
    elif verdict.verdict == "accept" and row.verdict == "revise":
        problem = "it has been revised, which keeps it: revise it again, or reject it"
    decided = msgspec.structs.replace(
        row,
        verdict=verdict.verdict,
        question=verdict.question,
        choices=verdict.choices,
        reason="" if verdict.verdict == "accept" else verdict.reason.strip(),
        reviewer=person,
    )
    problem = problem or verdict_problem(decided)
    if problem:
        raise DataError(f"{row.item}: {problem}. Fix: correct the verdict, and send it again")
    return decided


def _moments(folder: Path, family: str) -> dict[str, ItemMoment]:
    """Return the moment of each item by id, from `generate`'s files beside the review file; empty without them."""
    path = folder / f"{family}.items.jsonl"
    if family not in FAMILIES or not path.is_file():
        return {}
    decode = msgspec.json.Decoder(ItemMoment).decode
    lines = read_json_lines(path, MAX_LINE, decode, what="no generated item", remedy="generate the set again")
    return {moment.id: moment for _, moment in lines}


def _is_revisable(family: str) -> bool:
    return family in FAMILIES and family_class(family).has_own_texts
