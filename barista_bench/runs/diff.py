"""What differs between two run folders: settings, and sample by sample what was asked, answered and scored.

Samples are matched by example and repetition, since a key covers the model and its settings too. Reads line by line:
in memory are some 60 bytes a sample and the few samples that are shown, whatever the order of the logs.
"""

from __future__ import annotations

import bisect
import json
import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.core.task import Json
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.text_out import printable
from barista_bench.runs.log.log_reader import RunRecords, digest_array, repetition_digest
from barista_bench.runs.log.sample_log import SampleRecord, whole_lines
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.results import SCORES_FILE

Kind = Literal["only_first", "only_second", "prompt", "media", "input", "status", "answer", "reasoning", "score"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting, by its dotted place in `run.json`, with both values as JSON; None where a run does not have it."""

    name: str
    first: str | None
    second: str | None


@dataclass(frozen=True, slots=True, order=True)
class SampleChange:
    """One sample that differs. What is compared stands in `first` and `second`; None where there is nothing."""

    example_id: str
    run: int
    first: str | None = field(compare=False)
    second: str | None = field(compare=False)


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """One figure over the samples that are scored in both runs: how many values differ, and both means."""

    name: str
    samples: int
    changed: int
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two runs.

    Attributes:
        settings: of `run.json`, by name.
        samples: number of samples in each run.
        left_out: records in each run's logs that do not belong to the run; they are left out.
        common: samples that both have.
        counts: samples by kind. `prompt`, `media`: another prompt or other media were sent. `input`: something else
            was asked, but not another prompt or other media as far as the logs say (another task version, or a log of
            version 0.1). `status`: see `statuses`. `answer`, `reasoning`: another text came although the same was
            asked. `score`: at least one figure differs.
        statuses: (first, second) to the number of samples whose status changed so.
        shown: the first samples of each kind, by example id and repetition.
        scores: by name, by the options that each run was started with; None where one of the runs is not scored.
    """

    first: Path
    second: Path
    settings: tuple[SettingChange, ...]
    samples: tuple[int, int]
    left_out: tuple[int, int]
    common: int
    counts: Mapping[Kind, int]
    statuses: Mapping[tuple[str, str], int]
    shown: Mapping[Kind, tuple[SampleChange, ...]]
    scores: tuple[ScoreChange, ...] | None

    @property
    def same(self) -> bool:
        """Whether nothing differs in settings or in any sample's input, status, answer, reasoning and figures."""
        return not self.settings and not any(self.counts.values())


class _Changes:
    """Counts, and the first few samples of each kind whatever order they come in."""

    def __init__(self, shown: int) -> None:
        self.counts: Counter[Kind] = Counter()
        self.statuses: Counter[tuple[str, str]] = Counter()
        self.shown: dict[Kind, list[SampleChange]] = {kind: [] for kind in KINDS}
        self._limit = shown

    def add(self, kind: Kind, sample: SampleChange) -> None:
        self.counts[kind] += 1
        bisect.insort(self.shown[kind], sample)
        del self.shown[kind][self._limit :]


def diff(first: str | Path, second: str | Path, *, shown: int = 10) -> Difference:
    """Compare two run folders.

    Args:
        first: made by `run`.
        second: made by `run`.
        shown: samples of each kind that are named.

    Raises:
        ConfigError: `shown` is negative.
        DataError: a folder is no run.
    """
    if shown < 0:
        raise ConfigError(f"shown is {shown}. Remedy: give 0 or more")
    folders = Path(first), Path(second)
    described = read_run(folders[0]), read_run(folders[1])
    changes = _Changes(shown)
    with ExitStack() as stack:
        a, b = (stack.enter_context(RunRecords(*pair)) for pair in zip(folders, described, strict=True))
        matched = _match_rows(a.ids, b.ids)
        for record in map(a.record, matched.only_first):
            changes.add("only_first", _change(record, record.text, None))
        for record in map(b.record, matched.only_second):
            changes.add("only_second", _change(record, None, record.text))
        for row_a, row_b in matched.pairs():
            _compare(a.record(row_a), b.record(row_b), changes)
    return Difference(
        first=folders[0],
        second=folders[1],
        settings=_settings(*described),
        samples=(len(a.ids), len(b.ids)),
        left_out=(a.left_out, b.left_out),
        common=len(matched.first),
        scores=_scores(folders, changes),
        counts={kind: changes.counts[kind] for kind in KINDS},
        statuses=dict(sorted(changes.statuses.items())),
        shown={kind: tuple(changes.shown[kind]) for kind in KINDS},
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
    if a.finished and b.finished and not (other_input or other_prompt or other_media):
        if a.text != b.text:
            changes.add("answer", _change(a, a.text, b.text))
        if a.reasoning != b.reasoning:
            changes.add("reasoning", _change(a, a.reasoning, b.reasoning))


def _change(record: SampleRecord | _ScoreLine, first: str | None, second: str | None) -> SampleChange:
    return SampleChange(record.example_id, record.run, first, second)


def _settings(first: Mapping[str, Json], second: Mapping[str, Json]) -> tuple[SettingChange, ...]:
    try:
        a, b = dict(_flat(first)), dict(_flat(second))
    except RecursionError as error:
        raise DataError("run.json: is nested too deeply. Remedy: run again with another --out") from error
    names = sorted(name for name in a.keys() | b.keys() if name not in _DATA_PATHS and a.get(name) != b.get(name))
    return tuple(SettingChange(".".join(name), a.get(name), b.get(name)) for name in names)


_DATA_PATHS = {("data", name) for name in ("path", "absolute_path", "root", "absolute_root")}
"""No settings: the content hash says whether the data are the same."""


def _flat(values: Mapping[str, Json], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Places and values as JSON, so that 0, 0.0 and false stay different; an empty mapping is a value of its own."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, (*path, name))
        else:
            yield (*path, name), json.dumps(value, sort_keys=True, ensure_ascii=False)


def _scores(folders: tuple[Path, Path], changes: _Changes) -> tuple[ScoreChange, ...] | None:
    """Compare figures sample by sample; a sample without figures in one of the runs is not compared."""
    paths = [folder / SCORES_FILE for folder in folders]
    if not all(path.is_file() for path in paths):
        return None
    values: dict[str, tuple[array[float], array[float]]] = {}
    with ExitStack() as stack:
        a, b = (_ScoreLines(path, stack.enter_context(path.open("rb"))) for path in paths)
        for row_a, row_b in _match_rows(a.ids, b.ids).pairs():
            first, second = a.line(row_a), b.line(row_b)
            changed = []
            for name in sorted((first.scores or {}).keys() & (second.scores or {}).keys()):
                score_first, score_second = (first.scores or {})[name], (second.scores or {})[name]
                if score_first is None or score_second is None:
                    continue
                columns = values.setdefault(name, (array("d"), array("d")))
                columns[0].append(score_first)
                columns[1].append(score_second)
                if score_first != score_second:
                    changed.append((f"{name} {score_first:g}", f"{name} {score_second:g}"))
            if changed:
                changes.add("score", _change(first, *(", ".join(texts) for texts in zip(*changed, strict=True))))
    return tuple(_score_change(name, *columns) for name, columns in sorted(values.items()))


def _score_change(name: str, first: array[float], second: array[float]) -> ScoreChange:
    # fsum is exact, so that the order of the lines does not show in the means.
    changed = sum(a != b for a, b in zip(first, second, strict=True))
    return ScoreChange(name, len(first), changed, math.fsum(first) / len(first), math.fsum(second) / len(second))


@dataclass(frozen=True, slots=True)
class _Match:
    """Rows of both sides: those that belong together, in the order of the first side, and those without a partner."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    only_first: list[int]
    only_second: list[int]

    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.first.tolist(), self.second.tolist(), strict=True)


def _match_rows(first: NDArray[np.bytes_], second: NDArray[np.bytes_]) -> _Match:
    """Join two arrays of distinct ids."""
    _, rows_first, rows_second = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    order = np.argsort(rows_first)
    return _Match(
        rows_first[order],
        rows_second[order],
        np.setdiff1d(np.arange(len(first)), rows_first, assume_unique=True).tolist(),
        np.setdiff1d(np.arange(len(second)), rows_second, assume_unique=True).tolist(),
    )


class _ScoreLine(msgspec.Struct, frozen=True, gc=False):
    example_id: str
    run: int
    scores: dict[str, float | None] | None = None


class _ScoreLines:
    """`scores.jsonl`: ids of its lines, (n,), distinct, and each line when it is asked for."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._decoder = msgspec.json.Decoder(_ScoreLine)
        digests, offsets = bytearray(), array("q")
        for number, (offset, text) in enumerate(whole_lines(file), start=1):
            line = self._decoded(text, number)
            digests += repetition_digest(line.example_id, line.run)
            offsets.append(offset)
        _, kept = np.unique(digest_array(digests), return_index=True)
        kept.sort()
        self.ids = digest_array(digests)[kept]
        self._offsets = np.frombuffer(offsets, dtype=np.int64)[kept]

    def _decoded(self, text: bytes, number: int) -> _ScoreLine:
        try:
            return self._decoder.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise DataError(f"{self._path}: line {number}: {error}. Remedy: score the run again") from error

    def line(self, row: int) -> _ScoreLine:
        self._file.seek(int(self._offsets[row]))
        return self._decoder.decode(self._file.readline())


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
    """A difference for people, in plain lines. What models wrote is shortened, and its control characters escaped."""
    lines = [f"First:  {printable(str(difference.first))}", f"Second: {printable(str(difference.second))}"]
    lines.append("Settings" if difference.settings else "Settings: all the same")
    lines += [_setting_text(change) for change in difference.settings]
    counts = f"Samples: {difference.samples[0]} and {difference.samples[1]}, {difference.common} in both"
    lines.append(counts + (", all the same" if not any(difference.counts.values()) else ""))
    if any(difference.left_out):
        lines.append(f"  left out, since not of the run that run.json describes: {_arrow(*difference.left_out)}")
    for kind in KINDS:
        lines += _kind_text(kind, difference)
    if difference.scores is None:
        lines.append("Scores: not compared, since not both runs are scored")
    else:
        lines += [
            "Scores, by the options that each run was started with",
            *(_score_text(change) for change in difference.scores),
        ]
    return "\n".join([*lines, ""])


def _kind_text(kind: Kind, difference: Difference) -> Iterator[str]:
    count, shown = difference.counts[kind], difference.shown[kind]
    if not count:
        return
    yield f"  {_HEADINGS[kind]}: {count}"
    if kind == "status":
        for (first, second), number in difference.statuses.items():
            yield f"    {_arrow(first, second)}: {number}"
    for sample in shown:
        yield f"    {printable(sample.example_id)} run {sample.run}: {_both(sample.first, sample.second)}"
    if count > len(shown) > 0:
        yield f"    and {count - len(shown)} more"


def _setting_text(change: SettingChange) -> str:
    return f"  {printable(change.name)}: {_both(change.first, change.second)}"


def _score_text(change: ScoreChange) -> str:
    means = _arrow(f"{change.first:.6g}", f"{change.second:.6g}")
    return f"  {printable(change.name)}: {change.changed} of {change.samples} changed, mean {means}"


def _arrow(first: object, second: object) -> str:
    return f"{first} -> {second}"


def _both(first: str | None, second: str | None) -> str:
    """Two texts; long ones from a little before where they part."""
    a, b = first or "", second or ""
    parting = next((position for position, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, parting - _WIDTH // 4) if max(len(a), len(b)) > _WIDTH else 0
    return _arrow(_shortened(first, start), _shortened(second, start))


def _shortened(text: str | None, start: int) -> str:
    if text is None:
        return "(nothing)"
    cut = text[start : start + _WIDTH]
    return ("..." if start else "") + printable(cut) + ("..." if start + _WIDTH < len(text) else "")
