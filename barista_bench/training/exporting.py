"""Exports the training split of a built dataset, in formats that need no code of this package.

| format | OUT contains | read by |
|---|---|---|
| `chat` | Parquet: `images`, `prompt`, `completion` | `datasets`, TRL's `SFTTrainer` |
| `preference` | Parquet: `images`, `prompt`, `chosen`, `rejected` | `datasets`, TRL's `DPOTrainer` |
| `prompts` | Parquet: `images`, `prompt`, `reference` | `datasets`, TRL's `GRPOTrainer` with `rewards.task_reward` |
| `coco` | instances of each frame, `annotations.json` beside `images/` | pycocotools |
| `davis` | a palette PNG per frame in `Annotations/`, beside `JPEGImages/` | readers of DAVIS and YouTube-VOS |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec
from PIL import Image

from barista_bench.aids.levels import LEVELS
from barista_bench.aids.task_aids import Aid, AidedTask
from barista_bench.aids.texts import AidBook, Parts
from barista_bench.benchmarks import task_class, task_names
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import content_seed
from barista_bench.core.guarding import attempt
from barista_bench.core.task import Task
from barista_bench.core.training_videos import TrainingVideos, join_without_leaks
from barista_bench.data.dataset import ExampleSet, open_examples
from barista_bench.data.loaded_example import LinkedMedia, LoadedExample
from barista_bench.data.manifest import DEFAULT_BENCHMARK, read_manifest, rows_of_configs
from barista_bench.data.rows import local_splits, video_hashes
from barista_bench.diagnosis.conditions import plan
from barista_bench.diagnosis.running import usual_levels
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.owned_folders import TRAINING_SET, refuse_inside, replacing_folder
from barista_bench.runs.ask.aiding import AidInserter
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.scoring import ScoredRun, read_scored
from barista_bench.scene_graph.release import TERMS_FILE, Terms, write_terms
from barista_bench.training.reward_rows import REFERENCE, refuse_untrainable, why_untrainable, write_reference
from barista_bench.training.specialist_sets import write_specialist_set
from barista_bench.training.task_rewards import floors_of

_Row = dict[str, Any]
ExportFormat = Literal["chat", "preference", "prompts", "coco", "davis"]
_ASKING: Sequence[ExportFormat] = ("chat", "prompts")
"""Formats that hold the tasks' own questions, with boxes in a given format."""
TRAIN = "train"
PARQUET = "data/train-00000-of-00001.parquet"
"""File of the split, with the name that `datasets` expects."""
_BATCH = 16
"""Number of rows that are written together. A row with its pictures takes megabytes."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of `export_training_set`. `rows` counts conversations, or objects on frames for `coco` and `davis`.

    `faults` are errors that the run's task raised. Answers with such an error are in no row.
    """

    folder: Path
    rows: int
    videos: int
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def export_training_set(
    data: str | Path,
    out: str | Path,
    form: ExportFormat,
    *,
    split: str = TRAIN,
    tasks: Sequence[str] = (),
    box_format: BoxFormat | None = None,
    run: str | Path | None = None,
    held_out: Sequence[str | Path] = (),
    root: str | Path | None = None,
    aids: Literal["true", "inert"] | None = None,
) -> ExportResult:
    """Write the training videos of a dataset as a training set. It replaces an older set in `out`.

    Args:
        data: a folder made by `build`.
        split: the split to export. It must be `train`, since every other split is held out.
        tasks: configs of `data`, for `chat` and `prompts`. The default is all tasks with text answers.
        box_format: how the trained model writes boxes, for `chat` and `prompts`. `preference` uses its run's format.
        run: run folder for `preference`. Its wrong answers become the rejected answers.
        held_out: further built datasets. Videos of their splits other than `train` must not be in the training set.
        root: folder of the release, for `coco` and `davis`. For other formats, the folder of a linked set's videos, if
            they have moved.
        aids: for `chat`, puts the aids of a diagnosis, or their inert controls, before each question. The content of a
            question determines which of its levels are given. Questions without an aid are left out.

    Raises:
        ConfigError: a setting is missing, or does not fit the format.
        DataError: a training video is also a test video in `data` or `held_out`, or a file cannot be read.
    """
    data = Path(data)
    if split != TRAIN:
        raise ConfigError(f"split {split!r} is held out for tests. Fix: export --split {TRAIN}")
    for name, value, forms in (("box-format", box_format, _ASKING), ("run", run, ("preference",))):
        if (form in forms) != (value is not None):
            raise ConfigError(
                f"--{name} goes with --format {' or '.join(forms)}, which needs it. Fix: say both, or neither"
            )
    if tasks and form not in _ASKING:
        raise ConfigError(f"--task goes with --format {' or '.join(_ASKING)}. Fix: leave it out")
    if aids and form != "chat":
        raise ConfigError("--aids goes with --format chat. Fix: leave it out")
    refuse_inside(Path(out), data, root, run, *held_out)
    configs, notes, faults = tuple(tasks), tuple[str, ...](), tuple[str, ...]()
    if run is not None:
        identity = read_run(run).identity
        configs, box_format = (identity.task,), identity.model.box_format.format
    elif form in _ASKING:
        names, splits = task_names(str(read_manifest(data).get("benchmark", DEFAULT_BENCHMARK))), local_splits(data)
        configs = configs or tuple(n for n in names if n in splits and not why_untrainable(_task_of(data, n)))
        if aids and not tasks:
            configs = tuple(n for n in configs if isinstance(_task_of(data, n), AidedTask))
    training = _training_videos(data, configs, held_out, box_format)
    with replacing_folder(Path(out), TRAINING_SET) as folder:
        if run is not None:
            scored = read_scored(run, data=data, root=root)
            rows = _write_conversations(_preferences(data, scored, root), folder, ("chosen", "rejected"))
            faults = tuple(scored.task.faults)
        elif box_format is not None:
            columns = ("completion",) if form == "chat" else ()
            rows = _write_conversations(_questions(data, configs, box_format, root, form, aids), folder, columns)
        else:
            rows, notes = write_specialist_set(data, video_hashes(data)[TRAIN], folder, form, root)
        training.write(folder)
        terms = read_manifest(data).get("terms")
        if isinstance(terms, dict):
            data_terms = msgspec.convert(terms, Terms)
            write_terms(folder, data_terms)
            notes = (*notes, f"the data of {data_terms.title} are under {data_terms.licence}: {TERMS_FILE} goes along")
    return ExportResult(Path(out), rows, len(training.videos), notes, faults)


