"""Record the question of each example of a run, and the identity of each sample.

The file `inputs.jsonl` of a run folder shows which samples belong to the run. The media are not needed to read it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import content_seed
from barista_bench.core.guarding import guard
from barista_bench.core.options import OptionValue
from barista_bench.core.prompt import Prompt
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import ConfigError, DataError, TaskError
from barista_bench.files.reading import read_json_lines
from barista_bench.files.writing import write_whole
from barista_bench.runs.log.sample_log import MAX_LINE, is_whole, seal

UNREADABLE = "unreadable"
MAX_STEPS = 16
"""Maximum number of questions of one sample if answers come from a file."""


@dataclass(frozen=True, slots=True)
class AskedInput:
    """The input of one example: `question`, and the digests `prompt` and `fingerprint`.

    `fingerprint` covers the prompt, the task's version and the media. `media` is `UNREADABLE` if the media cannot be
    read. `question` holds the reason if the task cannot make a question. Such an example fails when it is asked, and
    does not affect other examples.
    """

    fingerprint: str
    prompt: str
    media: str
    question: Prompt | TaskError

    @property
    def is_readable(self) -> bool:
        """Return whether `fingerprint` identifies the input completely."""
        return self.media != UNREADABLE and isinstance(self.question, Prompt)


def asked_inputs(
    task: Task, examples: ExampleSet, box_format: BoxFormat, *, timed: bool = False, linked: bool | None = None
) -> list[AskedInput]:
    """Return one input per example, without decoding media.

    Args:
        timed: whether the prompt states when frames were filmed. These times are then part of the input.
        linked: whether media are identified as in a linked set. None uses the method of this set.
    """
    linked = examples.is_linked if linked is None else linked
    inputs = []
    # The first prompt does not show images that options change, nor questions that depend on answers.
    shared_parts: list[object] = [options] if (options := prompt_options(task)) else []
    shared_parts += [task.prompts.sha256] if asks_in_steps(task) else []
    for index, example in enumerate(examples.examples):
        parts = shared_parts
        question: Prompt | TaskError
        try:
            with guard(task, "prompt", example):
                question = task.prompt(example, box_format)
                prompt = question.as_text()
        except TaskError as error:
            question, prompt = error, UNREADABLE
        try:
            media = examples.media_digest(index, linked=linked)
            if timed:
                times = examples.frame_times(index, task)
                parts = [*shared_parts, times and [times.fps, times.indices, times.frame_count]]
        except DataError:
            media = UNREADABLE
        except TaskError as error:
            question = error
        fingerprint = digest(task.benchmark, task.name, task.version, prompt, media, *parts)
        inputs.append(AskedInput(fingerprint, digest(prompt), media, question))
    return inputs


def prompts_digest(inputs: Sequence[AskedInput]) -> str | None:
    """Return the digest of all prompt texts, or None if a prompt cannot be made."""
    if any(isinstance(asked.question, TaskError) for asked in inputs):
        return None
    return digest(sorted(asked.prompt for asked in inputs))


def asks_in_steps(task: Task) -> bool:
    """Return whether a task may ask in several steps."""
    return type(task).follow_up is not Task.follow_up


def prompt_options(task: Task) -> dict[str, OptionValue]:
    """Return the options of a task that change the question. They are part of the run."""
    return {
        name: task.chosen[name]
        for name, option in task.options.items()
        if option.changes == "prompt" and not (option.is_added and task.chosen[name] == option.default)
    }


def sample_keys(model: object, config: object) -> Callable[[str, str, int], str]:
    """Return a function that maps (example id, fingerprint, repetition) to a sample's key, for one model and its
    settings.

    The key is the `digest` of all five values. Batch size, device and process count are not part of the key. The
    example's id is part of the key: two examples may ask the same question about the same pixels, but each is sampled
    with its own seed. Model and settings are encoded only once, which is five times faster. Otherwise computing a
    million keys would take longer than reading their log.
    """
    encode = json.JSONEncoder(sort_keys=True, ensure_ascii=True).encode
    settings = f"{encode(model)}, {encode(config)}"

    def key(example_id: str, fingerprint: str, repetition: int) -> str:
        text = f"[{encode(example_id)}, {encode(fingerprint)}, {settings}, {repetition:d}]"
        return hashlib.sha256(text.encode()).hexdigest()

    return key


def sample_seed(task: Task, example_id: str, repetition: int, step: int = 0) -> int:
    """Return the seed of one sample. It depends only on content, not on order, batches or processes."""
    step_parts = (step,) if step else ()
    return content_seed("sample", task.benchmark, task.name, example_id, repetition, *step_parts)


def sample_seeds(task: Task, example_id: str, repetition: int) -> frozenset[int]:
    """Return the seeds for the first question of a sample and for possible later questions."""
    steps = range(MAX_STEPS if asks_in_steps(task) else 1)
    return frozenset(sample_seed(task, example_id, repetition, step) for step in steps)


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


INPUTS_FILE = "inputs.jsonl"
MAX_BYTES = 2**30


class _Line(msgspec.Struct):
    """A line of `inputs.jsonl`. `readable` tells whether the media could be read. They are part of the fingerprint."""

    example_id: str
    fingerprint: str
    readable: bool = True


_LINE = msgspec.json.Decoder(_Line)
log = logging.getLogger(__name__)


def read_inputs(folder: Path) -> dict[str, str]:
    """Map each example id of a run to its fingerprint. Raises DataError if the file is missing or damaged."""
    return {example_id: line.fingerprint for example_id, line in _read_lines(folder / INPUTS_FILE).items()}


def _read_lines(path: Path) -> dict[str, _Line]:
    """Return the lines by example id. Raises DataError if the file is missing or damaged."""
    if not path.is_file():
        raise DataError(f"{path}: missing, so the questions are unknown. Fix: start the run again")
    if path.stat().st_size > MAX_BYTES:
        raise DataError(f"{path}: is larger than {MAX_BYTES} bytes. Fix: run again with another --out")
    lines = read_json_lines(path, MAX_LINE, _decode_line, what="is damaged", remedy="start the run again")
    return {line.example_id: line for _, line in lines}


def _decode_line(line: bytes) -> _Line:
    if not is_whole(line):
        raise ValueError("its checksum does not match")
    return _LINE.decode(line)


def claim_inputs(folder: Path, examples: ExampleSet, inputs: Sequence[AskedInput]) -> list[AskedInput]:
    """Write the inputs, or check that they equal the inputs in the folder.

    Media may have become readable or unreadable since the file was written. A damaged file is replaced with a warning.
    It is then unknown whether earlier answers saw other images.

    Returns:
        The inputs of the run, one entry per example. If media can no longer be read, the entry is the earlier input.

    Raises:
        ConfigError: the input of an example has changed. The message names the example.
    """
    path = folder / INPUTS_FILE
    before: dict[str, _Line] = {}
    if path.exists():
        try:
            before = _read_lines(path)
        except DataError as error:  # the inputs are known here
            problem = str(error).partition(" Fix:")[0].rstrip(".")
            log.warning("%s. It is written again from the current inputs", problem)
    claimed, lines = [], []
    for example, asked_input in zip(examples.examples, inputs, strict=True):
        now = _Line(example.example_id, asked_input.fingerprint, asked_input.is_readable)
        earlier = before.get(example.example_id)
        if earlier and earlier.readable:
            if now.readable and now != earlier:
                raise ConfigError(
                    f"{folder}: {example.example_id} has other images than when this run began. "
                    "Fix: name the dataset that it began with, or use another --out"
                )
            now = earlier
        claimed.append(replace(asked_input, fingerprint=now.fingerprint))
        lines.append(now)
    _write_lines(path, lines)
    return claimed


def merge_inputs(folders: Sequence[Path], out: Path) -> None:
    """Merge the inputs of one run from several machines into the folder `out`. Machines may lack different media.

    Raises:
        ConfigError: an example has different inputs on two machines. The message names the example.
        DataError: a folder's file is missing or damaged.
    """
    merged = _read_lines(folders[0] / INPUTS_FILE)
    for folder in folders[1:]:
        for example_id, line in _read_lines(folder / INPUTS_FILE).items():
            merged_line = merged.get(example_id)
            if merged_line is None or (line.readable and not merged_line.readable):
                merged[example_id] = line
            elif line.readable and line != merged_line:
                raise ConfigError(
                    f"{folder}: {example_id} has other images than in {folders[0]} or one after it. "
                    "Fix: merge runs of the same files"
                )
    _write_lines(out / INPUTS_FILE, merged.values())


def _write_lines(path: Path, lines: Iterable[_Line]) -> None:
    in_order = sorted(lines, key=lambda line: line.example_id)
    write_whole(path, b"".join(seal(msgspec.json.encode(line)) for line in in_order))


def plain_json(value: dict[str, Any]) -> dict[str, Any]:
    """Return the value as it reads back from JSON: tuples become lists."""
    return json.loads(json.dumps(value))
