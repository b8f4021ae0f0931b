"""A segmenter that gets another model's choice: the same as with the right options if that model is right."""

import json
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from barista_bench.core.boxes import BoxFormat
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError, DataError
from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.models.specialists.sam3_masks import images_to_segment, write_masks
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.ask.runner import run, run_config
from barista_bench.runs.score.scoring import ScoredRun, score
from tests.conftest import MadeOnce
from tests.handyvqa.made import rectangle


class Segmenter:
    """Answers rectangles that depend only on the phrases, and keeps its requests."""

    identity = ModelIdentity("segmenter", None, {})
    box_format = BoxFormat()
    batch_size = 4

    def __init__(self) -> None:
        self.asked: dict[str, Request] = {}

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        self.asked.update({request.request_id: request for request in requests})
        return [[Completion(self._answer(request))] * len(request.seeds) for request in requests]

    def _answer(self, request: Request) -> str:
        inputs: dict[str, Any] = dict(request.inputs)
        end = 20 + zlib.crc32(json.dumps(inputs["phrases"]).encode()) % 200
        mask = rectangle(0, 0, end, end, (inputs["height"], inputs["width"]))
        return write_masks(dict.fromkeys(images_to_segment(request), mask))


@pytest.fixture(scope="module")
def dataset(generated: Callable[[str], Path], made_once: MadeOnce) -> Path:
    shown: dict[str, Any] = {"benchmark": "handyvqa", "sampling": {"frames": 4}, "cache": False}
    return made_once("built/handyvqa_generated", lambda out: build(generated("handyvqa"), out, **shown))


def first_stage(dataset: Path, out: Path, model: str = "oracle", task: str = "parts") -> Path:
    run(dataset, out, benchmark="handyvqa", task=task, model=model, repetitions=1)
    return out / task


def settings(dataset: Path, out: Path, task: str, *options: str, **others: Any) -> RunConfig:
    names = {"benchmark": "handyvqa", "task": (task,), "option": options, "model": "oracle", "repetitions": 2}
    return RunConfig(data=str(dataset), out=out, **{**names, **others})


def second_stage(dataset: Path, out: Path, option: str, task: str = "rvos_parts") -> tuple[Segmenter, ScoredRun]:
    model, config = Segmenter(), settings(dataset, out, task, option)
    run_config(config, open_tasks(config), model)
    return model, score(out / task)


@pytest.mark.parametrize("kind", ["parts", "objects"])
def test_the_answers_of_the_oracle_and_the_right_options_make_the_same_request_byte_for_byte(
    dataset: Path, tmp_path: Path, kind: str
) -> None:
    first = first_stage(dataset, tmp_path / "first", task=kind)
    told, told_run = second_stage(dataset, tmp_path / "told", f"options_from={first}", f"rvos_{kind}")
    true, true_run = second_stage(dataset, tmp_path / "true", "truth_options=true", f"rvos_{kind}")
    assert told.asked.keys() == true.asked.keys() == {example.example_id for example in told_run.examples.examples}
    for name, request in told.asked.items():
        other = true.asked[name]
        assert request.prompt == other.prompt
        assert (request.inputs, request.seeds) == (other.inputs, other.seeds)
        assert list(map(Image.Image.tobytes, request.images)) == list(map(Image.Image.tobytes, other.images))
    names = (f"told/rvos_{kind}/scores.jsonl", f"true/rvos_{kind}/scores.jsonl")
    assert len({(tmp_path / name).read_bytes() for name in names}) == 1
    assert [s.record.text for s in told_run.samples] == [s.record.text for s in true_run.samples]
    assert told_run.results.metrics == true_run.results.metrics
    # A report shows the question that was asked, also after the first run was moved or removed.
    (tmp_path / "first").rename(tmp_path / "moved")
    again, example = score(tmp_path / f"told/rvos_{kind}"), told_run.examples.examples[0]
    assert again.task.prompt(example, Segmenter.box_format) == told.asked[example.example_id].prompt


@pytest.mark.parametrize("answer", ["I cannot tell.", None])
def test_the_second_run_asks_only_questions_that_the_first_run_answered(
    dataset: Path, tmp_path: Path, answer: str | None
) -> None:
    examples = open_examples(dataset, "handyvqa", "objects").examples
    masked = {example.example_id for example in open_examples(dataset, "handyvqa", "rvos_objects").examples}
    texts = {e.example_id: e.inputs["options"][0] for e in examples}  # type: ignore[index]
    unanswered, *others = [name for name in texts if f"rvos_{name}" in masked]
    assert others
    lines = [{"example_id": unanswered, "answer": answer}] if answer else []
    lines += [{"example_id": n, "answer": f"(A) {t}"} for n, t in texts.items() if n != unanswered]
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, lines)))
    first = first_stage(dataset, tmp_path / "first", f"predictions:{tmp_path / 'm.jsonl'}", "objects")
    model, second = second_stage(dataset, tmp_path / "second", f"options_from={first}", "rvos_objects")
    assert {name: request.inputs["phrases"] for name, request in model.asked.items()} == {
        f"rvos_{name}": [texts[name]] for name in others
    }
    part, coverage = second.results.dataset.part, second.results.coverage
    assert part is not None
    assert (part.asked, part.of) == (len(others), len(others) + 1)
    assert part.words.startswith("answered by predictions:")
    assert coverage.answered == coverage.scored == coverage.expected == 2 * len(others)


def test_the_hash_of_the_first_run_is_in_every_fingerprint_and_another_run_is_refused(
    dataset: Path, tmp_path: Path
) -> None:
    inputs = []
    for model in ("oracle", "chance"):
        first = first_stage(dataset, tmp_path / model, model)
        _, second = second_stage(dataset, tmp_path / f"after_{model}", f"options_from={first}")
        assert str(second.results.changed_options["options_from"]).startswith(f"{model} ")
        inputs.append({s.record.fingerprint for s in second.samples})
    assert inputs[0].isdisjoint(inputs[1])
    with pytest.raises(ConfigError, match="another --out"):
        second_stage(dataset, tmp_path / "after_oracle", f"options_from={tmp_path / 'chance/parts'}")


def test_a_run_of_other_questions_and_two_ways_to_name_options_are_refused(dataset: Path, tmp_path: Path) -> None:
    first = first_stage(dataset, tmp_path / "first", task="objects")
    with pytest.raises(DataError, match="answers none of the"):
        second_stage(dataset, tmp_path / "second", f"options_from={first}")
    options = (f"options_from={first}", "truth_options=true")
    with pytest.raises(ConfigError, match="leave one of them out"):
        open_tasks(settings(dataset, tmp_path / "third", "rvos_objects", *options))
    with pytest.raises(ConfigError, match="shots"):
        open_tasks(settings(dataset, tmp_path / "third", "rvos_objects", options[0], shots=1))
