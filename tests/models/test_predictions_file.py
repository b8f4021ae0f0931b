"""Answers from a file: each line of its format is checked, and missing answers are reported."""

import hashlib
import json
import logging
import re
import runpy
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

from barista_bench.api import load_results
from barista_bench.benchmarks import get_task
from barista_bench.cli.commands import app
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Prediction
from barista_bench.core.prompt import Prompt
from barista_bench.errors import BaristaError, ConfigError, DataError
from barista_bench.models import Completion, Failure, GenerationConfig, Request, predictions_file as module
from barista_bench.models.predictions_file import PredictionsModel

DOCS = Path(__file__).resolve().parents[2] / "docs" / "predictions.md"
HEADER = {"format": "barista_bench.predictions/1", "box_format": "xyxy/pixels", "model": "CaRe-Ego"}
GOOD = {"example_id": "a", "answer": "x"}
PIXELS = BoxFormat("xyxy", None)


def write(folder: Path, *lines: Mapping[str, Any] | str | bytes, header: Mapping[str, Any] | None = HEADER) -> Path:
    path = folder / "answers.jsonl"
    rows = [*([header] if header is not None else []), *lines]
    encoded = [
        row if isinstance(row, bytes) else (row if isinstance(row, str) else json.dumps(row)).encode() for row in rows
    ]
    path.write_bytes(b"".join(line + b"\n" for line in encoded))
    return path


def ask(model: PredictionsModel, name: str, *seeds: int) -> list[Completion | Failure]:
    (answers,) = model.generate([Request(name, Prompt("", ()), (), seeds or (0,))], GenerationConfig())
    return answers


def test_an_answer_is_the_text_or_the_json_in_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"example_id": "a", "answer": 'ANSWER: "ß"\nand more'},
        '{"example_id": "b", "value": {"bboxes": [[1, 2.50, 3e0, 4]], "scores": [0.9]}}',
    )
    model = PredictionsModel.load(path)
    assert ask(model, "a") == [Completion('ANSWER: "ß"\nand more')]
    assert ask(model, "b") == [Completion('{"bboxes": [[1, 2.50, 3e0, 4]], "scores": [0.9]}')]


def test_an_answer_without_a_run_counts_for_all_runs_and_an_example_without_one_fails(tmp_path: Path) -> None:
    model = PredictionsModel.load(write(tmp_path, GOOD))
    assert ask(model, "a", 5, 6, 7) == [Completion("x")] * 3
    assert ask(model, "b", 1, 2) == [Failure("no prediction for b in predictions:CaRe-Ego")] * 2


def test_an_answer_of_one_run_counts_only_for_its_seed(tmp_path: Path) -> None:
    rows = [{"example_id": "a", "answer": text, "repetition": run} for run, text in ((0, "first"), (2, "third"))]
    model = PredictionsModel.load(write(tmp_path, *rows), seeds_of=lambda name, run: {100 + run})
    first, second, third = ask(model, "a", 100, 101, 102)
    assert (first, third) == (Completion("first"), Completion("third"))
    assert second == Failure("no prediction for this repetition of a in predictions:CaRe-Ego; it has 0, 2")


def test_unclear_repetitions_and_files_for_other_examples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="its lines name repetitions"):
        PredictionsModel.load(write(tmp_path, {**GOOD, "repetition": 0}))
    with pytest.raises(DataError, match=r"none of its 1 examples is in the run, e\.g\. a"):
        PredictionsModel.load(write(tmp_path, GOOD), example_ids=["z"])


def test_answers_to_unknown_examples_are_named_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, *({"example_id": name, "answer": "x"} for name in "cab"))
    with caplog.at_level(logging.WARNING):
        model = PredictionsModel.load(path, example_ids={"a", "z"})
    assert model.unknown == ("b", "c")
    assert f"{path}: 2 examples are not in the run: left out, e.g. b, c" in caplog.text
    assert isinstance(ask(model, "b")[0], Failure)
    assert ask(model, "a") == [Completion("x")]


