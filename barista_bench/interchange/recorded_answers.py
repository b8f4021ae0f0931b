"""Import answers that another harness recorded, and export answers for a benchmark's leaderboard.

`Benchmark.formats` convert recorded answers to our run folders. `Benchmark.submission` makes a leaderboard's file from
a run folder.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from barista_bench.benchmarks import BENCHMARKS, RecordedAnswer, RecordedAnswers, get_benchmark, get_task
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import Example
from barista_bench.core.model_names import AIDED
from barista_bench.core.option_order import ROTATION_OF
from barista_bench.core.prompt import PromptTexts, hash_name
from barista_bench.core.task import Task
from barista_bench.data.frozen import content_hash, refuse_unusable, write_frozen
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.owned_folders import check_output_path, check_target, replacing_folder
from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity
from barista_bench.runs.ask.answers import answer_status
from barista_bench.runs.ask.shard import Shard
from barista_bench.runs.data_location import data_location
from barista_bench.runs.described import MAX_REPETITIONS
from barista_bench.runs.log.inputs import digest, sample_keys
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord
from barista_bench.runs.run_folder import OWN_EXAMPLES, RunDescription, run_description, write_run
from barista_bench.runs.score.samples import read_samples

log = logging.getLogger(__name__)

_GENERATION = asdict(GenerationConfig())
NAMED = 20
"""Maximum number of problems that are listed one by one."""


def known_formats() -> dict[str, str]:
    """Map each format's name to the benchmark that reads it."""
    return {name: benchmark.name for benchmark in BENCHMARKS.values() for name in benchmark.formats}


def import_recorded(
    predictions: str | Path,
    out: str | Path,
    form: str,
    *,
    model: str | None = None,
    options: Mapping[str, object] | None = None,
) -> list[Path]:
    """Make a run folder for each task with answers in `predictions`.

    Args:
        predictions: file or folder in the format `form`, which is one of `known_formats`.
        out: parent of the run folders. Each is named after its task and must not exist yet.
        model: the model's name, if the files do not contain it.
        options: options of the tasks. Each task uses the options that it has.

    Raises:
        ConfigError: the format is unknown, or a folder already exists.
        DataError: the predictions cannot be read. The message names the file and the place.
    """
    formats = known_formats()
    if form not in formats:
        raise ConfigError(f"no format {form!r}. Fix: say --format with one of {', '.join(formats)}")
    recorded = BENCHMARKS[formats[form]].formats[form](Path(predictions))
    if not recorded:
        raise DataError(f"{predictions}: no recorded answers of the format {form} here. Fix: name their folder")
    problems = [problem for answers in recorded for problem in answers.problems]
    problems.sort(key=lambda problem: problem.severity != "error")
    for problem in problems[:NAMED]:
        log.warning("%s: %s", predictions, problem)
    if len(problems) > NAMED:
        errors = sum(problem.severity == "error" for problem in problems)
        log.warning("%s: in all %d errors, %d warnings", predictions, errors, len(problems) - errors)
    unknown = set(options or {}) - {name for answers in recorded for name in answers.task.options}
    if unknown:
        raise ConfigError(f"no task here has an option {sorted(unknown)[0]!r}. Fix: leave it out")
    # Convert everything before the first folder is written, so that an error leaves no folders.
    planned = []
    for answers in recorded:
        task_options = {name: value for name, value in (options or {}).items() if name in answers.task.options}
        text = f"Another harness asked this in its own words; read from the format {form}."
        sha256 = digest(text)
        prompts = PromptTexts(0, "", text, sha256, wording=hash_name("recorded", sha256))
        task = get_task(answers.task.benchmark, answers.task.name, prompts, options=task_options)
        planned.append((task, answers, Path(out).absolute() / task.name))
    for folder, count in Counter(folder for _, _, folder in planned).items():
        if count > 1:
            raise DataError(f"{count} sets of answers are to {folder.name}. Fix: name the files of one model")
        check_target(folder)
    for _, answers, _ in planned:
        _check_answers(answers, str(predictions))
    return [_write_run(task, answers, folder, form, model or answers.model) for task, answers, folder in planned]


def _write_run(task: Task, recorded: RecordedAnswers, out: Path, form: str, model: str) -> Path:
    by_id = {example.example_id: example for example in recorded.examples}
    identity = ModelIdentity(model, settings={"harness": form})
    described = run_description(
        out,
        task,
        content_hash=content_hash(recorded.examples),
        prompts_hash=None,
        model=identity,
        box_format=DEFAULT_BOX_FORMAT,
        generation=_GENERATION,
        repetitions=1 + max((answer.repetition for answer in recorded.answers), default=0),
        data=data_location(out, None, None, None),
    )
    key_of = sample_keys(asdict(identity), _GENERATION)
    records = [_sample_record(task, by_id[answer.example_id], answer, key_of) for answer in recorded.answers]
    with replacing_folder(out) as partial:
        write_imported(partial, described, recorded.examples, records)
    return out


