"""Asks a model every question that the log does not answer yet."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image
from tqdm import tqdm

from barista_bench import __version__
from barista_bench.benchmarks import get_task
from barista_bench.errors import ConfigError, DataError
from barista_bench.models import Completion, Failure, GenerationConfig, Model, Request
from barista_bench.prompt import BoxFormat
from barista_bench.prompt_sets import load_prompts
from barista_bench.running.catalog import load_model, sample_seed
from barista_bench.running.dataset import ExampleSet, open_examples
from barista_bench.running.log import SampleLog, SampleRecord, latest_records
from barista_bench.running.prefetch import prefetched
from barista_bench.task import Example, Json, ParseError, Status, Task

CONFIG_FILE = "run.json"
LOG_FILE = "samples.jsonl"
SESSIONS_FILE = "sessions.jsonl"
_DESCRIBES = ("identity", "runs", "data", "prompts", "protocol", "versions")
_VERSIONED = ("datasets", "torch", "transformers", "av", "pillow", "numpy")


@dataclass(slots=True)
class Session:
    """One start of a run: what it did, and where its seconds went.

    `prepare` is decoding and drawing (in a thread of its own), `wait` the time that generation stood still for it.
    """

    asked: int = 0
    already_done: int = 0
    failed: int = 0
    first_failure: str = ""
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("load", "prepare", "wait", "generate", "total"), 0.0)
    )


@dataclass(frozen=True, slots=True)
class _Pending:
    """An example, by its place in the set, with the runs that still want an answer. Holds no media."""

    index: int
    example: Example
    fingerprint: str
    keys: dict[int, str]


def run(
    data: str | Path,
    out: str | Path,
    *,
    task: str = "relations",
    model: str = "oracle",
    split: str = "all",
    runs: int = 3,
    limit: int | None = None,
    root: str | Path | None = None,
    temperature: float = 0.7,
    max_new_tokens: int = 4096,
    batch_size: int = 8,
    revision: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    trust_remote_code: bool = False,
    prompts: str | Path | None = None,
    progress: bool = False,
) -> Session:
    """Run a model over a task and append every answer to `<out>/samples.jsonl`. Start it again to go on.

    Args:
        data: folder made by `build`, name in the `datasets` cache, Hub dataset id, or frozen JSONL file.
        out: run folder; holds one combination of data, task, model and generation settings.
        task: config name.
        model: `oracle`, `chance`, `tiny`, a local folder, or a Hub id.
        split: `train`, `test` or `all`.
        runs: repetitions; the protocol asks for three.
        limit: only the first so many examples.
        root: folder of the videos of a frozen file or a linked set.
        temperature: 0 for greedy decoding.
        max_new_tokens: the most tokens an answer may take.
        batch_size: requests generated together; changes no answer's key.
        revision: commit of a Hub checkpoint.
        device: `auto`, `cpu`, `cuda`, ...
        dtype: `auto`, `float32`, `bfloat16`, ...
        trust_remote_code: run code that a checkpoint brings.
        prompts: prompt file, or folder of `<task>.yaml`, instead of our wording.
        progress: show progress bars.

    Raises:
        ConfigError: the folder belongs to another run, or another process is writing to it.
        DataError, ModelError: the data or the model cannot be used.
    """
    started = time.perf_counter()
    _check_settings(runs, limit, temperature, max_new_tokens, batch_size)
    chosen = get_task("barista", task, load_prompts(prompts, task) if prompts else None)
    examples = open_examples(data, chosen.benchmark, task, split=split, root=root, limit=limit)
    loaded = load_model(
        model,
        chosen,
        {example.example_id: example for example in examples.examples},
        revision=revision,
        batch_size=batch_size,
        device=device,
        dtype=dtype,
        trust_remote_code=trust_remote_code,
    )
    config = GenerationConfig(temperature=temperature, max_new_tokens=max_new_tokens)
    folder = Path(out)
    fingerprints = input_fingerprints(chosen, examples, loaded.box_format)
    described = _describe(chosen, examples, fingerprints, loaded, config)
    described |= {
        "runs": runs,
        "data": {"path": str(data), "root": str(root) if root else None, "limit": limit},
    }
    session = Session()
    with SampleLog(folder / LOG_FILE) as log:
        _claim(folder, described)
        session.seconds["load"] = time.perf_counter() - started
        try:
            execute(chosen, examples, fingerprints, loaded, config, runs, log, session, progress=progress)
        finally:
            session.seconds["total"] = time.perf_counter() - started
            with (folder / SESSIONS_FILE).open("a", encoding="utf-8") as file:
                # On a line of its own even after one that was cut off.
                file.write(("" if file.tell() == 0 else "\n") + json.dumps(asdict(session)))
    return session


def _check_settings(runs: int, limit: int | None, temperature: float, max_new_tokens: int, batch_size: int) -> None:
    least_one = {"runs": runs, "limit": limit, "max_new_tokens": max_new_tokens, "batch_size": batch_size}
    for name, value in least_one.items():
        if value is not None and value < 1:
            raise ConfigError(f"{name} is {value}. Remedy: give 1 or more")
    if not 0 <= temperature <= 100:
        raise ConfigError(f"temperature is {temperature}. Remedy: give 0 (greedy) or more")


def execute(
    task: Task,
    examples: ExampleSet,
    fingerprints: Sequence[str],
    model: Model,
    config: GenerationConfig,
    runs: int,
    log: SampleLog,
    session: Session,
    *,
    progress: bool = False,
) -> None:
    """Ask for everything that `log` does not hold yet; each answer is appended as soon as its batch is done."""
    pending = _pending(examples, fingerprints, model, config, runs, log.path)
    session.already_done = len(examples) * runs - sum(len(p.keys) for p in pending)
    bar = tqdm(total=sum(len(p.keys) for p in pending), desc="asking", unit="sample", disable=not progress)

    def prepare(waiting: _Pending) -> tuple[Image.Image, ...] | DataError:
        begun = time.perf_counter()
        try:
            return examples[waiting.index].images(task)
        except DataError as error:
            return error
        finally:
            session.seconds["prepare"] += time.perf_counter() - begun

    ready = _timed(prefetched(pending, prepare, ahead=2 * model.batch_size), session)
    while batch := tuple(islice(ready, model.batch_size)):
        good = [(waiting, images) for waiting, images in batch if not isinstance(images, DataError)]
        for waiting, error in batch:
            if isinstance(error, DataError):
                for run_index, key in waiting.keys.items():
                    _keep(
                        _record(task, model.box_format, waiting, run_index, key, Failure(str(error)), 0.0), log, session
                    )
                    bar.update()
        if good:
            _generate(task, model, config, good, log, session, bar)
    bar.close()


def _generate(
    task: Task,
    model: Model,
    config: GenerationConfig,
    batch: Sequence[tuple[_Pending, tuple[Image.Image, ...]]],
    log: SampleLog,
    session: Session,
    bar: tqdm[Any],
) -> None:
    requests = [
        Request(
            request_id=waiting.example.example_id,
            prompt=task.prompt(waiting.example, model.box_format),
            images=images,
            seeds=tuple(sample_seed(task, waiting.example.example_id, run_index) for run_index in waiting.keys),
        )
        for waiting, images in batch
    ]
    begun = time.perf_counter()
    answers = model.generate(requests, config)
    seconds = time.perf_counter() - begun
    session.seconds["generate"] += seconds
    share = seconds / sum(len(request.seeds) for request in requests)
    for (waiting, _), completions in zip(batch, _of_shape(requests, answers), strict=True):
        for (run_index, key), completion in zip(waiting.keys.items(), completions, strict=True):
            _keep(_record(task, model.box_format, waiting, run_index, key, completion, share), log, session)
            bar.update()


def _keep(record: SampleRecord, log: SampleLog, session: Session) -> None:
    log.append(record)
    if record.finished:
        session.asked += 1
    else:
        session.failed += 1
        session.first_failure = session.first_failure or str(record.error)


def _of_shape(
    requests: Sequence[Request], answers: Sequence[Sequence[Completion | Failure]]
) -> Iterator[list[Completion | Failure]]:
    """One completion a seed, whatever a model returned: a missing or malformed one is a failure of that sample."""
    for index, request in enumerate(requests):
        given = list(answers[index]) if index < len(answers) else []
        slots = [given[slot] if slot < len(given) else None for slot in range(len(request.seeds))]
        yield [
            one
            if isinstance(one, Failure) or (isinstance(one, Completion) and isinstance(one.text, str))
            else Failure(f"{request.request_id}: the model returned {type(one).__name__} for a completion")
            for one in slots
        ]


def _pending(
    examples: ExampleSet,
    fingerprints: Sequence[str],
    model: Model,
    config: GenerationConfig,
    runs: int,
    log_path: Path,
) -> list[_Pending]:
    identity, settings = asdict(model.identity), asdict(config)
    finished = {key for key, record in latest_records(log_path).items() if record.finished}
    pending = []
    for index, (example, fingerprint) in enumerate(zip(examples.examples, fingerprints, strict=True)):
        keys = {
            run_index: sample_key(example.example_id, fingerprint, identity, settings, run_index)
            for run_index in range(runs)
        }
        open_keys = {run_index: key for run_index, key in keys.items() if key not in finished}
        if open_keys:
            pending.append(_Pending(index, example, fingerprint, open_keys))
    return pending


def input_fingerprints(task: Task, examples: ExampleSet, boxes: BoxFormat) -> list[str]:
    """What each example asks: task version, prompt text and media content. Decodes nothing."""
    fingerprints = []
    for index, example in enumerate(examples.examples):
        try:
            media = examples[index].media_digest
        except DataError as error:
            media = f"unreadable: {error}"  # the example fails when it is asked, and costs no other
        prompt = task.prompt(example, boxes).as_text()
        fingerprints.append(digest(task.benchmark, task.name, task.version, prompt, media))
    return fingerprints


def sample_key(example_id: str, fingerprint: str, model: object, config: object, run_index: int) -> str:
    """Identity of one sample. Batch size, device and process count are not part of it.

    The example's id is, since two examples may ask the same of the same pixels, and each is sampled with its own seed.
    """
    return digest(example_id, fingerprint, model, config, run_index)


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def sample_status(
    task: Task, inputs: dict[str, Json], completion: Completion | Failure, boxes: BoxFormat
) -> tuple[Status, str | None]:
    """What became of a sample, and why where it is not ok. A truncated answer stays truncated even if it parses."""
    if isinstance(completion, Failure):
        return Status.INFRA_ERROR, completion.error
    if completion.finish_reason == "refusal":
        return Status.REFUSED, "the model refused"
    if completion.finish_reason == "length":
        return Status.TRUNCATED, "the answer reached max_new_tokens"
    parsed = task.parse(completion.text, inputs, boxes)
    return (Status.PARSE_ERROR, parsed.reason) if isinstance(parsed, ParseError) else (Status.OK, None)


def _record(
    task: Task,
    boxes: BoxFormat,
    waiting: _Pending,
    run_index: int,
    key: str,
    completion: Completion | Failure,
    seconds: float,
) -> SampleRecord:
    status, error = sample_status(task, waiting.example.inputs, completion, boxes)
    answered = completion if isinstance(completion, Completion) else None
    return SampleRecord(
        key=key,
        fingerprint=waiting.fingerprint,
        example_id=waiting.example.example_id,
        run=run_index,
        status=status,
        text=answered.text if answered else None,
        reasoning=answered.reasoning if answered else None,
        finish_reason=answered.finish_reason if answered else None,
        error=error,
        input_tokens=answered.input_tokens if answered else None,
        output_tokens=answered.output_tokens if answered else None,
        seconds=seconds,
    )


def _timed(ready: Iterator[tuple[_Pending, Any]], session: Session) -> Iterator[tuple[_Pending, Any]]:
    """Counts the time in which the consumer stands still for the next item."""
    while True:
        begun = time.perf_counter()
        try:
            item = next(ready)
        except StopIteration:
            return
        finally:
            session.seconds["wait"] += time.perf_counter() - begun
        yield item


def _describe(
    task: Task, examples: ExampleSet, fingerprints: Sequence[str], model: Model, config: GenerationConfig
) -> dict[str, Any]:
    """What a run folder is about. `identity` must stay the same when the run is started again."""
    return {
        "barista_bench": __version__,
        "protocol": "release",
        "prompts": asdict(task.prompts),
        "identity": {
            "benchmark": task.benchmark,
            "task": task.name,
            "task_version": task.version,
            "split": examples.split,
            "content_hash": examples.content_hash,
            "inputs_hash": digest(sorted(fingerprints)),
            "model": {**asdict(model.identity), "box_format": asdict(model.box_format)},
            "generation": asdict(config),
        },
        "versions": _versions(),
    }


def read_run(folder: str | Path) -> dict[str, Any]:
    """The description of a run folder.

    Raises:
        DataError: it is none.
    """
    path = Path(folder) / CONFIG_FILE
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: no run here ({error}). Remedy: run `barista-bench run`") from error
    missing = [key for key in _DESCRIBES if not isinstance(described, dict) or key not in described]
    if missing:
        raise DataError(f"{path}: has no {missing[0]!r}. Remedy: run again with another --out")
    return described


def _claim(folder: Path, described: dict[str, Any]) -> None:
    """Write the run's description, or check that the folder belongs to this run. `runs` may change between starts."""
    path = folder / CONFIG_FILE
    if not path.exists() and (folder / LOG_FILE).exists() and (folder / LOG_FILE).stat().st_size:
        raise ConfigError(f"{folder}: holds samples, but no {CONFIG_FILE} that says of what. Remedy: use another --out")
    if path.exists():
        limits = [read_run(folder)["data"]["limit"], described["data"]["limit"]]
        if limits[0] != limits[1]:
            raise ConfigError(
                f"{folder}: holds a run with limit {limits[0]}, not {limits[1]}. Remedy: use another --out"
            )
        before = read_run(folder)["identity"]
        for name, value in json.loads(json.dumps(described["identity"])).items():
            if before.get(name) != value:
                raise ConfigError(
                    f"{folder}: holds a run with {name} {before.get(name)!r}, not {value!r}. Remedy: use another --out"
                )
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(described, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    partial.replace(path)


def _versions() -> dict[str, str]:
    found = {}
    for name in _VERSIONED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