def test_a_predictions_file_has_the_name_in_its_header_or_its_file_name(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    identity = PredictionsModel.load(path).identity
    assert identity.name == "predictions:CaRe-Ego"
    assert identity.revision == hashlib.sha256(path.read_bytes()).hexdigest()
    nameless = {name: value for name, value in HEADER.items() if name != "model"}
    other = PredictionsModel.load(write(tmp_path, GOOD, header=nameless)).identity
    assert other.name == "predictions:answers.jsonl"
    assert other.revision != identity.revision


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("xyxy/pixels", BoxFormat("xyxy", None)),
        ("yxyx/1000", BoxFormat("yxyx", 1000)),
        ("xyxy/1", BoxFormat("xyxy", 1)),
    ],
)
def test_the_header_says_how_boxes_are_written(tmp_path: Path, text: str, expected: BoxFormat) -> None:
    path = write(tmp_path, GOOD, header={**HEADER, "box_format": text})
    assert PredictionsModel.load(path).box_format == expected
    assert PredictionsModel.load(path, box_format=expected).box_format == expected
    with pytest.raises(ConfigError, match=f"its header has boxes {text}"):
        PredictionsModel.load(path, box_format=BoxFormat("yxyx", None))


def test_a_file_without_a_header_needs_the_box_format(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, header=None)
    with pytest.raises(ConfigError, match="the format of its boxes is unknown"):
        PredictionsModel.load(path)
    model = PredictionsModel.load(path, box_format=PIXELS)
    assert (model.box_format, ask(model, "a")) == (PIXELS, [Completion("x")])
    assert ask(PredictionsModel.load(path, has_boxes=lambda: False), "a") == [Completion("x")]


def test_blank_lines_are_passed_over_and_counted(tmp_path: Path) -> None:
    assert isinstance(ask(PredictionsModel.load(write(tmp_path, GOOD, "")), "a", 1)[0], Completion)
    with pytest.raises(DataError, match="line 4: Input data was truncated"):
        PredictionsModel.load(write(tmp_path, GOOD, "", "{"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "line 3: Input data was truncated"),
        ("[1]", "line 3: Expected `object`"),
        ({"answer": "x"}, "line 3: Object missing required field `example_id`"),
        ({"example_id": "b"}, "line 3: needs either answer or value"),
        ({"example_id": "b", "answer": "x", "value": []}, "line 3: needs either answer or value"),
        ({"example_id": "b", "value": "x"}, "line 3: value is not an object or array"),
        ({"example_id": "b", "value": None}, "line 3: value is not an object or array"),
        ('{"example_id": "b", "value": [NaN]}', "line 3: JSON is malformed"),
        ({"example_id": "b", "boxes": []}, "line 3: Object contains unknown field `boxes`"),
        ({"example_id": "", "answer": "x"}, "line 3: Expected `str` of length >= 1"),
        ({"example_id": "b" * 2000, "answer": "x"}, "line 3: Expected `str` of length <= 1024"),
        ({"example_id": 3, "answer": "x"}, "line 3: Expected `str`, got `int`"),
        ({"example_id": "b", "answer": "x", "repetition": -1}, "line 3: Expected `int` >= 0"),
        ({"example_id": "b", "answer": "x", "repetition": True}, "line 3: Expected `int | null`, got `bool`"),
        (b'{"example_id": "b", "value": ["\xff"]}', "line 3: 'utf-8' codec"),
        ('{"example_id": "b", "value": ' + "[" * 100_000 + "]" * 100_000 + "}", "line 3: maximum recursion"),
        (GOOD, "line 3: a is answered twice"),
        ({**GOOD, "repetition": 1}, "line 3: a is answered twice"),
        (HEADER, "line 3: Object contains unknown field `format`"),
    ],
)
def test_a_bad_line_is_refused_by_its_number(tmp_path: Path, line: Any, problem: str) -> None:
    path = write(tmp_path, GOOD, line)
    with pytest.raises(DataError, match=re.escape(f"{path}: {problem}")) as caught:
        PredictionsModel.load(path, seeds_of=lambda name, run: {run})
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ({**HEADER, "format": "barista_bench.predictions/2"}, "line 1: Invalid enum value"),
        ({**HEADER, "boxes": "xyxy"}, "line 1: Object contains unknown field `boxes`"),
        ({**HEADER, "box_format": "xxyy/pixels"}, "line 1: box_format 'xxyy/pixels' is unknown"),
        ({**HEADER, "box_format": "xyxy/0"}, "line 1: box_format 'xyxy/0' is unknown"),
        ({**HEADER, "model": ""}, "line 1: Expected `str` of length >= 1"),
    ],
)
def test_a_bad_header_is_refused(tmp_path: Path, header: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=re.escape(problem)):
        PredictionsModel.load(write(tmp_path, GOOD, header=header))


