"""Make the tables of a leaderboard. Texts come from submissions: do not show them as HTML or Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from barista_bench.core.leaderboards import mean_rank, ranks as shared_ranks
from barista_bench.files.text_out import one_line
from barista_bench.hub import checks
from barista_bench.hub.board import SHOWN_COSTS, Board, BoardEntry, RefusedSubmission, folder_of
from barista_bench.runs.described import SHORT
from barista_bench.runs.score.comparability import Comparability, distinguishing_parts
from barista_bench.tables import Table, Value

MAX_REFUSALS: Final = 20
"""Maximum number of refused files that are listed one by one per submitter."""


LONGEST: Final = 500
"""Maximum characters of a cell whose text comes from a submission."""


def entry_ranks(entries: Sequence[BoardEntry]) -> list[int | None]:
    """Return the rank of each entry by `core.leaderboards`.

    For an entry without an interval, its value serves as the interval. An incomplete entry has no rank.
    """
    return shared_ranks([entry.ends if entry.is_complete else None for entry in entries])


def tables(board: Board) -> list[Table]:
    """Return one table per set of comparable results, best results first."""
    groups = _groups(board)
    apart = distinguishing_parts(list(groups))
    return [_table(record, group, why) for (record, group), why in zip(groups.items(), apart, strict=True)]


def overview(board: Board) -> Table:
    """Return a table with a row per model and a column per leaderboard, with value, interval and rank.

    A model on all leaderboards has a mean rank. If a leaderboard has several sets of comparable results, the set with
    the most submitters represents it. At a tie, the set with the most models does. The column's heading names the
    wording.
    """

    def size(group: Sequence[BoardEntry]) -> tuple[int, int]:
        return len({entry.submitter for entry in group}), len(group)

    largest_groups: dict[str, list[BoardEntry]] = {}
    for record, group in _groups(board).items():
        name = checks.leaderboard_name(record)
        if size(group) > size(largest_groups.get(name, ())):
            largest_groups[name] = group
    cells: dict[str, dict[str, tuple[BoardEntry, int | None]]] = defaultdict(dict)
    for name, group in largest_groups.items():
        for entry, rank in zip(group, entry_ranks(group), strict=True):
            cells[entry.model][name] = (entry, rank)
    lines = []
    for model, row in cells.items():
        mean = mean_rank([row[name][1] if name in row else None for name in largest_groups])
        lines.append((model, mean, *(_cell(*row[name]) if name in row else "" for name in largest_groups)))
    lines.sort(key=lambda line: (line[1] is None, line[1] or 0.0, str(line[0])))
    head = ("model", "mean rank", *(f"{name} ({group[0].record.wording})" for name, group in largest_groups.items()))
    return _table_of(
        "overview", head, lines, f"value [95% interval] (rank); values are 0 to 100, {checks.SELF_REPORTED}"
    )


def refusals(board: Board) -> Table:
    """Return the submissions that are not shown. The first `MAX_REFUSALS` per submitter are listed one by one."""
    by_submitter: dict[str, list[RefusedSubmission]] = defaultdict(list)
    for refused in board.refused:
        by_submitter[folder_of(refused.path)].append(refused)
    rows = []
    for submitter, files in by_submitter.items():
        rows += [(refused.path, refused.reason) for refused in files[:MAX_REFUSALS]]
        if len(files) > MAX_REFUSALS:
            rows.append((submitter, f"{len(files) - MAX_REFUSALS} more files are refused"))
    return _table_of("refused", ("file", "reason"), rows, "not shown above")


def _groups(board: Board) -> Mapping[Comparability, list[BoardEntry]]:
    """Group comparable entries, best first. Groups are sorted by leaderboard."""
    groups: dict[Comparability, list[BoardEntry]] = defaultdict(list)
    for entry in sorted(
        board.entries,
        key=lambda entry: (checks.leaderboard_name(entry.record), entry.record.key, -entry.value, entry.model),
    ):
        groups[entry.record].append(entry)
    return groups


def _table(record: Comparability, group: Sequence[BoardEntry], why: str) -> Table:
    costs = [name for name in SHOWN_COSTS if any(name in entry.costs for entry in group)]
    rows: list[tuple[Value, ...]] = [
        (
            *(rank, entry.model, entry.value, entry.low, entry.high, entry.repetitions, round(entry.coverage, 4)),
            *(round(entry.costs[name], 2) if name in entry.costs else None for name in costs),
            *(entry.revision, entry.version, entry.circumstances),
        )
        for entry, rank in zip(group, entry_ranks(group), strict=True)
    ]
    rows.sort(key=lambda row: row[0] is None)
    judge = f", judged by {record.judge.name} with rubric {record.judge.rubric[:SHORT]}" if record.judge else ""
    took = (f"{name.replace('_', ' ')} a sample" for name in costs)
    head = ("rank", "model", "value", "95% low", "95% high", "repetitions", "coverage")
    examples = f"examples {record.content_hash[:SHORT]}, asked in the wording {record.wording}"
    apart = f"; stands apart from other tables of the task by {why}" if why else ""
    metric = f"version {record.task_version}, {group[0].metric}"
    note = f"{metric}{judge}; {checks.SELF_REPORTED}; {examples}; overlapping intervals share a rank{apart}"
    return _table_of(
        checks.leaderboard_name(record), (*head, *took, "revision", "barista_bench", "settings"), rows, note
    )


def _table_of(title: str, heads: Sequence[str], rows: Iterable[Sequence[Value]], note: str) -> Table:
    """Return a table. Its texts may come from a submission, so they are cut to short lines of visible characters."""

    def shown(value: Value) -> Value:
        return one_line(value[:LONGEST])[:LONGEST] if isinstance(value, str) else value

    shown_rows = (tuple(map(shown, row)) for row in rows)
    return Table.of(str(shown(title)), [str(shown(head)) for head in heads], shown_rows, str(shown(note)))


def _cell(entry: BoardEntry, rank: int | None) -> str:
    interval = f" [{entry.low:.1f}, {entry.high:.1f}]" if entry.low is not None and entry.high is not None else ""
    return f"{entry.value:.1f}{interval} ({'incomplete' if rank is None else rank})"
