"""Check that a task still behaves as its `version` did: digests of prompts, parsed answers, scores and examples."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import Example, Prediction
from barista_bench.core.task import Task
from barista_bench.files.reading import read_bounded
from barista_bench.files.writing import write_whole
from barista_bench.testing.hostile_answers import HOSTILE_ANSWERS, damaged_forms
from barista_bench.testing.laws import BOX_FORMATS, LawError, answers_of, chance_answer, choices_of_rules, with_options

_MAX_FILE = 2**24
"""Maximum bytes of a file of records."""
_SAMPLE = '{"a": [{"b": [1, 2]}]}'
"""An answer whose damaged forms stand for the damaged forms of all answers. `made_of` covers these forms."""


class VersionRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The record of a version of a task.

    Args:
        version: the task's version.
        made_of: digest of the data's source, the box formats, and the answers that are read.
        examples, prompts, answers, scores: a digest of each.
    """

    version: int
    made_of: str
    examples: str
    prompts: str
    answers: str
    scores: str


def check_version(
    task: type[Task],
    examples: Sequence[Example],
    file: Path,
    *,
    source: str,
    options: Mapping[str, object] | None = None,
    record: bool = False,
) -> None:
    """Compare a task with the record of the same version. Only differences that the examples show are found.

    Args:
        task: a task of a benchmark in `BENCHMARKS`.
        examples: all examples derived from the source. They must be the same at every call, and suit `check_task`.
        file: JSON file with one record per task.
        source: identifies the data of the examples, e.g. the SHA-256 of the annotations. If the source has changed,
            other examples do not count as a change of the task.
        options: the same as for `check_task`.
        record: write the record of a new task, a new version or another source.

    Raises:
        LawError: prompts, parsed answers, scores or examples have changed, but the version has not. Or nothing is
            recorded yet, and `record` is not set.
    """
    records = _read_records(file)
    name, current = f"{task.benchmark}/{task.name}", _version_record(task, examples, source, options)
    recorded = records.get(name)
    if recorded == current:
        return
    if recorded is not None and recorded.version == current.version and recorded.made_of == current.made_of:
        fields = ("examples", "prompts", "answers", "scores")
        changed = ", ".join(field for field in fields if getattr(recorded, field) != getattr(current, field))
        raise LawError(
            f"{name}: broken is the law that a change has a new version: version {current.version} has other {changed} "
            f"than recorded in {file.name}. Fix: raise `version`, then record it (record=True)"
        )
    if recorded is not None and recorded.version > current.version:
        raise LawError(f"{name}: version {current.version} is older than recorded in {file.name}. Fix: raise it")
    if not record:
        subject = "its source" if recorded and recorded.version == current.version else f"version {current.version}"
        raise LawError(f"{name}: {subject} is not recorded in {file.name}. Fix: record it (record=True)")
    records[name] = current
    content = {key: msgspec.to_builtins(records[key]) for key in sorted(records)}
    write_whole(file, json.dumps(content, indent=1) + "\n")


def _read_records(file: Path) -> dict[str, VersionRecord]:
    if not file.exists():
        return {}
    remedy = "take it from version control"
    data = read_bounded(file, _MAX_FILE, what="no records of versions", remedy=remedy, error=LawError)
    try:
        return msgspec.json.decode(data, type=dict[str, VersionRecord])
    except msgspec.DecodeError as error:
        raise LawError(f"{file}: {error}. Fix: {remedy}") from error


def _version_record(
    task: type[Task], examples: Sequence[Example], source: str, options: Mapping[str, object] | None
) -> VersionRecord:
    cases = [with_options(task, examples, {**(options or {}), **rules}) for rules in choices_of_rules(task)]
    return VersionRecord(
        version=task.version,
        made_of=_digest([source, *map(str, BOX_FORMATS), *HOSTILE_ANSWERS, *damaged_forms(_SAMPLE)]),
        examples=_digest(map(_example, examples)),
        prompts=_digest(text for case in cases for text in _prompts(*case, options or {})),
        answers=_digest(text for case in cases for text in _answers(*case)),
        scores=_digest(text for case in cases for text in _scores(*case)),
    )


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


def _round_digits(value: object) -> object:
    """Round the numbers in a value to the digits that are the same on every machine."""
    if isinstance(value, float):
        return float(f"{value:.6g}") + 0.0  # avoids -0.0
    if isinstance(value, Mapping):
        return {key: _round_digits(inner) for key, inner in value.items()}
    return [_round_digits(inner) for inner in value] if isinstance(value, list | tuple) else value


def _text(*values: object) -> str:
    return json.dumps(_round_digits(values), sort_keys=True)


def _example(example: Example) -> str:
    frames = [[frame.video_id, frame.frame_index] for frame in example.frames]
    columns = (example.inputs, example.target, example.metadata, example.evidence)
    return _text(example.example_id, example.label, frames, *columns)


def _prompts(task: Task, examples: Sequence[Example], options: Mapping[str, object]) -> Iterator[str]:
    """Yield the prompts in every box format, and for every value that an option lists."""
    variants = [(task, box_format) for box_format in BOX_FORMATS]
    for name, option in task.options.items():
        values = option.choices or ((False, True) if isinstance(option.default, bool) else ())
        variants += [
            (type(task)(options={**task.chosen, name: value}), DEFAULT_BOX_FORMAT)
            for value in (values if option.changes == "prompt" else ())
        ]
    for variant, box_format in variants:
        for example in examples:
            second_prompt = variant.follow_up(example, ("a description",), box_format)
            yield variant.prompt(example, box_format).as_text()
            yield second_prompt.as_text() if second_prompt else ""
            if second_prompt and (third := variant.follow_up(example, ("a description", "a comparison"), box_format)):
                yield third.as_text()


def _answers(task: Task, examples: Sequence[Example]) -> Iterator[str]:
    for example in examples:
        for text in answers_of(task, example, hostile=example is examples[0]):
            prediction = task.parse(text, example.inputs, DEFAULT_BOX_FORMAT)
            yield _text(prediction.value, prediction.dropped) if isinstance(prediction, Prediction) else ""


def _scores(task: Task, examples: Sequence[Example]) -> Iterator[str]:
    for example in filter(task.has_answer, examples):
        for seed in range(3):
            text = chance_answer(task, example, seed, DEFAULT_BOX_FORMAT)
            prediction = task.parse(text, example.inputs, DEFAULT_BOX_FORMAT)
            yield _text(task.score(example, prediction if isinstance(prediction, Prediction) else None))