def test_files_without_answers_and_absent_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no predictions"):
        PredictionsModel.load(write(tmp_path))
    with pytest.raises(DataError, match="cannot be read"):
        PredictionsModel.load(tmp_path / "absent.jsonl")
    with pytest.raises(DataError, match="cannot be read"):
        PredictionsModel.load(tmp_path)


def test_lines_and_files_have_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, GOOD, {"example_id": "b", "answer": "x" * 500})
    monkeypatch.setattr(module, "MAX_LINE", 300)
    with pytest.raises(DataError, match="line 3 is longer than 300 bytes"):
        PredictionsModel.load(path)
    monkeypatch.setattr(module, "MAX_FILE", 100)
    with pytest.raises(DataError, match="is larger than 100 bytes"):
        PredictionsModel.load(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_a_remedy(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "answers.jsonl"
    path.write_bytes(content)
    refused = None
    try:
        PredictionsModel.load(path, box_format=PIXELS)
    except BaristaError as error:
        refused = str(error)
    assert refused is None or "Fix: " in refused


def documented(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)


def test_every_documented_answer_is_read_by_its_task(tmp_path: Path) -> None:
    inputs: dict[str, Any] = {
        "frame_width": 1280,
        "frame_height": 720,
        "choices": [{"choice_id": letter, "class_id": letter, "text": letter, "verb": "v"} for letter in "ABC"],
    }
    tasks = set()
    assert len(documented("json")) >= 4
    for block in documented("json"):
        path = tmp_path / "documented.jsonl"
        path.write_text(block)
        model = PredictionsModel.load(path, seeds_of=lambda name, run: {run})
        for line in block.splitlines()[1:]:
            row = json.loads(line)
            task = get_task("barista", row["example_id"].partition(":")[0])
            (completion,) = ask(model, row["example_id"], row.get("run", 0))
            assert isinstance(completion, Completion)
            parsed = task.parse(completion.text, inputs, model.box_format)
            assert isinstance(parsed, Prediction), row
            assert parsed.dropped == 0
            tasks.add(task.name)
    assert tasks == {"grounding", "hand_object", "relations", "activity", "referring", "temporal_vqa"}


def test_the_documented_program_prints_the_output_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = (block for block in documented("json") if "CaRe-Ego" in block)
    (tmp_path / "predictions.jsonl").write_text(block)
    monkeypatch.chdir(tmp_path)
    (program,) = (program for program in documented("python") if "PredictionsModel" in program)
    (tmp_path / "program.py").write_text(program)
    runpy.run_path(str(tmp_path / "program.py"))
    first, second = capsys.readouterr().out.splitlines()
    answer = json.loads(block.splitlines()[1])["value"]
    name, _, text = first.partition(" ")
    assert (name, json.loads(text)) == ("predictions:CaRe-Ego", answer)
    assert second == "no prediction for hand_object:v1:90 in predictions:CaRe-Ego"
    assert second in DOCS.read_text(encoding="utf-8")


@pytest.mark.full
def test_the_documented_way_from_rows_to_a_report_works_for_every_kind_of_answer(
    generated: Callable[[str], Path], tmp_path: Path, datasets_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(generated("handyvqa"), tmp_path / "made" / "handyvqa")
    monkeypatch.chdir(tmp_path)
    (program,) = (program for program in documented("python") if "load_dataset" in program)
    (tmp_path / "answers.py").write_text(program)
    section = DOCS.read_text(encoding="utf-8").partition("## From rows to a report")[2].partition("## The file")[0]
    commands = [line.split() for line in re.findall(r"^    ((?:barista-bench|python) .*)$", section, re.MULTILINE)]
    assert [words[1] for words in commands[:2]] == ["mini", "generate"], "what the fixture has made"
    for words in commands[2:]:
        if words[0] == "python":
            runpy.run_path(words[1])
            continue
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, done.output
    action, masks, process = load_results("runs").runs
    names = [run.results.model.name for run in (process, action, masks)]
    assert names == [f"predictions:{name}" for name in ("Assistant", "ViCLIP", "Sa2VA")]
    for run in (process, action, masks):
        assert run.results.coverage.is_complete
        assert run.results.coverage.statuses["ok"] == len(run.samples)
    for sample in action.samples:
        texts = dict(zip("ABCDE", sample.example.inputs["options"], strict=False))
        assert sample.prediction.value["letters"][0] == max(texts, key=lambda label: len(texts[label]))
    assert 0 < masks.results.metrics["J"].mean < 1
