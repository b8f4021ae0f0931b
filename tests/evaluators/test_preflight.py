"""`preflight` asks drawn questions with known answers, and names wrong settings before anything is paid."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat, write_box
from barista_bench.errors import ConfigError
from barista_bench.models import Completion, Failure, GenerationConfig, Request
from barista_bench.models.base import ScriptedModel
from barista_bench.preflight import findings, settings
from barista_bench.preflight.questions import LAST_NUMBER, PreflightQuestion, questions
from barista_bench.runs.described import Prices
from barista_bench.runs.score.box_fit import KNOWN_FORMATS
from tests import served_standin
from tests.evaluators.recorded import barista
from tests.served_standin import Body, ServedStandIn

GRID, PIXELS = BoxFormat("xyxy", 1000), BoxFormat("xyxy", None)
FIVE = [  # written, read as, of faults4.md, B4
    (BoxFormat("xyxy", 1), GRID),
    (PIXELS, GRID),
    (GRID, PIXELS),
    (BoxFormat("yxyx", 1000), GRID),
    (BoxFormat("xywh", 1000), GRID),
]


def right_text(question: PreflightQuestion, written: BoxFormat, rng: random.Random | None = None) -> str:
    """The answer of a model that sees, with boxes in a format, off by up to a tenth of their sides with `rng`."""
    if question.kind == "box" and question.example is not None:
        inputs, (box,) = question.example.inputs, question.example.target["boxes"]  # type: ignore[misc]
        size = (inputs["frame_width"], inputs["frame_height"])
        if rng is not None:
            x_shift, y_shift = (box[2] - box[0]) / 10, (box[3] - box[1]) / 10  # type: ignore[index, operator]
            limits = (x_shift, y_shift) * 2
            box = [value + rng.uniform(-limit, limit) for value, limit in zip(box, limits, strict=True)]  # type: ignore[arg-type]
        return json.dumps({"bboxes": [write_box(tuple(box), written, *size)]})  # type: ignore[arg-type]
    if question.kind == "json":
        return json.dumps({"dots": int(question.answer)})
    if question.kind == "long":
        return " ".join(map(str, range(1, LAST_NUMBER + 1)))
    return question.answer


def examined(
    written: BoxFormat, read_as: BoxFormat, rng: random.Random | None = None, **changes: Any
) -> dict[str, Any]:
    answered = [
        findings.PreflightAnswer(
            question,
            Completion(
                **{"text": right_text(question, written, rng), "input_tokens": 100, "output_tokens": 10, **changes}
            ),
            0.5,
        )
        for question in questions(read_as)
    ]
    return {found.topic: found for found in findings.findings(answered, read_as, Prices(input=1.0, output=2.0))}


@pytest.mark.parametrize(("written", "read_as"), FIVE, ids=str)
def test_each_wrong_box_format_is_named_with_its_flag(written: BoxFormat, read_as: BoxFormat) -> None:
    found = examined(written, read_as)
    assert found["boxes"].remedy == f"--box-format {written}"
    assert [topic for topic, each in found.items() if each.result == "problem"] == ["boxes"]


@pytest.mark.full
def test_right_formats_raise_no_warning_in_200_random_runs() -> None:
    for seed in range(200):
        box_format = KNOWN_FORMATS[seed % len(KNOWN_FORMATS)]
        found = examined(box_format, box_format, random.Random(seed))
        assert not [each for each in found.values() if each.result == "problem"], (seed, found)


def test_a_right_model_passes_and_its_cost_is_shown() -> None:
    found = examined(GRID, GRID)
    assert all(each.result == "ok" for each in found.values())
    assert "0.50 s, 100 input and 10 output tokens a sample, 0.12 US dollars for 1,000 samples" in found["cost"].found


def test_other_signs_are_named() -> None:
    assert "--think-tags" in examined(GRID, GRID, text="", reasoning="all thought")["thoughts"].remedy
    tagged = examined(GRID, GRID, text="[MUSE]hm, 1 and 2[/MUSE]yes")["thoughts"]
    assert tagged.remedy == "--think-tags '[MUSE],[/MUSE]'"
    assert "--max-new-tokens" in examined(GRID, GRID, finish_reason="length")["length"].remedy
    assert examined(GRID, GRID, finish_reason="refusal", text="")["refusals"].result == "problem"


def test_a_cut_answer_is_asked_again_in_full_unless_it_repeats_itself() -> None:
    asked = list[tuple[str, int]]()

    class Rambling(ScriptedModel):
        def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
            asked.extend((request.request_id, config.max_new_tokens) for request in requests)
            texts = ["la " * 300 if "long" in r.request_id else "thinking aloud of nothing else" for r in requests]
            return [[Completion(text, "length")] for text in texts]

    model = Rambling("rambling", lambda name, seed: "")
    answered = findings.ask(model, settings.PreflightConfig(model="rambling"), Prices())
    full = [name for name, limit in asked if limit == 4096]
    assert len(answered) == 20
    assert len(full) == 18
    assert len(asked) == 38
    (length,) = (each for each in findings.findings(answered, GRID) if each.topic == "length")
    assert "2 of them while they repeat" in length.found


def test_swapped_pictures_are_named() -> None:
    swap = {"red": "blue", "blue": "green", "green": "yellow", "yellow": "red"}
    answered = [
        findings.PreflightAnswer(question, Completion(swap.get(question.answer, right_text(question, GRID))))
        for question in questions(GRID)
    ]
    (images,) = (each for each in findings.findings(answered, GRID) if each.topic == "images")
    assert images.found == "0 of 4 two pictures in order are right"


def test_there_are_twenty_and_each_asks_its_pictures_once() -> None:
    asked = questions(DEFAULT_BOX_FORMAT)
    assert len(asked) == len({question.request.request_id for question in asked}) == 20
    for question in asked:
        question.request.check_images()


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings, "HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf/barista_bench/seen"


def _say_yes(body: Body, choice: int = 0) -> str:
    text = json.dumps(body["messages"])
    return "yes" if "yes or no" in text else '{"bboxes": [[0.1, 0.2, 0.3, 0.4]], "dots": 2}'


def test_the_command_asks_a_server_and_ends_with_1_if_a_setting_is_wrong(
    seen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_standin, "expected_text", _say_yes)
    with ServedStandIn() as server:
        done = barista("preflight", "--model", "served:m", "--base-url", server.url, code=1)
    assert len(server.calls) == 20
    assert "problem  boxes" in done.output
    assert "input and" in done.output
    assert len(list(seen.iterdir())) == 1


def test_run_offers_it_once_for_a_model_that_it_has_not_seen(
    seen: Path, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServedStandIn() as server:
        flags = (
            "--model",
            "served:m",
            "--base-url",
            server.url,
            "--task",
            "relations",
            "--repetitions",
            1,
            "--limit",
            1,
        )
        first = barista("run", dataset, *flags, "--out", tmp_path / "a")
        second = barista("run", dataset, *flags, "--out", tmp_path / "b")
    assert first.output.count("barista-bench preflight --model served:m --base-url") == 1
    assert "preflight" not in second.output
    assert (
        "preflight"
        not in barista("run", dataset, "--model", "oracle", "--task", "relations", "--out", tmp_path / "c").output
    )


@pytest.mark.parametrize("model", ["oracle", "text_only:chance", "predictions:x.jsonl"])
def test_a_task_without_questions_has_no_preflight(model: str, seen: Path) -> None:
    with pytest.raises(ConfigError, match="sees no picture"):
        findings.preflight(settings.PreflightConfig(model=model))
