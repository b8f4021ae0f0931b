"""Writes task files for lmms-eval (`--include_path`), and has the functions that these files name.

lmms-eval finds no tasks by entry points, and passes no arguments to a task file. So the files are written for one
dataset and its settings. A file loads one row with the settings, and `examples` expands this row to one row per
example.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from huggingface_hub.constants import HF_HOME

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.prompt import Prompt, fill
from barista_bench.errors import ConfigError
from barista_bench.files.writing import write_whole
from barista_bench.harness.questions import QuestionSet, question_set, question_sets
from barista_bench.models import Completion, GenerationConfig
from barista_bench.runs.log.inputs import digest

if TYPE_CHECKING:
    from datasets import Dataset

log = logging.getLogger(__name__)
Row = Mapping[str, str]
"""A question: `questions` is the key of its set, and `example_id` its example."""
AnsweredRow = dict[str, Any]
"""A row with `texts`, the answers of all repetitions."""


def write_tasks(settings: Mapping[str, object]) -> tuple[Path, list[str]]:
    """Write the task files of a dataset; each task is named `<benchmark>_<task>`.

    Args:
        settings: values for `QUESTION_SETTINGS`. `box_format` has the package's default, since a task does not know the
            model.

    Returns:
        The folder of the files, in the cache of the Hub's libraries, and the names of the tasks.

    Raises:
        ConfigError: a setting is invalid, or lmms-eval can run none of the available tasks.
        DataError: the data cannot be opened.
    """
    askable = []
    for questions in question_sets(settings):
        if questions.task.follow_up(questions.examples.examples[0], ("",), _boxes(questions)) is None:
            askable.append(questions)
        else:
            log.warning("left out: %s: asks a second question, as lmms-eval does not", _task_name(questions))
    if not askable:
        raise ConfigError(
            f"{settings['data']}: no task here asks one question an example, as lmms-eval does. "
            "Fix: say --option conversation=single, or use inspect_ai"
        )
    folder = Path(HF_HOME) / "barista_bench" / "lmms_eval" / digest([each.settings for each in askable])[:12]
    folder.mkdir(parents=True, exist_ok=True)
    template = resources.files(__package__).joinpath("lmms_eval_task.yaml").read_text(encoding="utf-8")
    for questions in askable:
        task, rows = questions.task, folder / f"{_task_name(questions)}.json"
        write_whole(rows, json.dumps({"settings": questions.settings}))
        values = {"name": _task_name(questions), "rows": str(rows), "primary": task.primary, "version": task.version}
        values |= asdict(GenerationConfig())
        written = fill(template, {name: json.dumps(value) for name, value in values.items()})
        write_whole(rows.with_suffix(".yaml"), written)
    return folder, [_task_name(questions) for questions in askable]


def _task_name(questions: QuestionSet) -> str:
    return f"{questions.task.benchmark}_{questions.task.name}"


def examples(rows: Dataset) -> Dataset:
    """Return one row per example of the question set that `rows` names."""
    from datasets import Dataset

    (settings,) = rows["settings"]
    (questions,) = question_sets(json.loads(settings))
    return Dataset.from_list([{"questions": questions.key, "example_id": name} for name in questions.positions])


def messages(row: Row) -> list[dict[str, Any]]:
    """Return the question as a conversation; PIL images are in their places between the texts."""
    questions, prompt = _question(row)
    images, turns = iter(questions.images(row["example_id"], prompt)), prompt.messages()
    for part in (part for turn in turns for part in turn["content"] if part["type"] == "image"):
        part["url"] = next(images)
    return turns


def visuals(row: Row) -> NoReturn:
    """Refuse model classes that request images and text separately, without their order.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(
        f"{row['example_id']}: texts stand between its images, which this model class of lmms-eval does not keep. "
        "Fix: use one of lmms_eval/models/chat, such as qwen2_5_vl"
    )


def text(row: Row) -> str:
    """Return the question for logs, with images as `<image N>`."""
    return _question(row)[1].as_text()


def target(row: Row) -> str:
    """Return the reference in the form of a model's answer."""
    questions = question_set(row["questions"])
    return questions.task.reference_answer(questions.example(row["example_id"]), _boxes(questions))


def process_results(row: Row, results: Sequence[str]) -> dict[str, AnsweredRow]:
    """Return the answers under the name of each score, since all scores use the same answers."""
    answered = {"questions": row["questions"], "example_id": row["example_id"], "texts": list(results)}
    return {question_set(row["questions"]).task.primary: answered, "metrics": answered}


def compute_metrics(rows: Sequence[AnsweredRow]) -> dict[str, float]:
    """Return all scores of `barista-bench score` over all samples, and the number of samples of each status."""
    questions = question_set(rows[0]["questions"])
    box_format = _boxes(questions)
    return questions.compute_metrics(
        [
            questions.sample(row["example_id"], Completion(text), box_format, repetition=run)
            for row in rows
            for run, text in enumerate(row["texts"])
        ]
    )


def primary(rows: Sequence[AnsweredRow]) -> float:
    """Return the score of the task's primary metric; NaN if these samples have no score."""
    return compute_metrics(rows).get(question_set(rows[0]["questions"]).task.primary, math.nan)


def _question(row: Row) -> tuple[QuestionSet, Prompt]:
    questions = question_set(row["questions"])
    return questions, questions.task.prompt(questions.example(row["example_id"]), _boxes(questions))


def _boxes(questions: QuestionSet) -> BoxFormat:
    return questions.config.box_format or DEFAULT_BOX_FORMAT
