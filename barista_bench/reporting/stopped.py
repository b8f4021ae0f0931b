"""Make the table of runs and judges that stopped early. It has decisions and intervals, and no scores or ranks."""

from __future__ import annotations

from collections.abc import Sequence

from barista_bench.judging.judged_run import JudgedRun
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import run_labels
from barista_bench.tables import Row, Table, number, number_columns, text_columns, words

TITLE = "Stopped early"


def stopped_table(runs: Sequence[ScoredRun], judges: Sequence[JudgedRun]) -> Table | None:
    """Return a table with a row per run and per judge that stopped early, or None if none did."""
    labels, rows = run_labels(runs), list[Row]()
    found = [(run, run.results.stopped, "") for run in runs]
    found += [(each.run, each.results.stopped, f" {each.results.judge.name}") for each in judges]
    for run, stopped, judge in found:
        if stopped is not None:
            label, dataset = labels[run.folder], run.results.dataset
            about = (label, f"{dataset.benchmark} / {words(dataset.task)}", words(stopped.metric) + judge)
            counted = f"{number(stopped.counted)} of {number(stopped.examples)} examples"
            counted += f", a part of the set ({dataset.part.words})" if dataset.part else ""
            rows.append((*about, stopped.low, stopped.high, counted, stopped.sentence(label)))
    columns = (
        *text_columns("model", "task", "metric"),
        *number_columns("", "at least", "at most"),
        *text_columns("counted", "decision"),
    )
    note = (
        "These runs or judges stopped as soon as a question was decided, so their scores would be biased. The interval "
        "holds the score on exactly these questions, however often one looked. Unlike the intervals of scores, it does "
        "not cover other videos."
    )
    return Table.of(TITLE, columns, rows, note) if rows else None
