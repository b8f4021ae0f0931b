"""The leaderboard as a Gradio Space: shows what `barista_bench.hub.board` makes of a results dataset.

    BARISTA_RESULTS=org/results python app.py        # a dataset on the Hub, or a folder

Values from submissions are shown as text only: no cell is read as HTML or Markdown.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import gradio as gr

from barista_bench.hub.board import Board, Table, fetch_results, overview, read_board, refusals, tables

SOURCE = os.environ.get("BARISTA_RESULTS", "")


def load(source: str) -> Board:
    """The board of a folder, or of a dataset on the Hub. Files that were too large to fetch are among the refused."""
    if Path(source).is_dir():
        return read_board(source)
    with TemporaryDirectory() as folder:
        fetched = fetch_results(source, folder)
        board = read_board(fetched.folder)
    return Board(board.entries, (*fetched.refused, *board.refused))


def show(table: Table) -> None:
    """One table below its title."""
    gr.Textbox(table.note or table.title, label=table.title, interactive=False)
    gr.Dataframe(
        [list(row) for row in table.rows],
        headers=list(table.head),
        datatype="str",
        interactive=False,
        wrap=True,
    )


def page(source: str) -> gr.Blocks:
    """The page; it reads the dataset anew whenever it is opened."""
    with gr.Blocks(title="BARISTA leaderboard") as blocks:
        gr.Markdown("# BARISTA leaderboard\nVision-language models on egocentric video; values are 0 to 100.")

        def draw() -> None:
            board = load(source)
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
        raise SystemExit("BARISTA_RESULTS is not set. Remedy: set it to a results dataset, org/name or a folder")
    page(SOURCE).launch()
