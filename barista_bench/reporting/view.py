"""What a report shows, as pure data made from scored runs. `html` and `markdown` print it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from barista_bench.errors import ConfigError
from barista_bench.judging.scoring import JudgedRun
from barista_bench.reporting import judges, tables
from barista_bench.reporting.samples import Sample, score_names, section_samples
from barista_bench.reporting.tables import Table
from barista_bench.running.scoring import ScoredRun


@dataclass(frozen=True, slots=True)
class Section:
    """Runs that can be compared: the same task over the same examples.

    Args:
        heading: benchmark and task.
        facts: what was evaluated, as name and value.
        warnings: what a reader must know before the figures.
        labels: the models, as they are called in this report; the columns of `samples`.
        scores: names of the scores of one sample.
    """

    heading: str
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    labels: tuple[str, ...]
    scores: tuple[str, ...]
    overview: tuple[Table, ...]
    judges: tuple[Table, ...]
    breakdowns: tuple[Table, ...]
    details: tuple[Table, ...]
    timing: Table
    provenance: Table
    samples: tuple[Sample, ...]
    runs: tuple[ScoredRun, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*self.overview, *self.judges, *self.breakdowns, *self.details, self.timing, self.provenance)


@dataclass(frozen=True, slots=True)
class Report:
    title: str
    sections: tuple[Section, ...]

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(sample for section in self.sections for sample in section.samples)

    @property
    def example_count(self) -> int:
        return sum(section.runs[0].results.dataset.examples for section in self.sections)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know first; names the section where there are several."""
        several = len(self.sections) > 1
        return tuple(
            f"{section.heading}: {warning}" if several else warning
            for section in self.sections
            for warning in section.warnings
        )


def build_report(
    runs: Sequence[ScoredRun],
    *,
    samples: int,
    title: str | None,
    max_text: int,
    judged: Mapping[Path, Sequence[JudgedRun]] | None = None,
) -> Report:
    """The report over `runs`, with `samples` examples a section and answers cut at `max_text` characters.

    `judged` holds what judges say of a run, by its folder.

    Raises:
        ConfigError: there is nothing to report.
    """
    if not runs:
        raise ConfigError("no run to report. Remedy: name at least one run folder")
    if samples < 0:
        raise ConfigError(f"samples is {samples}. Remedy: give 0 or more")
    groups: dict[tuple[str, ...], list[ScoredRun]] = {}
    for run in runs:
        groups.setdefault(_comparable(run), []).append(run)
    headings = _headings(list(groups))
    sections = tuple(
        _section(place, heading, group, samples, max_text, judged or {})
        for place, (heading, group) in enumerate(zip(headings, groups.values(), strict=True))
    )
    return Report(title or f"Evaluation of {', '.join(headings)}", sections)


def _comparable(run: ScoredRun) -> tuple[str, ...]:
    dataset = run.results.dataset
    return (dataset.benchmark, dataset.task, str(dataset.task_version), dataset.split, dataset.content_hash)


def _headings(groups: Sequence[tuple[str, ...]]) -> list[str]:
    """Benchmark and task, with split and content where that alone does not tell the sections apart."""
    short = [f"{benchmark} / {task}" for benchmark, task, *_ in groups]
    return [
        f"{heading} ({split}, {content[:8]})" if short.count(heading) > 1 else heading
        for heading, (*_, split, content) in zip(short, groups, strict=True)
    ]


def _section(
    place: int,
    heading: str,
    runs: Sequence[ScoredRun],
    samples: int,
    max_text: int,
    judged: Mapping[Path, Sequence[JudgedRun]],
) -> Section:
    labels = _labels(runs)
    by_judge = judges.labelled([(label, judged.get(run.folder, ())) for label, run in zip(labels, runs, strict=True)])
    models = [(label, run.results) for label, run in zip(labels, runs, strict=True)]
    return Section(
        heading=heading,
        facts=_facts(runs),
        warnings=(*_warnings(models), *judges.warnings(by_judge)),
        labels=labels,
        scores=score_names(runs),
        overview=(tables.overview(models), *tables.further_figures(models)),
        judges=judges.tables(by_judge),
        breakdowns=tuple(tables.breakdowns(models)),
        details=tuple(tables.details(models)),
        timing=tables.timing(models),
        provenance=tables.provenance(models),
        samples=section_samples(
            place, runs, samples, max_text, [judges.verdicts(by_judge, label, max_text) for label in labels]
        ),
        runs=tuple(runs),
    )


def _facts(runs: Sequence[ScoredRun]) -> tuple[tuple[str, str], ...]:
    results = [run.results for run in runs]
    dataset = results[0].dataset
    versions = [{"barista_bench": found.barista_bench, **found.versions} for found in results]
    same = all(found == versions[0] for found in versions)
    packages = ", ".join(f"{name} {version}" for name, version in versions[0].items())
    return (
        ("benchmark", dataset.benchmark),
        ("task", f"{dataset.task} (version {dataset.task_version})"),
        ("split", dataset.split),
        ("examples", tables.number(dataset.examples)),
        ("content hash", dataset.content_hash[:12]),
        ("protocol", ", ".join(dict.fromkeys(found.protocol for found in results))),
        ("packages", packages if same else "differ between the models, see settings and versions"),
    )


def _warnings(models: Sequence[tables.Labelled]) -> tuple[str, ...]:
    warnings = []
    for label, results in models:
        coverage = results.coverage
        if not coverage.complete:
            missing = coverage.expected - coverage.scored
            warnings.append(
                f"{label} is incomplete: {missing:,} of {coverage.expected:,} samples are not scored. "
                "Its figures stand on the others alone and cannot be compared."
            )
    if len({results.protocol for _, results in models}) > 1:
        warnings.append("The models were run under different protocols.")
    if len({results.runs for _, results in models}) > 1:
        warnings.append("The models were run a different number of times.")
    return tuple(warnings)


def _labels(runs: Sequence[ScoredRun]) -> tuple[str, ...]:
    """Model names, told apart where needed by their run folder, then by number."""
    names = [run.results.model.name for run in runs]
    for suffixes in ([run.folder.name for run in runs], [str(place) for place in range(1, len(runs) + 1)]):
        counts = Counter(names)
        names = [
            f"{name} ({suffix})" if counts[name] > 1 else name for name, suffix in zip(names, suffixes, strict=True)
        ]
    return tuple(names)
