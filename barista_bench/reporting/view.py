"""What a report shows, as pure data made from scored runs. `html`, `markdown` and `export` print it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.errors import ConfigError
from barista_bench.judging.judged_run import JudgedRun
from barista_bench.reporting import diagnosis, figures, judges, paper, summary, tables
from barista_bench.reporting.analyses import Analyses
from barista_bench.reporting.diagnosis import DrawnGraph
from barista_bench.reporting.figures import DrawnFigure
from barista_bench.reporting.judges import LabelledJudge
from barista_bench.reporting.paper import PaperPart
from barista_bench.reporting.samples import Sample, score_names, section_samples
from barista_bench.reporting.tables import Table
from barista_bench.runs.score.results import Comparability, told_apart
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import comparable

Judged = Mapping[Path, Sequence[JudgedRun]]
"""What judges say of a run, by its folder."""


@dataclass(frozen=True, slots=True)
class Section:
    """Runs that can be compared: see `runs.score.results`.

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
    failures: tuple[Table, ...]
    figures: tuple[DrawnFigure, ...]
    breakdowns: tuple[Table, ...]
    details: tuple[Table, ...]
    timing: Table
    provenance: Table
    judged: tuple[LabelledJudge, ...]
    runs: tuple[ScoredRun, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        before_timing = (*self.overview, *self.judges, *self.failures, *self.breakdowns, *self.details)
        return (*before_timing, self.timing, self.provenance)


@dataclass(frozen=True, slots=True)
class Report:
    """All but the samples. `summary` and `diagnosis` are tables over all tasks and models.

    `papers` are the counterparts of the papers' tables, a part a benchmark. `left_out` says which analyses could not
    be made, and why.
    """

    title: str
    sections: tuple[Section, ...]
    summary: tuple[Table, ...]
    diagnosis: tuple[Table, ...]
    graphs: tuple[DrawnGraph, ...]
    papers: tuple[PaperPart, ...]
    figures: tuple[DrawnFigure, ...]
    without_figures: str
    left_out: tuple[str, ...]

    @property
    def example_count(self) -> int:
        return sum(section.runs[0].results.dataset.examples for section in self.sections)

    @property
    def overall(self) -> tuple[Table, ...]:
        """Tables over all tasks."""
        return (*self.summary, *self.diagnosis, *(graph.table for graph in self.graphs))

    @property
    def tables(self) -> tuple[tuple[str, Table], ...]:
        """Every table, with the heading of its section; empty for those over all tasks."""
        of_sections = [(section.heading, table) for section in self.sections for table in section.tables]
        published = [(f"paper {part.heading}", table) for part in self.papers for table in part.tables]
        return (*(("", table) for table in self.overall), *published, *of_sections)

    @property
    def all_figures(self) -> tuple[DrawnFigure, ...]:
        published = (figure for part in self.papers for figure in part.figures)
        return (*self.figures, *published, *(figure for section in self.sections for figure in section.figures))

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
    runs: Sequence[ScoredRun], *, title: str | None = None, judged: Judged | None = None, analyses: Analyses
) -> Report:
    """The report over `runs`; those that are comparable share a section.

    Raises:
        ConfigError: there is nothing to report.
    """
    if not runs:
        raise ConfigError("no run to report. Remedy: name at least one run folder")
    by_set = comparable(runs)
    benchmarks = list(dict.fromkeys(record.benchmark for record in by_set))
    groups = dict(sorted(by_set.items(), key=lambda item: benchmarks.index(item[0].benchmark)))
    headings = _headings(list(groups))
    drawing = figures.can_draw()
    sections = tuple(
        _section(heading, group, judged or {}, analyses, drawing=drawing)
        for heading, group in zip(headings, groups.values(), strict=True)
    )
    tasks = [(section.heading, dict(zip(section.labels, section.runs, strict=True))) for section in sections]
    papers = tuple(_papers(sections, judged or {}, drawing=drawing))
    return Report(
        title=title or _title(sections),
        sections=sections,
        summary=_summary(tasks) if len(sections) > 1 else (),
        diagnosis=_diagnosis(analyses),
        graphs=tuple(drawn for graph in analyses.graphs if (drawn := diagnosis.drawn(graph))),
        papers=tuple(part for part in papers if part.tables or part.figures),
        figures=_figures(tasks, analyses) if drawing else (),
        without_figures="" if drawing else "Figures need matplotlib: install barista_bench[viz].",
        left_out=(*analyses.left_out, *(part.left_out for part in papers if part.left_out)),
    )


