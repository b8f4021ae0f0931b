"""Rows of frozen sets hold a run's question and the oracle's answer, in the form for chat templates."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, concatenate_datasets, load_dataset
from transformers.models.llama4.processing_llama4 import chat_template as LLAMA4
from transformers.models.smolvlm.processing_smolvlm import DEFAULT_CHAT_TEMPLATE as SMOLVLM
from transformers.utils.chat_template_utils import render_jinja_template

from barista_bench.benchmarks import BENCHMARKS, get_benchmark, get_task
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.data.rows import question_columns
from barista_bench.models import tiny
from barista_bench.runs.ask.runner import run
from barista_bench.runs.log.inputs import digest
from tests.conftest import MadeOnce
from tests.runs.made_logs import read_folder

# The rest are as families ask for parts that publish no template in transformers' own code.
TEMPLATES = {
    "ours": tiny.TURN.replace("IMAGE", "<image>"),
    "SmolVLM": SMOLVLM,
    "Llama 4": LLAMA4.replace("<|image|>", "<image>"),
    "by keys, as Qwen's": (
        "{% for message in messages %}{% if message.content is string %}{{ message.content }}{% else %}"
        "{% for part in message.content %}{% if 'image' in part or part.type == 'image' %}<image>"
        "{% elif 'text' in part %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
    ),
    "trimmed, system text first, as Gemma's": (
        "{% if messages[0].role == 'system' %}{{ messages[0].content[0].text | trim }}{% set messages = messages[1:] %}"
        "{% endif %}{% for message in messages %}{% for part in message.content %}"
        "{% if part.type == 'image' %}<image>{% elif part.type == 'text' %}{{ part.text | trim }}{% endif %}"
        "{% endfor %}{% endfor %}"
    ),
    "images first, as LLaVA's": (
        "{% for message in messages %}"
        "{% for part in message.content | selectattr('type', 'equalto', 'image') %}<image>{% endfor %}"
        "{% for part in message.content | selectattr('type', 'equalto', 'text') %}{{ part['text'] }}{% endfor %}"
        "{% endfor %}"
    ),
}


@pytest.fixture(scope="session")
def frozen(six_frozen: Path, source_of: Callable[[str], Path], made_once: MadeOnce) -> Callable[[str], Path]:
    """A small frozen set of every task of a benchmark."""

    def folder(name: str) -> Path:
        if name == "barista":
            return six_frozen
        settings: dict[str, Any] = {"benchmark": name, "cache": False}
        settings["sampling"] = {} if name == "vista" else {"limit": 2}  # ViSTa is scored by whole problem sets
        return made_once(f"asked/{name}", lambda out: build(source_of(name), out, **settings))

    return folder


def rows_of(folder: Path, task: str, cache: Path) -> Dataset:
    return concatenate_datasets(list(load_dataset(str(folder), task, cache_dir=str(cache)).values()))


def as_text(messages: list[dict[str, Any]]) -> str:
    """The chat as `Prompt.as_text` writes it; a run logs the digest of this text."""
    image, text = 0, ""
    for turn in messages:
        text += f"[{turn['role']}]\n"
        for part in turn["content"]:
            assert (part["type"], part["text"] is None) in (("text", False), ("image", True))
            text += f"<image {image}>\n" if part["type"] == "image" else part["text"]
            image += part["type"] == "image"
        text += "\n" if turn["role"] == "system" else ""
    return text


@pytest.mark.full
@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_rows_ask_as_a_run_does_and_answer_as_the_oracle(
    benchmark: str, frozen: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = frozen(benchmark)
    tasks, out = get_benchmark(benchmark).task_names, tmp_path / "runs"
    run(folder, out, benchmark=benchmark, task=tasks, model="oracle", repetitions=1)
    for task in tasks:
        records = {record.example_id: record for record in read_folder(out / task)}
        rows = rows_of(folder, task, tmp_path)
        assert len(rows) == len(records) > 0
        for row in rows:
            record = records[row["example_id"]]
            assert (digest(as_text(row["messages"])), row["answer"]) == (record.prompt, record.text)
            places = [part for turn in row["messages"] for part in turn["content"] if part["type"] == "image"]
            assert len(places) == len(row["images"])
            assert row["prompt_set"] == get_task(benchmark, task).prompts.wording
            assert BoxFormat.parse(row["box_format"]) == DEFAULT_BOX_FORMAT


@pytest.fixture(scope="module")
def first_rows(six_frozen: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    cache = tmp_path_factory.mktemp("cache")
    return {task: rows_of(six_frozen, task, cache)[0] for task in ("relations", "activity")}


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@pytest.mark.parametrize("task", ["relations", "activity"])
def test_the_null_text_of_images_is_not_read(task: str, template: str, first_rows: dict[str, dict[str, Any]]) -> None:
    row = first_rows[task]
    plain = [
        {**turn, "content": [{k: v for k, v in part.items() if v is not None} for part in turn["content"]]}
        for turn in row["messages"]
    ]
    (written,), (expected,) = (
        render_jinja_template([messages], chat_template=template)[0] for messages in (row["messages"], plain)
    )
    assert written == expected
    assert written.count("<image>") == len(row["images"])
    assert "None" not in written
    assert row["messages"][-1]["content"][-1]["text"].strip() in written


def test_texts_that_touch_are_one_part_and_no_part_is_empty() -> None:
    parts = (TextPart(""), ImagePart(0), TextPart("a "), TextPart("b"), ImagePart(1), ImagePart(2), TextPart(""))
    (turn,) = Prompt("", parts).messages()
    image = {"type": "image"}
    assert turn == {"role": "user", "content": [image, {"type": "text", "text": "a b"}, image, image]}


def test_a_hidden_answer_is_null(frozen: Callable[[str], Path]) -> None:
    task = get_task("egocot", "cot")
    example = open_examples(frozen("egocot"), "egocot", "cot").examples[0]
    assert question_columns(task, example)["answer"]
    hidden = replace(example, target={**example.target, "answer": None})
    assert question_columns(task, hidden) == {**question_columns(task, example), "answer": None}
    assert question_columns(task, hidden)["box_format"] == str(DEFAULT_BOX_FORMAT)
