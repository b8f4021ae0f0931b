"""Write `dataset_cards/barista.md`, the card of the published sets, anew from the tasks.

Run `python scripts/dataset_card.py` after a change; a test fails while the file says anything else than the tasks do.
"""

from __future__ import annotations

from pathlib import Path

from barista_bench.builders.card import published_card

if __name__ == "__main__":
    published_card().save(Path(__file__).resolve().parents[1] / "dataset_cards" / "barista.md")