def write_imported(
    folder: Path, described: RunDescription, examples: Sequence[Example], records: Iterable[SampleRecord]
) -> None:
    """Write a run folder with answers from another program. The folder contains its examples."""
    write_frozen(examples, folder / OWN_EXAMPLES)
    with SampleLog(Shard().file(folder, "samples")) as samples:
        for record in records:
            samples.append(record)
    write_run(folder, described)


def _check_answers(recorded: RecordedAnswers, where: str) -> None:
    refuse_unusable(recorded.examples, where)
    example_ids = {example.example_id for example in recorded.examples}
    counts = Counter((answer.example_id, answer.repetition) for answer in recorded.answers)
    for (example_id, repetition), count in counts.items():
        if example_id not in example_ids:
            raise DataError(f"an answer is to {example_id!r}, which is not an example. Fix: correct the reader")
        if count > 1:
            raise DataError(f"{example_id}: run {repetition} answers it {count} times. Fix: keep one")
        if not 0 <= repetition < MAX_REPETITIONS:
            raise DataError(f"{example_id}: run is {repetition}. Fix: count runs from 0 to {MAX_REPETITIONS - 1}")


def _sample_record(
    task: Task, example: Example, answer: RecordedAnswer, key_of: Callable[[str, str, int], str]
) -> SampleRecord:
    fingerprint = digest("recorded", task.benchmark, task.name, task.version, example.example_id)
    failure = Failure(answer.error or "the record holds no answer")
    status, error = answer_status(failure if answer.text is None else Completion(answer.text))
    return SampleRecord(
        key=key_of(example.example_id, fingerprint, answer.repetition),
        fingerprint=fingerprint,
        example_id=example.example_id,
        repetition=answer.repetition,
        status=status,
        text=answer.text,
        error=error,
    )


def write_submission_file(
    folder: str | Path,
    out: str | Path,
    repetition: int = 0,
    *,
    data: str | Path | None = None,
    allow_incomplete: bool = False,
) -> tuple[Path, int]:
    """Write the answers of one repetition in the format of their benchmark. References may be hidden.

    Args:
        repetition: the repetition, from 0.
        allow_incomplete: whether questions may be missing: not answered yet, lost to infrastructure errors, or excluded
            by `limit`.

    Returns:
        The path written, and the number of answers.

    Raises:
        ConfigError: the benchmark has no such file, or `out` lies in a folder that one of our commands made.
        DataError: the folder is not a run, or the run is not finished.
    """
    check_output_path(Path(out))
    own_run = read_samples(folder, data=data)
    benchmark = get_benchmark(own_run.task.benchmark)
    if benchmark.submission is None:
        raise ConfigError(
            f"{benchmark.name} takes no submission file. Fix: use `barista-bench publish submission` for the Hub"
        )
    samples = [s for s in own_run.samples if s.record.repetition == repetition and s.record.is_finished]
    if not samples:
        raise DataError(f"{folder}: run {repetition} has no finished sample. Fix: finish it, or name another run")
    is_rotated = any(ROTATION_OF in example.metadata for example in own_run.examples.examples)
    if is_rotated or own_run.description.identity.model.name.startswith(f"{AIDED}:"):
        raise DataError(
            f"{folder}: answers changed questions: rotated choices, an aid or a view. Fix: start a new run without them"
        )
    part = own_run.description.data.part
    if part is not None and not allow_incomplete:
        raise DataError(
            f"{folder}: was run on {len(part.ids)} of {part.of} questions ({part.words}). "
            "Fix: start a new run of all, or use --allow-incomplete"
        )
    limit = own_run.description.data.limit
    if limit is not None and not allow_incomplete:
        raise DataError(
            f"{folder}: was run on the first {limit} questions only. "
            "Fix: start a new run without limit, or use --allow-incomplete"
        )
    n_missing = len(own_run.examples) - len(samples)
    if n_missing and not allow_incomplete:
        raise DataError(
            f"{folder}: run {repetition} lacks {n_missing} of {len(own_run.examples)} answers. "
            "Fix: start it again, or say --allow-incomplete"
        )
    return benchmark.submission([sample.as_scored for sample in samples], Path(out)), len(samples)
