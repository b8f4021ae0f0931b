"""Write `dataset_cards/<benchmark>.md`, the cards of the published sets, from the tasks.

Run `python scripts/dataset_card.py` after a change; a test fails while a card contradicts the tasks.
"""

from __future__ import annotations

from pathlib import Path

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.data.manifest import published_card

if __name__ == "__main__":
    for name in BENCHMARKS:
        published_card(name).save(Path(__file__).resolve().parents[1] / "dataset_cards" / f"{name}.md")