def report_samples(report: Report, wanted: int, max_text: int) -> tuple[Sample, ...]:
    """At most `wanted` examples of each section, evenly spread, with answers cut at `max_text` characters.

    Raises:
        ConfigError: `wanted` is negative.
    """
    if wanted < 0:
        raise ConfigError(f"samples is {wanted}. Remedy: give 0 or more")
    samples: list[Sample] = []
    for number, section in enumerate(report.sections):
        verdicts = [judges.verdicts(section.judged, label, max_text) for label in section.labels]
        samples += section_samples(number, section.runs, wanted, max_text, verdicts)
    return tuple(samples)


def _title(sections: Sequence[Section]) -> str:
    headings = [section.heading for section in sections]
    if len(headings) < 3:
        return f"Evaluation of {', '.join(headings)}"
    benchmarks = dict.fromkeys(section.runs[0].results.dataset.benchmark for section in sections)
    models = len({label for section in sections for label in section.labels})
    return f"Evaluation of {', '.join(benchmarks)}: {len(headings)} tasks, {models} model{'s' if models > 1 else ''}"


def _summary(tasks: Sequence[summary.TaskRuns]) -> tuple[Table, ...]:
    overall = (summary.scores(tasks), *summary.by_group(tasks), summary.tokens(tasks))
    return tuple(table for table in overall if table)


def _diagnosis(analyses: Analyses) -> tuple[Table, ...]:
    tables = []
    if analyses.comparisons:
        tables.append(diagnosis.comparisons(analyses.comparisons))
    tables += [diagnosis.agreement(agreed, _of(benchmark, analyses)) for benchmark, agreed in analyses.agreements]
    if analyses.gaps:
        tables.append(diagnosis.baselines(analyses.gaps))
    if analyses.consistency:
        tables.append(diagnosis.consistency(analyses.consistency))
    return tuple(tables)


def _figures(tasks: Sequence[summary.TaskRuns], analyses: Analyses) -> tuple[DrawnFigure, ...]:
    results = [(heading, {label: run.results for label, run in runs.items()}) for heading, runs in tasks]
    drawn: list[DrawnFigure | None] = [figures.scores(results)]
    parts = summary.by_benchmark(tasks)
    for benchmark, part in parts.items():
        of_part = [(heading, {label: run.results for label, run in runs.items()}) for heading, runs in part]
        keys = dict.fromkeys(
            key for _, by_model in of_part for of_model in by_model.values() for key in of_model.breakdowns
        )
        drawn += [figures.by_value(of_part, key, benchmark if len(parts) > 1 else "") for key in keys]
    drawn += [figures.agreement(agreement, _of(benchmark, analyses)) for benchmark, agreement in analyses.agreements]
    return tuple(figure for figure in drawn if figure)


def _of(benchmark: str, analyses: Analyses) -> str:
    """The benchmark's name where there are several."""
    if not benchmark:
        return "all benchmarks"
    return benchmark if len(analyses.agreements) > 1 else ""


