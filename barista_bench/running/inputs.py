"""What each example of a run asks, kept in its folder: it tells whose samples they are without the media."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec

from barista_bench.atomic_files import write_whole
from barista_bench.errors import ConfigError, DataError
from barista_bench.running.dataset import ExampleSet
from barista_bench.running.keys import UNREADABLE, AskedInput

INPUTS_FILE = "inputs.jsonl"
MAX_BYTES = 2**30


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    example_id: str
    fingerprint: str


_LINE = msgspec.json.Decoder(_Line)
log = logging.getLogger(__name__)


def read_inputs(folder: Path) -> dict[str, str]:
    """Example id to the fingerprint of what it asks; examples that could never be read are absent.

    Empty for a folder without the file, such as an imported run.

    Raises:
        DataError: the file is damaged.
    """
    path = folder / INPUTS_FILE
    if not path.is_file():
        return {}
    if path.stat().st_size > MAX_BYTES:
        raise DataError(f"{path}: is larger than {MAX_BYTES} bytes. Remedy: run again with another --out")
    found = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                read = _LINE.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise DataError(f"{path}: line {number}: {error}. Remedy: start the run again") from error
            found[read.example_id] = read.fingerprint
    return found


def claim_inputs(folder: Path, examples: ExampleSet, inputs: Sequence[AskedInput]) -> None:
    """Write what is asked, or check that it is what was asked before. Media may have become readable since, or not.

    A damaged file is written anew, with a warning: then nothing tells whether other images were asked before.

    Raises:
        ConfigError: an example asks something else now. Names it.
    """
    try:
        before = read_inputs(folder)
    except DataError as error:  # what is asked is known here
        log.warning("%s. It is written anew, from what is asked now", str(error).partition(" Remedy:")[0].rstrip("."))
        before = {}
    now = {
        example.example_id: one.fingerprint
        for example, one in zip(examples.examples, inputs, strict=True)
        if one.media != UNREADABLE
    }
    for example_id, fingerprint in now.items():
        if before.get(example_id, fingerprint) != fingerprint:
            raise ConfigError(
                f"{folder}: {example_id} has other images than when this run began. "
                "Remedy: name the dataset that it began with, or use another --out"
            )
    lines = (msgspec.json.encode(_Line(*item)) for item in sorted((before | now).items()))
    write_whole(folder / INPUTS_FILE, b"".join(line + b"\n" for line in lines))
