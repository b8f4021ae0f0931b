"""Compare two run folders: settings, and the question, answer and scores of each sample.

Samples are matched by example and repetition. Their keys would not match, since a key also covers the model and its
settings. Texts are read line by line, and only the texts of shown samples stay in memory.
"""

from __future__ import annotations

import bisect
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import msgspec

from barista_bench.core.example import Json
from barista_bench.errors import ConfigError
from barista_bench.files.reading import read_json_lines
from barista_bench.files.text_out import make_printable
from barista_bench.runs.log.sample_log import MAX_LINE, SampleRecord
from barista_bench.runs.log_reader import run_records
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.results import SCORES_FILE

Kind = Literal["only_first", "only_second", "prompt", "media", "input", "status", "answer", "reasoning", "score"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting, by its dotted path in `run.json`, with both values as JSON. A value is None if its run lacks the
    setting.
    """

    name: str
    first: str | None
    second: str | None


@dataclass(frozen=True, slots=True, order=True)
class SampleChange:
    """One sample that differs. `first` and `second` hold the compared values, or None."""

    example_id: str
    repetition: int
    first: str | None = field(compare=False)
    second: str | None = field(compare=False)


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """One score over the samples that both runs scored: the number of differing values, and both means."""

    name: str
    samples: int
    changed: int
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two runs.

    Attributes:
        settings: differing settings of `run.json`, by name.
        samples: number of samples in each run.
        left_out: number of records in each run's logs that do not belong to the run and are left out.
        common: number of samples that both runs have.
        counts: number of differing samples by kind. `prompt`, `media`: the prompt or the media that were sent differ.
            `input`: the input differs although the logs show the same prompt and media (another task version, or a log
            of version 0.1). `status`: see `statuses`. `answer`, `reasoning`: the text differs although the input is the
            same. `score`: at least one score differs.
        statuses: (first status, second status) -> the number of samples with this change.
        first_samples: the first samples of each kind, by example id and repetition.
        scores: changes by score name, with the options of each run's start. None if a run is not scored.
    """

    first: Path
    second: Path
    settings: tuple[SettingChange, ...]
    samples: tuple[int, int]
    left_out: tuple[int, int]
    common: int
    counts: Mapping[Kind, int]
    statuses: Mapping[tuple[str, str], int]
    first_samples: Mapping[Kind, tuple[SampleChange, ...]]
    scores: tuple[ScoreChange, ...] | None

    @property
    def is_same(self) -> bool:
        """Whether settings and all samples' inputs, statuses, answers, reasoning and scores are equal."""
        return not self.settings and not any(self.counts.values())


class _Changes:
    """Counts per kind, and the first few samples of each kind. The order of arrival does not matter."""

    def __init__(self, limit: int) -> None:
        self.counts, self.statuses = Counter[Kind](), Counter[tuple[str, str]]()
        self.first_samples: dict[Kind, list[SampleChange]] = {kind: [] for kind in KINDS}
        self._limit = limit

    def add(self, kind: Kind, sample: SampleChange) -> None:
        self.counts[kind] += 1
        bisect.insort(self.first_samples[kind], sample)
        del self.first_samples[kind][self._limit :]


def diff(first: str | Path, second: str | Path, *, show: int = 10) -> Difference:
    """Compare two run folders.

    Raises:
        ConfigError: `show`, the number of samples to list per kind, is negative.
        DataError: a folder is not a run.
    """
    if show < 0:
        raise ConfigError(f"show is {show}. Fix: give --show 0 or more")
    folders = Path(first), Path(second)
    descriptions = read_run(folders[0]), read_run(folders[1])
    changes = _Changes(show)
    with ExitStack() as stack:
        a, b = (stack.enter_context(run_records(*pair)) for pair in zip(folders, descriptions, strict=True))
        for sample, line in a.counting_lines.items():
            if sample in b.counting_lines:
                _compare(a.record(line), b.record(b.counting_lines[sample]), changes)
            else:
                changes.add("only_first", _change(record := a.record(line), record.text, None))
        for sample, line in b.counting_lines.items():
            if sample not in a.counting_lines:
                changes.add("only_second", _change(record := b.record(line), None, record.text))
    return Difference(
        first=folders[0],
        second=folders[1],
        settings=_settings(*(run.model_dump() for run in descriptions)),
        samples=(len(a.counting_lines), len(b.counting_lines)),
        left_out=(a.left_out, b.left_out),
        common=len(a.counting_lines.keys() & b.counting_lines.keys()),
        scores=_scores(folders, changes),
        counts={kind: changes.counts[kind] for kind in KINDS},
        statuses=dict(sorted(changes.statuses.items())),
        first_samples={kind: tuple(changes.first_samples[kind]) for kind in KINDS},
    )


def _compare(a: SampleRecord, b: SampleRecord, changes: _Changes) -> None:
    other_prompt = bool(a.prompt and b.prompt and a.prompt != b.prompt)
    other_media = bool(a.media and b.media and a.media != b.media)
    other_input = a.fingerprint != b.fingerprint
    if other_prompt:
        changes.add("prompt", _change(a, a.prompt, b.prompt))
    if other_media:
        changes.add("media", _change(a, a.media, b.media))
    if other_input and not (other_prompt or other_media):
        changes.add("input", _change(a, a.fingerprint, b.fingerprint))
    if a.status is not b.status:
        changes.statuses[str(a.status), str(b.status)] += 1
        changes.add("status", _change(a, str(a.status), str(b.status)))
    if a.is_finished and b.is_finished and not (other_input or other_prompt or other_media):
        if a.text != b.text:
            changes.add("answer", _change(a, a.text, b.text))
        if a.reasoning != b.reasoning:
            changes.add("reasoning", _change(a, a.reasoning, b.reasoning))


def _change(record: SampleRecord | _ScoreLine, first: str | None, second: str | None) -> SampleChange:
    return SampleChange(record.example_id, record.repetition, first, second)


def _settings(first: Mapping[str, Json], second: Mapping[str, Json]) -> tuple[SettingChange, ...]:
    a, b = dict(_flatten(first)), dict(_flatten(second))
    names = sorted(name for name in a.keys() | b.keys() if name not in _DATA_PATHS and a.get(name) != b.get(name))
    return tuple(SettingChange(".".join(name), a.get(name), b.get(name)) for name in names)


_DATA_PATHS = {("data", name) for name in ("path", "absolute_path", "root", "absolute_root")}
"""Paths that are not compared as settings. The content hash shows whether the data are the same."""


def _flatten(values: Mapping[str, Json], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each path with its value as JSON, so that 0, 0.0 and false stay different. An empty mapping is a value."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, (*path, name))
        else:
            yield (*path, name), json.dumps(value, sort_keys=True, ensure_ascii=False)


class _ScoreLine(msgspec.Struct, frozen=True):
    example_id: str
    repetition: int
    scores: dict[str, float | None] | None = None


def _scores(folders: tuple[Path, Path], changes: _Changes) -> tuple[ScoreChange, ...] | None:
    """Compare scores sample by sample. A sample that lacks scores in one of the runs is skipped."""
    paths = [folder / SCORES_FILE for folder in folders]
    if not all(path.is_file() for path in paths):
        return None
    a, b = map(_score_lines, paths)
    values: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for sample, line in a.items():
        first, second = line.scores or {}, (b[sample].scores if sample in b else None) or {}
        differing = []
        for name in sorted(first.keys() & second.keys()):
            pair = first[name], second[name]
            if pair[0] is not None and pair[1] is not None:
                values[name].append((pair[0], pair[1]))
                if pair[0] != pair[1]:
                    differing.append([f"{name} {score:g}" for score in pair])
        if differing:
            changes.add("score", _change(line, *map(", ".join, zip(*differing, strict=True))))
    rows = []
    for name, pairs in sorted(values.items()):
        # fsum is exact, so that the order of the lines does not change the means.
        means = (math.fsum(side) / len(pairs) for side in zip(*pairs, strict=True))
        rows.append(ScoreChange(name, len(pairs), sum(pair[0] != pair[1] for pair in pairs), *means))
    return tuple(rows)


def _score_lines(path: Path) -> dict[tuple[str, int], _ScoreLine]:
    """Return lines by example and repetition. If a sample has two lines, the first counts."""
    decode = msgspec.json.Decoder(_ScoreLine).decode
    lines: dict[tuple[str, int], _ScoreLine] = {}
    for _, line in read_json_lines(path, MAX_LINE, decode, what="no scores of a sample", remedy="score the run again"):
        lines.setdefault((line.example_id, line.repetition), line)
    return lines


_HEADINGS: Mapping[Kind, str] = {
    "only_first": "only in the first",
    "only_second": "only in the second",
    "prompt": "another prompt",
    "media": "other media",
    "input": "asked differently (task version or media; the logs do not say which)",
    "status": "another status",
    "answer": "another answer to the same question",
    "reasoning": "other reasoning about the same question",
    "score": "other scores",
}
_WIDTH = 80


def as_text(difference: Difference) -> str:
    """Return a difference as readable lines.

    Model texts are shortened, and their control characters are escaped.
    """
    lines = [f"First:  {make_printable(str(difference.first))}", f"Second: {make_printable(str(difference.second))}"]
    lines.append("Settings" if difference.settings else "Settings: all the same")
    lines += [
        f"  {make_printable(change.name)}: {_shorten_both(change.first, change.second)}"
        for change in difference.settings
    ]
    counts = f"Samples: {difference.samples[0]} and {difference.samples[1]}, {difference.common} in both"
    lines.append(counts + (", all the same" if not any(difference.counts.values()) else ""))
    if any(difference.left_out):
        lines.append(f"  left out, since not of the run that run.json describes: {_arrow(*difference.left_out)}")
    for kind in KINDS:
        lines += _kind_text(kind, difference)
    if difference.scores is None:
        lines.append("Scores: not compared, since not both runs are scored")
    else:
        lines.append("Scores, by the options that each run was started with")
    for change in difference.scores or ():
        means = _arrow(f"{change.first:.6g}", f"{change.second:.6g}")
        lines.append(f"  {make_printable(change.name)}: {change.changed} of {change.samples} changed, mean {means}")
    return "\n".join([*lines, ""])


def _kind_text(kind: Kind, difference: Difference) -> Iterator[str]:
    count, samples = difference.counts[kind], difference.first_samples[kind]
    if not count:
        return
    yield f"  {_HEADINGS[kind]}: {count}"
    if kind == "status":
        for (first, second), number in difference.statuses.items():
            yield f"    {_arrow(first, second)}: {number}"
    for sample in samples:
        texts = _shorten_both(sample.first, sample.second)
        yield f"    {make_printable(sample.example_id)} repetition {sample.repetition}: {texts}"
    if count > len(samples) > 0:
        yield f"    and {count - len(samples)} more"


def _arrow(first: object, second: object) -> str:
    return f"{first} -> {second}"


def _shorten_both(first: str | None, second: str | None) -> str:
    """Shorten two texts. Long texts start shortly before their first difference."""
    a, b = first or "", second or ""
    parting = next((position for position, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, parting - _WIDTH // 4) if max(len(a), len(b)) > _WIDTH else 0
    return _arrow(_shorten(first, start), _shorten(second, start))


def _shorten(text: str | None, start: int) -> str:
    if text is None:
        return "(nothing)"
    cut = text[start : start + _WIDTH]
    return ("..." if start else "") + make_printable(cut) + ("..." if start + _WIDTH < len(text) else "")