def _papers(sections: Sequence[Section], judged: Judged, *, drawing: bool) -> Iterator[PaperPart]:
    """A part a benchmark; another one for runs of a task that are not comparable with those before.

    Sets of examples share a part where the benchmark's tables compare them.
    """
    parts: dict[tuple[str, int], list[Section]] = {}
    records: dict[tuple[str, str], list[Comparability]] = {}
    for section in sections:
        record = section.runs[0].results.comparability
        if record.benchmark in BENCHMARKS and BENCHMARKS[record.benchmark].compares_sets:
            record = record.model_copy(update={"split": "", "limit": None, "content_hash": ""})
        seen = records.setdefault((record.benchmark, record.task), [])
        seen += [] if record in seen else [record]
        parts.setdefault((record.benchmark, seen.index(record)), []).append(section)
    for (name, _), members in parts.items():
        if name not in BENCHMARKS:
            continue
        title = BENCHMARKS[name].title
        several = (name, 1) in parts
        heading = f"{title} ({', '.join(section.heading for section in members)})" if several else title
        runs = [(label, run) for section in members for label, run in zip(section.labels, section.runs, strict=True)]
        yield paper.paper_part(BENCHMARKS[name], heading, runs, judged, drawing=drawing)


def _headings(groups: Sequence[Comparability]) -> list[str]:
    """Benchmark and task, with what tells a section from others of its task: why they stand apart."""
    names = [f"{group.benchmark} / {group.task}" for group in groups]
    return [f"{name} ({apart})" if apart else name for name, apart in zip(names, told_apart(groups), strict=True)]


def _section(heading: str, runs: Sequence[ScoredRun], judged: Judged, analyses: Analyses, *, drawing: bool) -> Section:
    labels = tuple(analyses.labels[run.folder] for run in runs)
    by_judge = judges.labelled([(label, judged.get(run.folder, ())) for label, run in zip(labels, runs, strict=True)])
    models = [(label, run.results) for label, run in zip(labels, runs, strict=True)]
    failed = [(label, analyses.failures.get(run.folder, ())) for label, run in zip(labels, runs, strict=True)]
    failure_table = diagnosis.failures(failed)
    failure_figure = figures.failures(heading, failed) if drawing else None
    return Section(
        heading=heading,
        facts=_facts(runs),
        warnings=(*_warnings(models), *judges.warnings(by_judge)),
        labels=labels,
        scores=score_names(runs),
        overview=(tables.overview(models), *tables.further_figures(models)),
        judges=judges.tables(by_judge),
        failures=(failure_table,) if failure_table else (),
        figures=(failure_figure,) if failure_figure else (),
        breakdowns=(*tables.breakdowns(models), *_breakdowns(labels, runs, analyses)),
        details=tuple(tables.details(models)),
        timing=tables.timing(models),
        provenance=tables.provenance(models),
        judged=tuple(by_judge),
        runs=tuple(runs),
    )


def _breakdowns(labels: Sequence[str], runs: Sequence[ScoredRun], analyses: Analyses) -> list[Table]:
    """Those that the results do not hold already."""
    of_runs = [analyses.breakdowns.get(run.folder, {}) for run in runs]
    known = {key for run in runs for key in run.results.breakdowns}
    keys = dict.fromkeys(key for breakdowns in of_runs for key in breakdowns if key not in known)
    tables_by_key = (
        diagnosis.breakdown(
            key,
            [(label, breakdowns.get(key, ())) for label, breakdowns in zip(labels, of_runs, strict=True)],
            runs[0].results.primary,
        )
        for key in keys
    )
    return [table for table in tables_by_key if table]


def _facts(runs: Sequence[ScoredRun]) -> tuple[tuple[str, str], ...]:
    results = [run.results for run in runs]
    dataset = results[0].dataset
    versions = [{"barista_bench": run_results.barista_bench, **run_results.versions} for run_results in results]
    same = all(run_results == versions[0] for run_results in versions)
    packages = ", ".join(f"{name} {version}" for name, version in versions[0].items())
    return (
        ("benchmark", dataset.benchmark),
        ("task", f"{dataset.task} (version {dataset.task_version})"),
        ("split", dataset.split if dataset.limit is None else f"{dataset.split}, cut to {dataset.limit} examples"),
        ("examples", tables.number(dataset.examples)),
        ("content hash", dataset.content_hash[:12]),
        ("protocol", results[0].protocol),
        ("wording of the prompts", results[0].prompts.wording),
        ("options", results[0].comparability.options_in_words or "the task's defaults"),
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
    if len({results.runs for _, results in models}) > 1:
        warnings.append("The models were run a different number of times.")
    return tuple(warnings)
