"""Show the origin of a report's scores (data, protocol, models, versions, dates) as a line and two tables."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.core.model_names import describe_model
from barista_bench.reporting.leaderboard import TaskStanding
from barista_bench.runs.described import SHORT
from barista_bench.runs.log.sessions import session_dates
from barista_bench.runs.score.labels import pathless_name
from barista_bench.runs.score.results import Results
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import Row, Table, number, number_columns, text_columns, words


@dataclass(frozen=True, slots=True)
class ReportProvenance:
    """The origin of a report's scores.

    `line` is for the head of the report. The first of `tables` describes the data, with a row per task, the second the
    models.
    """

    line: str
    tables: tuple[Table, ...]


def report_provenance(tasks: Sequence[TaskStanding]) -> ReportProvenance:
    """Return the provenance of all runs of a report. Tasks keep the order of the report."""
    runs = [run for task in tasks for run in task.runs.values()]
    return ReportProvenance(" · ".join(_parts(tasks, runs)), (_data(tasks), _models(tasks)))


def _parts(tasks: Sequence[TaskStanding], runs: Sequence[ScoredRun]) -> Iterator[str]:
    firsts = [_first(task) for task in tasks]
    names = list(dict.fromkeys(_title(run) for run in firsts))
    yield f"{', '.join(names) if len(names) < 4 else f'{len(names)} benchmarks'}, data {data_digest(firsts)}"
    examples = sum(run.results.dataset.examples for run in firsts)
    videos = {frame.video_id for run in firsts for example in run.examples.examples for frame in example.frames}
    answered = sum(run.results.coverage.scored for run in runs)
    yield f"{_count(len(videos), 'video')}, {_count(examples, 'example')}, {_count(answered, 'answer')}"
    yield _frames(firsts)
    results = [run.results for run in runs]
    protocol = _one_of({each.protocol for each in results}, "protocols")
    yield f"{protocol}{' protocol' if protocol in ('release', 'paper') else ''}"
    yield f"prompts {_one_of({each.prompts.wording for each in results}, 'wordings')}"
    yield _one_of({decoding(each) for each in results}, "ways of decoding")
    yield f"barista_bench {_one_of({each.barista_bench for each in results}, 'versions')}"
    if dates := _dates(runs):
        yield f"run {dates}"


def _first(task: TaskStanding) -> ScoredRun:
    return next(iter(task.runs.values()))


def _title(run: ScoredRun) -> str:
    name = run.results.dataset.benchmark
    return BENCHMARKS[name].title if name in BENCHMARKS else name


def data_digest(runs: Iterable[ScoredRun]) -> str:
    """Return the short content hash of a set.

    Several sets share the SHA-256 of their sorted content hashes, one per line.
    """
    hashes = sorted({run.results.dataset.content_hash for run in runs})
    whole = hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()
    return whole[:SHORT]


def decoding(results: Results) -> str:
    """Describe the generation settings of the answers.

    >>> from types import SimpleNamespace
    >>> decoding(SimpleNamespace(generation={"temperature": 0.0, "max_new_tokens": 192}, repetitions=1))
    'greedy, at most 192 tokens, 1 repetition'
    """
    temperature, tokens = results.generation.get("temperature"), results.generation.get("max_new_tokens")
    parts = ["greedy"] if temperature == 0 else [f"temperature {temperature}"] if temperature is not None else []
    parts += [f"at most {tokens} tokens"] if tokens is not None else []
    return ", ".join([*parts, _count(results.repetitions, "repetition")])


def _frames(runs: Iterable[ScoredRun]) -> str:
    counts = [len(set(example.frames)) for run in runs for example in run.examples.examples] or [0]
    low, high = min(counts), max(counts)
    return _count(high, "frame") if low == high else f"{low}–{high} frames"


def _dates(runs: Iterable[ScoredRun]) -> str:
    """Return the first and last day on which runs were started, or an empty string if no log has a date."""
    days = sorted({day for run in runs for day in session_dates(run.folder)})
    return " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))


def _one_of(values: set[str], noun: str) -> str:
    """Return the values if there are at most two, or otherwise their number."""
    return " and ".join(sorted(values)) if len(values) < 3 else f"{len(values)} {noun}"


def _count(count: int, noun: str) -> str:
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def _data(tasks: Sequence[TaskStanding]) -> Table:
    columns = (*text_columns("task", "content hash", "split"), *number_columns("", "videos", "examples"))
    columns += text_columns("frames an example", "protocol", "prompts", "options")
    rows: list[Row] = []
    for task in tasks:
        run = _first(task)
        dataset, videos = run.results.dataset, {example.video_id for example in run.examples.examples}
        limit = "" if dataset.limit is None else f", the first {dataset.limit}"
        rows.append(
            (
                *(f"{dataset.benchmark} / {words(dataset.task)}", dataset.content_hash[:SHORT]),
                *(f"{dataset.split}{limit}", len(videos), dataset.examples, _frames([run])),
                *(run.results.protocol, run.results.prompts.wording),
                run.results.comparability.options_in_words or "defaults",
            )
        )
    several = len({_first(task).results.dataset.content_hash for task in tasks}) > 1
    note = f"Data {data_digest(map(_first, tasks))}: SHA-256 of these hashes, sorted, a line each." if several else ""
    return Table.of("Data", columns, rows, note)


def _models(tasks: Sequence[TaskStanding]) -> Table:
    by_label: Mapping[str, list[ScoredRun]] = defaultdict(list)
    for task in tasks:
        for label, run in task.runs.items():
            by_label[label].append(run)
    columns = (*text_columns("model", "what it is", "asked as", "revision"), *number_columns("", "answers"))
    columns += text_columns("decoding", "run", "versions")
    versions = {label: {_versions(run.results) for run in runs} for label, runs in by_label.items()}
    shared_versions = set[str]().union(*versions.values())
    rows: list[Row] = []
    for label, runs in by_label.items():
        results = [run.results for run in runs]
        rows.append(
            (
                *(label, describe_model(results[0].model.name)),
                _one_of({pathless_name(each.model) for each in results}, "names"),
                _one_of({(each.model.revision or "")[:SHORT] for each in results}, "revisions") or None,
                sum(each.coverage.scored for each in results),
                *(_one_of({decoding(each) for each in results}, "ways"), _dates(runs) or None),
                None if len(shared_versions) == 1 else _one_of(versions[label], "sets of versions"),
            )
        )
    note = f"Versions: {next(iter(shared_versions))}." if len(shared_versions) == 1 else ""
    return Table.of("Models", columns, rows, note)


def _versions(results: Results) -> str:
    versions = {"barista_bench": results.barista_bench, **results.versions}
    return ", ".join(f"{name} {version}" for name, version in versions.items() if version != "not installed")