def _training_videos(
    data: Path, tasks: Sequence[str], held_out: Sequence[str | Path], box_format: BoxFormat | None
) -> TrainingVideos:
    """Return the record of the set. Raises DataError if the set has a test video, or if a built split is missing."""
    trained = video_hashes(data, tasks).get(TRAIN)
    if not trained:
        raise ConfigError(f"{data}: no split {TRAIN!r}. Fix: build it with one, e.g. by --split-file")
    sets = {}
    for tested in dict.fromkeys([data, *map(Path, held_out)]):
        built_splits = local_splits(tested)
        for config, rows in rows_of_configs(tested).items():
            # The videos of a split that was built but is missing are unknown.
            if lacking := {split for split, count in rows.items() if count} - built_splits.get(config, set()):
                raise DataError(
                    f"{tested}: the split {min(lacking)!r} of {config} is not here. Fix: fetch all of its files"
                )
        test_videos = [set(videos.values()) for name, videos in video_hashes(tested).items() if name != TRAIN]
        sets[str(tested)] = TrainingVideos(videos=frozenset(), held_out=frozenset().union(*test_videos))
    box_text = str(box_format) if box_format else None
    sets[str(data)] = sets[str(data)].model_copy(update={"videos": frozenset(trained.values()), "box_format": box_text})
    return join_without_leaks(sets)


def _task_of(data: Path, name: str) -> Task:
    manifest = read_manifest(data)
    kind = task_class(str(manifest.get("benchmark", DEFAULT_BENCHMARK)), name)
    return kind(options={"protocol": manifest.get("protocol", "release")} if "protocol" in kind.options else {})


def _questions(
    data: Path,
    tasks: Sequence[str],
    box_format: BoxFormat,
    root: str | Path | None,
    form: ExportFormat,
    aids: Literal["true", "inert"] | None,
) -> Iterator[_Row]:
    """Yield each question with its reference, as the oracle writes it or, for `prompts`, as a reward reads it."""
    for name in tasks:
        task = _task_of(data, name)
        refuse_untrainable(task)
        examples = open_examples(data, task.benchmark, name, split=TRAIN, root=root)
        parts, teller = _aids(task, examples, data, aids, box_format) if aids else ({}, None)
        floors = floors_of(task, examples.examples) if form == "prompts" else []
        for index, example in enumerate(examples.examples):
            if not task.has_answer(example) or (teller and example.example_id not in parts):
                continue
            if form == "chat":
                answer = task.reference_answer(example, box_format)
                yield _row(examples[index], task, box_format, teller, completion=answer)
            else:
                row = _row(examples[index], task, box_format)
                yield {**row, REFERENCE: write_reference(example, task, box_format, floors[index])}


