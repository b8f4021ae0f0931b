"""Show a results dataset as a leaderboard in a Gradio Space. `barista_bench.hub.board` computes the tables.

    BARISTA_RESULTS=org/results BARISTA_DATASET=org/BARISTA python app.py        # datasets on the Hub, or folders

Values from submissions are shown as text only: no cell is read as HTML or Markdown.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import gradio as gr

from barista_bench.hub.board import Board, RefusedSubmission, fetch_results, read_board
from barista_bench.hub.board_tables import overview, refusals, tables
from barista_bench.tables import Table

SOURCE = os.environ.get("BARISTA_RESULTS", "")
DATASET = os.environ.get("BARISTA_DATASET", "")


def load(source: str, dataset: str = "") -> Board:
    """Return the board of a folder or of a dataset on the Hub.

    Files that were too large to fetch count as refused. Results are also refused if their examples are not the examples
    of the published `dataset`, which is a folder or a Hub id.
    """
    with TemporaryDirectory() as results, TemporaryDirectory() as published:
        folder, refused = fetch(source, results)
        board = read_board(folder, fetch(dataset, published)[0] if dataset else None)
    return Board(board.entries, (*refused, *board.refused))


def fetch(source: str, into: str) -> tuple[Path, tuple[RefusedSubmission, ...]]:
    """Return a folder unchanged, or a copy of a dataset on the Hub, with the files that were not fetched."""
    return (Path(source), ()) if Path(source).is_dir() else fetch_results(source, into)


def show(table: Table) -> None:
    """Show one table below its title."""
    gr.Textbox(table.note or table.title, label=table.title, interactive=False)
    gr.Dataframe(
        [list(row) for row in table.values], headers=list(table.heads), datatype="str", interactive=False, wrap=True
    )


def page(source: str, dataset: str = "") -> gr.Blocks:
    """Return the page. It reads the dataset again whenever it is opened."""
    with gr.Blocks(title="BARISTA leaderboard") as blocks:
        gr.Markdown(
            "# BARISTA leaderboard\nVision-language models on egocentric video; values are 0 to 100 and "
            "self-reported: no one ran the models again."
        )

        def draw() -> None:
            board = load(source, dataset)
            with gr.Tab("All tasks"):
                show(overview(board))
            for table in tables(board):
                with gr.Tab(table.title):
                    show(table)
            with gr.Tab(f"Not shown ({len(board.refused)})"):
                show(refusals(board))

        gr.render()(draw)

    return blocks


if __name__ == "__main__":
    if not SOURCE:
        raise SystemExit("BARISTA_RESULTS is not set. Fix: set it to a results dataset, org/name or a folder")
    page(SOURCE, DATASET).launch()
