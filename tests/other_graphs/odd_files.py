"""The same odd files for every importer, with the expected outcome of each importer.

    python -m tests.other_graphs.odd_files          # writes the table of docs/other_graphs.md
    python -m tests.other_graphs.odd_files --all    # prints exit status and message of every cell

Every sample shows a cup and a hand on three frames (`sample.py`). An oddity changes the whole file, or adds a spoon: a
square of 20 x 20 px. The cup and the hand must stay, and the spoon is there, or its loss is counted.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from barista_bench.scene_graph import encode_mask
from tests.other_graphs.odd_importers import IMPORTERS, Importer, Shown, frames, good, run
from tests.other_graphs.sample import (
    SQUARE,
    Inapplicable,
    Sample,
    Spoon,
    adding_twice,
    at,
    edit,
    flat,
    only_if,
    swap_ids,
    write_pictures,
)
from tests.releases import HEIGHT, WIDTH, write_video

PAGE = Path(__file__).parents[2] / "docs" / "other_graphs.md"
MARK, END = "<!-- The table: python -m tests.other_graphs.odd_files -->", "<!-- end of the table -->"


SampleChange = Callable[[Sample, Path], None]


@dataclass(frozen=True)
class Oddity:
    """An oddity. `may`: the outcomes that obey the rule; `area` of a spoon that is taken.

    `kept`: the frames, of three, that remain after any loss. `adds`: a taken record is seen.
    A sample may have its own change (`Sample.own`).
    """

    change: SampleChange
    may: tuple[str, ...]
    area: int = 400
    kept: tuple[int, ...] = (0, 1, 2)
    adds: bool = True


def _bytes(change: Callable[[bytes], bytes]) -> SampleChange:
    def apply(sample: Sample, root: Path) -> None:
        path = root / sample.file
        path.write_bytes(change(path.read_bytes()))

    return apply


def _wrong_top(sample: Sample, root: Path) -> None:
    only_if(sample.file.endswith((".json", ".xml")))
    path = root / sample.file
    if path.suffix == ".xml":
        path.write_text("<html><body/></html>")
    else:
        path.write_text('{"a": 1}' if path.read_text().lstrip().startswith("[") else "[1]")


def _spoon(**fields: Any) -> SampleChange:
    return lambda sample, root: sample.add(root, Spoon(**fields))


def _runs(counts: object, size: tuple[int, int] = (HEIGHT, WIDTH)) -> SampleChange:
    return _spoon(pieces=None, runs={"size": size, "counts": counts})


def _only_own(sample: Sample, root: Path) -> None:
    """Only formats with their own change can hold the oddity."""
    raise Inapplicable


def _no_record(sample: Sample, root: Path) -> None:
    """A number in place of a record."""
    only_if(sample.records is not None)

    edit(root / sample.file, lambda content: at(content, sample.records or ()).append(7))


def _other_ids(sample: Sample, root: Path) -> None:
    only_if(sample.file.endswith(".json"))
    swap_ids(root / sample.file)


def _trailing_blank(sample: Sample, root: Path) -> None:
    path = root / sample.file
    text = path.read_text()
    only_if('"coffee cup"' in text)
    path.write_text(text.replace('"coffee cup"', '"coffee  cup "', 1))


def _again(sample: Sample, root: Path) -> None:
    """The spoon twice, with one id."""
    only_if(sample.records is not None)
    adding_twice(sample.add, sample.file, *(sample.records or ()))(root)


def _no_picture(sample: Sample, root: Path) -> None:
    pictures = sorted(path for path in root.rglob("*") if path.suffix in (".png", ".jpg") and "masks" not in path.parts)
    only_if(bool(pictures))
    pictures[-1].unlink()


def _write_secrets(folder: Path) -> None:
    """A picture and a video that an import may not read."""
    write_pictures(folder / "secret", 1)
    (folder / "secret" / "0001.png").rename(folder / "secret" / "secret.png")
    write_video(folder / "secret.mp4")


def _outside(sample: Sample, root: Path) -> None:
    """A picture or a video above the folder."""
    try:
        sample.add(root, Spoon(picture="../../secret/secret.png"))
    except Inapplicable:
        sample.add(root, Spoon(video="../secret"))


def _square() -> np.ndarray:
    bits = np.zeros((HEIGHT, WIDTH), bool)
    bits[8:28, 8:28] = True
    return bits


_NUMBERS = [8 * HEIGHT + 8, *[20, HEIGHT - 20] * 19, 20, HEIGHT * WIDTH - 27 * HEIGHT - 28]
UNKNOWN_VIDEO, OUTSIDE = "an unknown video", "a path out of the folder"
TAKEN, LOST = ("taken",), ("counted",)
WHOLE = ("refused", "counted")
ODDITIES: dict[str, Oddity] = {
    "a byte order mark": Oddity(_bytes(lambda data: b"\xef\xbb\xbf" + data), TAKEN, adds=False),
    "UTF-16": Oddity(
        _bytes(lambda data: data.decode().encode("utf-16")), ("refused", "counted", "taken"), kept=(), adds=False
    ),
    "gzip": Oddity(_bytes(gzip.compress), WHOLE, kept=(), adds=False),
    "cut in half": Oddity(_bytes(lambda data: data[: 5 * len(data) // 9]), WHOLE, kept=(), adds=False),
    "an empty file": Oddity(_bytes(lambda data: b""), WHOLE, kept=(), adds=False),
    "the wrong type at the top": Oddity(_wrong_top, WHOLE, kept=(), adds=False),
    "a number in place of a record": Oddity(_no_record, LOST),
    "NaN in a polygon": Oddity(_spoon(pieces=[[8, 8, float("nan"), 8, 28, 28, 8, 28]]), LOST),
    UNKNOWN_VIDEO: Oddity(_spoon(video="8"), ("counted", "refused")),
    "an unknown picture": Oddity(_spoon(moment=99), LOST),
    "ids as texts, not numbers, or the reverse": Oddity(_other_ids, ("taken", "refused"), kept=(), adds=False),
    "a frame past the end": Oddity(_spoon(moment=90), LOST),
    "a negative frame": Oddity(_spoon(moment=-20), LOST),
    "sampled frames": Oddity(_only_own, TAKEN, kept=(0, 2)),
    "a polygon of two corners": Oddity(_spoon(pieces=[[8, 8, 28, 28]]), LOST),
    "the same beside a good polygon": Oddity(_spoon(pieces=[flat(SQUARE), [40, 40, 41, 41]]), TAKEN),
    "an empty polygon beside a good one": Oddity(_spoon(pieces=[flat(SQUARE), []]), TAKEN),
    "a hole": Oddity(_spoon(hole=flat((12, 12, 10, 10))), TAKEN, area=300),
    "compressed run lengths": Oddity(_runs(encode_mask(_square()).counts), TAKEN),
    "run lengths as numbers": Oddity(_runs(_NUMBERS), TAKEN),
    "damaged run lengths": Oddity(_runs("zzzz~"), LOST),
    "a PNG of one bit": Oddity(_spoon(pieces=None, bits=_square()), TAKEN),
    "the void label, 255": Oddity(_only_own, LOST),
    "blanks in and after a name": Oddity(_trailing_blank, TAKEN, adds=False),
    "one id twice": Oddity(_again, LOST),
    "a missing picture": Oddity(_no_picture, LOST, kept=(0, 1)),
    "masks of another size": Oddity(_runs([0, 400, 1136], (32, 48)), LOST, kept=(0, 1)),
    "a count of 1,000,000,000 frames": Oddity(_spoon(moment=10**9), WHOLE, kept=(), adds=False),
    OUTSIDE: Oddity(_outside, ("counted", "refused"), kept=()),
}


class Outcome(NamedTuple):
    """`kind`: taken, counted, refused, or what breaks the rule."""

    kind: str
    exit_code: int
    message: str
    masks: int


def outcome(importer: Importer, name: str, folder: Path) -> Outcome:
    """Import an odd file in an empty folder. Raises Inapplicable if the format cannot hold the oddity."""
    root, sample, oddity = folder / "export", importer.sample, ODDITIES[name]
    sample.write(root)
    if name == OUTSIDE:
        _write_secrets(folder)
    if name not in sample.own:
        oddity.change(sample, root)
    elif change := sample.own[name]:
        change(root)
    else:
        raise Inapplicable
    shown, code, text = run(importer, folder)
    kept = [frames(importer)[number] for number in oddity.kept]
    is_whole = name == UNKNOWN_VIDEO and sample.file_is_video
    base = {mask for mask in good(importer.name) if mask[0] in kept and not is_whole}
    spoons = {mask for mask in shown if mask not in good(importer.name)}
    message = next((line for line in text.splitlines() if any(word in line for word in _SAID)), "")
    kind = _kind(shown, base, spoons, oddity, code, text, message)
    if kind not in oddity.may and kind in ("taken", "counted", "refused"):
        kind = f"wrongly {kind}"
    return Outcome(kind, code, message.replace(str(folder), "…"), len(shown))


_SAID = ("lost: ", "Fix:", "left out")


def _kind(shown: Shown, base: set[Any], spoons: set[Any], oddity: Oddity, code: int, text: str, message: str) -> str:
    if "Traceback" in text:
        return "a traceback"
    if not base <= shown:
        return "good records are lost"
    if code and not message:
        return "no reason"
    if code == 0:
        wrong = [mask for mask in spoons if abs(mask[2] - oddity.area) > 2]
        if oddity.adds and not spoons:
            return "a silent loss"
        return f"a wrong mask {sorted(wrong)}" if wrong else "taken"
    return "counted" if shown else "refused"


def all_outcomes() -> dict[tuple[str, str], Outcome]:
    found = {}
    for name in ODDITIES:
        for importer in IMPORTERS.values():
            with tempfile.TemporaryDirectory() as folder:
                try:
                    found[name, importer.name] = outcome(importer, name, Path(folder))
                except Inapplicable:
                    continue
    return found


def table(found: dict[tuple[str, str], Outcome]) -> str:
    """The Markdown table of all outcomes; empty where a format cannot hold the oddity."""
    lines = [heads(), "|:--|" + ":-:|" * len(IMPORTERS)]
    for name in ODDITIES:
        cells = [found[name, importer].kind if (name, importer) in found else "" for importer in IMPORTERS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def heads() -> str:
    return "| what is odd | " + " | ".join(IMPORTERS) + " |"


def stated() -> str:
    """The table on the page."""
    return PAGE.read_text(encoding="utf-8").partition(MARK)[2].partition(END)[0].strip()


def main() -> None:
    found = all_outcomes()
    if "--all" in sys.argv:
        for (name, importer), row in found.items():
            print(f"{name} | {importer} | {row.kind} | {row.masks} masks | exit {row.exit_code} | {row.message}")
        return
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n\n{table(found)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
