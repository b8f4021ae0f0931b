"""Build a report as data from scored runs. `html` and `markdown` print the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.errors import ConfigError
from barista_bench.reporting import all_tasks, diagnosis, judges, paper, tables
from barista_bench.reporting.aided import DiagnosisFolders
from barista_bench.reporting.analyses import Analyses, best_first
from barista_bench.reporting.breakdowns import breakdown_table, key_groups
from barista_bench.reporting.facts import difficulty_tables, fact_tables
from barista_bench.reporting.judges import LabelledJudge
from barista_bench.reporting.leaderboard import Leaderboard, TaskStanding, leaderboard
from barista_bench.reporting.paper import JudgedRuns, PaperPart
from barista_bench.reporting.provenance import ReportProvenance, report_provenance
from barista_bench.reporting.questions import Answers, answer_questions, question_table
from barista_bench.reporting.samples import Sample, score_names, section_samples
from barista_bench.reporting.tables import STOPPED
from barista_bench.runs.score.comparability import Comparability, distinguishing_parts
from barista_bench.runs.score.labels import differing_media
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import PropagationGraph, comparable_groups
from barista_bench.stats.repetitions import repeated_scores
from barista_bench.tables import Table, number


@dataclass(frozen=True, slots=True)
class Section:
    """Comparable runs of a task (`Comparability`), in the order of the leaderboard.

    Args:
        standing: the runs by model name. These names are the columns of `samples`.
        address: the task's name in addresses of the page.
        answers: answers to a reader's questions about the best model.
        about: the question of the task in one line.
        facts: evaluation settings as names and values.
        warnings: facts that a reader must know before the scores.
        scores: names of the scores of one sample.
        breakdowns: breakdowns, sorted by decreasing separation of models.
        others: rarely needed tables: coverage, judges by category, details, costs, timing, settings.
    """

    standing: TaskStanding
    address: str
    answers: Answers
    about: str
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    scores: tuple[str, ...]
    metrics: tuple[Table, ...]
    breakdowns: tuple[Table, ...]
    failures: tuple[Table, ...]
    others: tuple[Table, ...]
    judged: tuple[LabelledJudge, ...]

    @property
    def heading(self) -> str:
        return self.standing.heading

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.standing.runs)

    @property
    def runs(self) -> tuple[ScoredRun, ...]:
        return tuple(self.standing.runs.values())

    @property
    def task_key(self) -> tuple[str, str]:
        return self.runs[0].task.benchmark, self.runs[0].task.name

    @property
    def benchmark(self) -> str:
        return self.task_key[0]

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*self.metrics, *self.failures, *self.breakdowns, *self.others)


@dataclass(frozen=True, slots=True)
class Report:
    """All parts of a report except the samples.

    `provenance` is the origin of all scores. `across` holds tables over all tasks and models, and `graphs` the
    propagation of errors. `papers` holds the counterparts of the papers' tables, one part per benchmark. `left_out`
    lists missing analyses with the reasons.
    """

    title: str
    provenance: ReportProvenance
    boards: tuple[Leaderboard, ...]
    sections: tuple[Section, ...]
    across: tuple[Table, ...]
    graphs: tuple[PropagationGraph, ...]
    papers: tuple[PaperPart, ...]
    left_out: tuple[str, ...]

    @property
    def tables(self) -> tuple[tuple[str, Table], ...]:
        """Return every table with the heading of its section. Tables over all tasks have an empty heading."""
        of_sections = [(section.heading, table) for section in self.sections for table in section.tables]
        published = [(f"paper {part.heading}", table) for part in self.papers for table in part.tables]
        boards = [("", board.table) for board in self.boards]
        boards += [("", self.questions(board)) for board in self.boards]
        sources = [("", table) for table in self.provenance.tables]
        return (*boards, *sources, *(("", table) for table in self.across), *published, *of_sections)

    def questions(self, board: Leaderboard) -> Table:
        """Return the answers to a reader's questions about a benchmark, with a row per task."""
        sections = (section for section in self.sections if section.benchmark == board.benchmark)
        return question_table(board.title, [(section.standing.name, section.answers) for section in sections])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return warnings that a reader must see first. If there are several sections, warnings name their section."""
        has_several = len(self.sections) > 1
        stopped = [
            f"{len(table.rows)} of the runs or judges stopped early and have no score: see {STOPPED} across tasks."
            for table in self.across
            if table.title == STOPPED
        ]
        return (
            *stopped,
            *(
                f"{section.heading}: {warning}" if has_several else warning
                for section in self.sections
                for warning in section.warnings
            ),
        )


def build_report(
    runs: Sequence[ScoredRun],
    *,
    title: str | None = None,
    judged_runs: JudgedRuns | None = None,
    analyses: Analyses,
    stopped: Table | None = None,
) -> Report:
    """Build the report on `runs`. Comparable runs share a section. `stopped` is the table of runs without a score.

    Raises:
        ConfigError: there are no runs.
    """
    if not runs:
        raise ConfigError("no run to report. Fix: name at least one run folder")
    groups_by_record = comparable_groups(runs)
    benchmarks = list(dict.fromkeys(record.benchmark for record in groups_by_record))
    groups = dict(sorted(groups_by_record.items(), key=lambda item: benchmarks.index(item[0].benchmark)))
    # The heading names the benchmark, the task, and the difference to other sections of the task.
    headings = [
        f"{record.benchmark} / {record.task}{f' ({distinction})' if distinction else ''}"
        for record, distinction in zip(groups, distinguishing_parts(list(groups)), strict=True)
    ]
    standings = [
        TaskStanding(heading, {analyses.labels[run.folder]: run for run in best_first(group)})
        for heading, group in zip(headings, groups.values(), strict=True)
    ]
    addresses = distinct_names(standing.heading for standing in standings)
    sections = tuple(
        _section(standing, address, judged_runs or {}, analyses)
        for standing, address in zip(standings, addresses, strict=True)
    )
    papers = tuple(_papers(sections, judged_runs or {}))
    tasks = [(section.heading, section.standing.runs) for section in sections]
    summaries = (*all_tasks.group_tables(tasks), all_tasks.tokens_table(tasks)) if len(sections) > 1 else ()
    curves = difficulty_tables([runs for _, runs in tasks]) if len(sections) > 1 else ()
    return Report(
        title=title or _title(sections),
        provenance=report_provenance(standings),
        boards=tuple(_boards(sections, analyses)),
        sections=sections,
        across=(*_without_none(stopped, *summaries), *_diagnosis(analyses), *curves),
        graphs=tuple(analyses.graphs),
        papers=tuple(part for part in papers if part.tables),
        left_out=(*analyses.left_out, *(part.left_out for part in papers if part.left_out)),
    )


def report_samples(report: Report, max_samples: int, max_text: int, diagnosed: DiagnosisFolders) -> tuple[Sample, ...]:
    """Return evenly spread examples, at most `max_samples` per section. Answers are cut at `max_text` characters.

    Raises:
        ConfigError: `max_samples` is negative.
    """
    if max_samples < 0:
        raise ConfigError(f"samples is {max_samples}. Fix: give --samples 0 or more")
    samples: list[Sample] = []
    for place, section in enumerate(report.sections):
        verdicts = [judges.judge_verdicts(section.judged, label, max_text) for label in section.labels]
        samples += section_samples(place, section.runs, max_samples, max_text, verdicts, diagnosed)
    return tuple(samples)


def _title(sections: Sequence[Section]) -> str:
    headings = [section.heading for section in sections]
    if len(headings) < 3:
        return f"Evaluation of {', '.join(headings)}"
    benchmarks = dict.fromkeys(section.benchmark for section in sections)
    tasks = len({section.task_key for section in sections})
    models = len({label for section in sections for label in section.labels})
    counts = [f"{count} {noun}{'s' if count > 1 else ''}" for count, noun in ((tasks, "task"), (models, "model"))]
    return f"Evaluation of {', '.join(benchmarks)}: {', '.join(counts)}"


def _boards(sections: Sequence[Section], analyses: Analyses) -> Iterator[Leaderboard]:
    for benchmark in dict.fromkeys(section.benchmark for section in sections):
        standings = [section.standing for section in sections if section.benchmark == benchmark]
        title = BENCHMARKS[benchmark].title if benchmark in BENCHMARKS else benchmark
        yield leaderboard(benchmark, title, standings, analyses)


def _diagnosis(analyses: Analyses) -> Iterator[Table]:
    for benchmark, ranks in analyses.agreements:
        name = benchmark if len(analyses.agreements) > 1 else ""
        yield diagnosis.agreement_table(ranks, name if benchmark else "all benchmarks")
    if analyses.gaps:
        yield diagnosis.baselines_table(analyses.gaps)
    if analyses.consistency:
        yield diagnosis.consistency_table(analyses.consistency)
    yield from map(diagnosis.propagation_table, analyses.graphs)
    yield from fact_tables(analyses.facts)


def _papers(sections: Sequence[Section], judged_runs: JudgedRuns) -> Iterator[PaperPart]:
    """Yield a part per benchmark, and further parts for runs that are not comparable with earlier runs of their task.

    Different sets of examples, or runs with different options, share a part if the benchmark's tables compare these.
    """
    parts: dict[tuple[str, int], list[Section]] = {}
    records: dict[tuple[str, str], list[Comparability]] = {}
    for section in sections:
        record = section.runs[0].results.comparability
        if record.benchmark in BENCHMARKS and BENCHMARKS[record.benchmark].compares_sets:
            record = record.model_copy(update={"split": "", "limit": None, "content_hash": "", "options": {}})
        records_of_task = records.setdefault((record.benchmark, record.task), [])
        records_of_task += [] if record in records_of_task else [record]
        parts.setdefault((record.benchmark, records_of_task.index(record)), []).append(section)
    for (name, _), members in parts.items():
        if (benchmark := BENCHMARKS.get(name)) is None:
            continue
        has_several = (name, 1) in parts
        distinction = f" ({', '.join(section.heading for section in members)})" if has_several else ""
        companions = [section for section in sections if section.task_key in benchmark.extra_table_tasks]
        runs = [(label, run) for section in (*members, *companions) for label, run in section.standing.runs.items()]
        yield paper.paper_part(benchmark, f"{benchmark.title}{distinction}", runs, judged_runs)


def _section(standing: TaskStanding, address: str, judged_runs: JudgedRuns, analyses: Analyses) -> Section:
    labels, runs = tuple(standing.runs), tuple(standing.runs.values())
    folders = {label: run.folder for label, run in standing.runs.items()}
    by_judge = judges.labelled_judges([(label, judged_runs.get(folder, ())) for label, folder in folders.items()])
    models = [(label, run.results) for label, run in standing.runs.items()]
    groups = key_groups(labels, runs, [analyses.breakdowns.get(run.folder, {}) for run in runs])
    comparisons = [pair for run in runs if (pair := analyses.comparisons.get(run.folder))]
    judge_tables = judges.judge_tables(by_judge)
    failures = diagnosis.failures_table(
        [(label, analyses.failures.get(folder, ())) for label, folder in folders.items()]
    )
    primary = runs[0].results.primary
    thoughts = [(label, analyses.thoughts.get(folder, ())) for label, folder in folders.items()]
    repeated = [
        (label, repeated_scores(run, judges.sample_scores(by_judge, label))) for label, run in standing.runs.items()
    ]
    return Section(
        standing=standing,
        address=address,
        answers=answer_questions(standing, analyses, groups[0] if groups else None),
        about=runs[0].task.row_note,
        facts=_facts(runs),
        warnings=(*_warnings(models), *_media_warnings(standing.runs), *judges.judge_warnings(by_judge)),
        scores=score_names(runs),
        metrics=_without_none(
            tables.metrics_table(models),
            diagnosis.comparisons_table(comparisons) if comparisons else None,
            *(table for table in judge_tables if table.title == judges.OVERVIEW),
            diagnosis.thoughts_table(thoughts, primary),
            diagnosis.repetitions_table(repeated, runs[0].task.sample_score),
        ),
        breakdowns=tuple(breakdown_table(key, labels, primary) for key in groups),
        failures=_without_none(failures),
        others=_without_none(
            tables.coverage_table(models),
            tables.positions_table(models),
            *(table for table in judge_tables if table.title != judges.OVERVIEW),
            *tables.detail_tables(models),
            tables.costs_table(models),
            tables.timing_table(models),
            tables.provenance_table(models),
        ),
        judged=tuple(by_judge),
    )


def _without_none(*tables: Table | None) -> tuple[Table, ...]:
    return tuple(table for table in tables if table is not None)


def _facts(runs: Sequence[ScoredRun]) -> tuple[tuple[str, str], ...]:
    results = [run.results for run in runs]
    dataset = results[0].dataset
    versions = [{"barista_bench": run_results.barista_bench, **run_results.versions} for run_results in results]
    are_same = all(run_versions == versions[0] for run_versions in versions)
    packages = ", ".join(f"{name} {version}" for name, version in versions[0].items())
    return (
        ("benchmark", dataset.benchmark),
        ("task", f"{dataset.task} (version {dataset.task_version})"),
        ("split", dataset.split if dataset.limit is None else f"{dataset.split}, cut to {dataset.limit} examples"),
        ("examples", number(dataset.examples)),
        ("content hash", dataset.content_hash[:12]),
        ("protocol", results[0].protocol),
        ("wording of the prompts", results[0].prompts.wording),
        ("options", results[0].comparability.options_in_words or "the task's defaults"),
        ("packages", packages if are_same else "differ between the models, see settings and versions"),
    )


def _warnings(models: Sequence[tables.LabelledResults]) -> tuple[str, ...]:
    warnings = [
        f"{label} is incomplete: {results.coverage.missing:,} of {results.coverage.expected:,} samples are not scored. "
        "Its scores cover only the others and cannot be compared."
        for label, results in models
        if not results.coverage.is_complete
    ]
    warnings += [
        f"{label} was asked a part of the set: {part.asked} of {part.of} examples ({part.words}). "
        "It has no rank beside whole sets."
        for label, results in models
        if (part := results.dataset.part)
    ]
    warnings += [f"{label}: {note}." for label, results in models for note in results.notes_in_words]
    if len({results.repetitions for _, results in models}) > 1:
        warnings.append("The models were run a different number of times.")
    return tuple(warnings)


def _media_warnings(runs: Mapping[str, ScoredRun]) -> list[str]:
    return [f"{line[0].upper()}{line[1:]}." for line in differing_media(runs)]


def distinct_names(texts: Iterable[str]) -> list[str]:
    """Return the `file_stem` of each text. Repeated names are numbered."""
    names: dict[str, None] = {}
    for name in map(file_stem, texts):
        numbered = (f"{name}_{number}" for number in count(2))
        names[next(variant for variant in chain([name], numbered) if variant not in names)] = None
    return list(names)


def file_stem(text: str) -> str:
    """Convert a text to a file name without an ending, made of lower-case letters, digits and underscores.

    >>> file_stem("Pets / grounding: Scores per class")
    'pets_grounding_scores_per_class'
    """
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:80] or "table"
