"""The 150 public records with a real model's outputs, on machines that have them; they are not part of the
repository."""

import json
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks import RecordedAnswers
from barista_bench.benchmarks.handyvqa.letters import LetterReading
from barista_bench.benchmarks.handyvqa.recorded_answers import read_outputs
from barista_bench.benchmarks.handyvqa.release import open_release
from barista_bench.core.example import Prediction
from tests.conftest import SHARED
from tests.handyvqa.made import BOXES, metrics_of
from tests.handyvqa.released_rule import official_metrics

SAMPLE = SHARED / "data/handyvqa/sample_150.jsonl"

BY_HAND: dict[str, tuple[str, str, str]] = {
    # id: letters by the released rule, by the strict one, and the right ones, read off the outputs by eye
    "objects_0000": ("AC", "AC", "CD"),  # two lines
    "objects_0001": ("AF", "AF", "DF"),  # its own words behind the letters
    "objects_0002": ("BF", "BF", "BEF"),
    "objects_0003": ("BF", "BF", "BF"),
    "objects_0004": ("AE", "AE", "AE"),
    "objects_0006": ("DE", "DE", "DEG"),
    "objects_0007": ("BC", "BC", "BF"),  # the placeholders of the format, repeated
    "objects_0010": ("DE", "DE", "DE"),  # E before D
    "objects_0014": ("AE", "AE", "AF"),
    "objects_0016": ("DF", "DF", "AF"),  # F before D
    "objects_0018": ("EF", "EF", "EF"),
    "objects_0022": ("BDF", "BDF", "BD"),
    "objects_0023": ("E", "E", "EF"),  # prose with a list in brackets and a last word that ends in n: no option
    "objects_0026": ("BF", "BF", "AF"),
    "action_0000": ("D", "D", "D"),
}


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    if not SAMPLE.is_file():
        pytest.skip(f"{SAMPLE} is absent: the public records are not part of this repository")
    return [json.loads(line) for line in SAMPLE.read_text().splitlines()]


@pytest.fixture(scope="module")
def recorded(records: list[dict[str, Any]]) -> dict[str, RecordedAnswers]:
    del records  # only for its skip
    return {outputs.task.name: outputs for outputs in read_outputs(SAMPLE)}


def test_all_records_load_without_a_problem(records: list[dict[str, Any]]) -> None:
    release = open_release(SAMPLE, None)
    assert not release.problems
    assert release.counts == dict.fromkeys(("action", "process", "location", "state", "parts", "objects"), 25)
    assert len(records) == sum(release.counts.values()) == 150


def test_awkward_real_outputs_are_read_as_a_person_reads_the_rules(recorded: dict[str, RecordedAnswers]) -> None:
    readings = {}
    for outputs in recorded.values():
        task, examples = outputs.task(), {example.example_id: example for example in outputs.examples}
        for answer in outputs.answers:
            if answer.example_id in BY_HAND:
                example = examples[answer.example_id]
                parsed = task.parse(answer.text or "", example.inputs, BOXES)
                assert isinstance(parsed, Prediction)
                reading = LetterReading.of(parsed)
                right = "".join("ABCDEFGHIJK"[index] for index in example.target["correct"])  # type: ignore[union-attr]
                strict = "".join(sorted(reading.strict or ()))
                readings[answer.example_id] = ("".join(reading.letters), strict, right)
    assert readings == BY_HAND


def test_the_six_metrics_equal_a_transcription_of_the_released_script(
    records: list[dict[str, Any]], recorded: dict[str, RecordedAnswers]
) -> None:
    metrics = {name: metrics_of(outputs)[outputs.task.primary] for name, outputs in recorded.items()}
    assert len(metrics) == 6
    assert metrics == pytest.approx(official_metrics(records), abs=1e-12)


def test_one_file_an_item_gives_the_same_metrics(
    records: list[dict[str, Any]], recorded: dict[str, RecordedAnswers], tmp_path: Path
) -> None:
    for record in records:
        folder = tmp_path / record["category"]
        folder.mkdir(exist_ok=True)
        public = {key: record[key] for key in ("question", "options", "inference", "correct_idx")}
        (folder / f"{record['id']}.json").write_text(json.dumps(public))
    again = {outputs.task.name: metrics_of(outputs) for outputs in read_outputs(tmp_path)}
    assert again == {name: metrics_of(outputs) for name, outputs in recorded.items()}
