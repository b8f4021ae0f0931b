"""The README's pictures, made from what `make run` leaves in build/: a frame of the kitchen, and the top of the report.

python scripts/pictures.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from PIL import Image

from barista_bench.benchmarks import get_task
from barista_bench.data.dataset import open_examples

ROOT = Path(__file__).resolve().parents[1]
BUILD, OUT = ROOT / "build", ROOT / "docs" / "images"
GAP = 8
"""Pixels between two pictures."""


def kitchen() -> Image.Image:
    """A frame as it was filmed, and the same frame with its marks."""
    examples = open_examples(BUILD / "data" / "barista", "barista", "relations")
    frame, marked = examples[0].images(get_task("barista", "relations"))
    both = Image.new("RGB", (2 * frame.width + GAP, frame.height), "white")
    both.paste(frame, (0, 0))
    both.paste(marked, (frame.width + GAP, 0))
    return both


def screenshot(page: Path, out: Path) -> None:
    """The top of a page, 1280 x 860 pixels. Exits where no browser is installed."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not browser:
        raise SystemExit("no browser. Remedy: apt-get install chromium, or name one in the variable CHROMIUM")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,860"]
    subprocess.run([browser, *flags, f"--screenshot={out}", page.as_uri()], check=True)


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    kitchen().quantize(128).save(OUT / "kitchen.png", optimize=True)
    screenshot(BUILD / "report" / "report.html", OUT / "report.png")
    Image.open(OUT / "report.png").convert("RGB").quantize(32).save(OUT / "report.png", optimize=True)