def _aids(
    task: Task, examples: ExampleSet, data: Path, variant: Literal["true", "inert"], box_format: BoxFormat
) -> tuple[dict[str, Parts], AidInserter]:
    """Return the aids of each question that has some: those of one condition of its diagnosis, chosen by content."""
    levels = usual_levels(task, examples, str(data))
    book = AidBook.open(task, examples.examples, str(data))
    parts = {}
    for planned in plan(examples.examples, book, levels):
        name = planned.example.example_id
        size = 1 + content_seed("aids", name) % len(planned.order)
        given = [Aid(level, variant) for level in LEVELS if level in planned.order[:size]]
        if told := book.parts(planned.example, given, box_format):
            parts[name] = told
    return parts, AidInserter(examples, book, parts)


def _preferences(data: Path, run: ScoredRun, root: str | Path | None) -> Iterator[_Row]:
    """Yield each distinct wrong answer of a run, with the reference and the prompt of the run.

    An answer is wrong if the task finds a failure in it. Unreadable answers count as wrong. Answers to test examples
    are skipped.
    """
    task, box_format = run.task, run.results.model.box_format.format
    if why_not := why_untrainable(task):
        raise ConfigError(f"{run.folder}: {task.name}: {why_not}. Fix: give another run")
    wrong: dict[str, dict[str, None]] = {}
    for sample in run.samples:
        example, prediction = sample.example, sample.prediction
        if sample.record.text and attempt(task, "failures", example, partial(task.failures, example, prediction), ()):
            wrong.setdefault(sample.example.example_id, {})[sample.record.text] = None
    for loaded in open_examples(data, task.benchmark, task.name, split=TRAIN, root=root):
        reference = task.reference_answer(loaded.example, box_format)
        for text in wrong.get(loaded.example.example_id, ()):
            yield _row(loaded, task, box_format, chosen=reference, rejected=text)


def _write_conversations(conversations: Iterable[_Row], folder: Path, columns: Sequence[str]) -> int:
    """Write a Parquet file, and return the number of rows.

    Its schema has the features, so that `datasets` decodes images on access.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features, Image, List, Value

    part = {"type": Value("string"), "text": Value("string")}
    turns = List({"role": Value("string"), "content": List(part)})
    of_example = {"example_id": Value("string"), "images": List(Image()), "prompt": turns}
    answers = dict.fromkeys(columns, turns) or {REFERENCE: Value("string")}
    features = Features({**of_example, **answers})
    path, rows = folder / PARQUET, 0
    path.parent.mkdir()
    with pq.ParquetWriter(path, features.arrow_schema) as writer:
        encoded_rows = map(features.encode_example, conversations)
        while batch := list(islice(encoded_rows, _BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema=features.arrow_schema))
            rows += len(batch)
    if not rows:
        raise ConfigError("there is nothing to export: no requested answer exists. Fix: check the run or the task")
    return rows


def _row(
    loaded: LoadedExample, task: Task, box_format: BoxFormat, teller: AidInserter | None = None, **answers: str
) -> _Row:
    """Return a question with its images and its answers, by column."""
    images, prompt = _images(loaded, task), task.prompt(loaded.example, box_format)
    if teller:
        prompt, pictures, _ = teller.tell(loaded.example.example_id, prompt, len(images))
        images += _encoded(pictures, frames=0)
    assistant = {name: [{"type": "text", "text": text}] for name, text in answers.items()}
    return {
        "example_id": loaded.example.example_id,
        "images": images,
        "prompt": prompt.messages(),
        **{name: [{"role": "assistant", "content": content}] for name, content in assistant.items()},
    }


def _images(loaded: LoadedExample, task: Task) -> list[dict[str, Any]]:
    """Return the images of a run.

    Stored pictures are copied byte by byte. Others are encoded as in `build`, or as PNG if an option changes stored
    pictures.
    """
    frames = len(loaded.example.frames) if isinstance(loaded.media, LinkedMedia) else 0
    if not isinstance(loaded.media, LinkedMedia) and type(task).displayed_images is Task.displayed_images:
        return [{"bytes": content, "path": None} for content in loaded.media]
    return _encoded(loaded.images(task), frames)


def _encoded(images: Iterable[Image.Image], frames: int) -> list[dict[str, Any]]:
    """Return encoded images. The first are frames, and the others have overlays."""
    from barista_bench.data.stored_images import encode_image

    return [{"bytes": encode_image(image, overlay=n >= frames), "path": None} for n, image in enumerate(images)]
