"""What each example of a run asks, kept in its folder: shows without the media which samples are the run's."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.writing import write_whole
from barista_bench.runs.log.keys import UNREADABLE, AskedInput
from barista_bench.runs.log.record import is_whole, seal

INPUTS_FILE = "inputs.jsonl"
MAX_BYTES = 2**30


class _Line(msgspec.Struct):
    """`readable` says whether the media could be read, of which the fingerprint is made too."""

    example_id: str
    fingerprint: str
    readable: bool = True


_LINE = msgspec.json.Decoder(_Line)
log = logging.getLogger(__name__)


def read_inputs(folder: Path) -> dict[str, str]:
    """Example id to the fingerprint of what it asks, of all examples of a run.

    Raises:
        DataError: the file is missing or damaged.
    """
    return {example_id: line.fingerprint for example_id, line in _read(folder / INPUTS_FILE).items()}


def _read(path: Path) -> dict[str, _Line]:
    if not path.is_file():
        raise DataError(f"{path}: missing, so nobody knows what was asked. Remedy: start the run again")
    if path.stat().st_size > MAX_BYTES:
        raise DataError(f"{path}: is larger than {MAX_BYTES} bytes. Remedy: run again with another --out")
    lines = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                read = _LINE.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise DataError(f"{path}: line {number}: {error}. Remedy: start the run again") from error
            if not is_whole(line):
                raise DataError(f"{path}: line {number}: is damaged. Remedy: start the run again")
            lines[read.example_id] = read
    return lines


def claim_inputs(folder: Path, examples: ExampleSet, inputs: Sequence[AskedInput]) -> list[AskedInput]:
    """Write what is asked, or check that it is what was asked before. Media may have become readable since, or not.

    A damaged file is written anew, with a warning: then nobody knows whether other images were asked before.

    Returns:
        What the run asks, one entry an example: of media that cannot be read any more, what was asked before.

    Raises:
        ConfigError: an example asks something else now. Names it.
    """
    path = folder / INPUTS_FILE
    before: dict[str, _Line] = {}
    if path.exists():
        try:
            before = _read(path)
        except DataError as error:  # what is asked is known here
            problem = str(error).partition(" Remedy:")[0].rstrip(".")
            log.warning("%s. It is written anew, from what is asked now", problem)
    asked, lines = [], []
    for example, asked_input in zip(examples.examples, inputs, strict=True):
        now = _Line(example.example_id, asked_input.fingerprint, asked_input.media != UNREADABLE)
        known = before.get(example.example_id)
        if known and known.readable:
            if now.readable and now != known:
                raise ConfigError(
                    f"{folder}: {example.example_id} has other images than when this run began. "
                    "Remedy: name the dataset that it began with, or use another --out"
                )
            now = known
        asked.append(replace(asked_input, fingerprint=now.fingerprint))
        lines.append(now)
    lines.sort(key=lambda line: line.example_id)
    write_whole(path, b"".join(seal(msgspec.json.encode(line)) for line in lines))
    return asked
