"""The process of `--engine vllm`: its requests, its answers, and the cost of its deaths. A stand-in plays vLLM."""

import os
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from barista_bench.errors import ModelError
from barista_bench.models.vllm.engine import MAX_DEATHS, Call, VllmEngine

STANDIN = Path(__file__).with_name("vllm_standin.py")


@pytest.fixture
def make(tmp_path):
    engines = []

    def made(*, timeout: float = 60.0, capacity: int = 4, command=(sys.executable, "-I", STANDIN), **variables: str):
        environment = {**os.environ, "STANDIN": str(tmp_path), **variables}
        engines.append(VllmEngine("m", command, environment, {"model": "m"}, capacity=capacity, timeout=timeout))
        return engines[-1]

    yield made
    for engine in engines:
        engine.close()


def call(number: int, text: str = "what?", images: tuple[Image.Image, ...] = ()) -> Call:
    return Call(number, {"prompt": text, "seeds": [number], "sampling": {}}, images)


def ask(engine: VllmEngine, texts: list[str]) -> dict[int, str]:
    """The error or `ok` of each text, by its number, asked as a stream asks; each is answered once."""
    outcomes: dict[int, str] = {}
    waiting = [call(number, text) for number, text in enumerate(texts)]
    while len(outcomes) < len(texts):
        if waiting and engine.has_room:
            engine.submit(waiting.pop(0))
            continue
        outcome = engine.next_result(wait=True)
        assert outcome is not None
        assert outcome.call.number not in outcomes
        assert outcome.message.error or outcome.message.samples[0].tokens[0] == outcome.call.number
        outcomes[outcome.call.number] = outcome.message.error or "ok"
    assert engine.next_result(wait=False) is None
    return outcomes


def lives(folder: Path) -> list[int]:
    return [int(path.name.partition("-")[2]) for path in folder.glob("life-*")]


def test_images_arrive_unchanged_and_answers_come_back(make):
    engine = make()
    assert engine.start()["dtype"] == "torch.float32"
    pictures = (Image.new("RGB", (3, 2), (1, 2, 3)), Image.new("RGB", (700, 500), (0, 1, 0)))
    engine.submit(call(7, "what?", pictures))
    outcome = engine.next_result(wait=True)
    assert outcome.call.number == 7
    assert outcome.message.samples[0].tokens == [7, (6 * 6 + 700 * 500) % 256, 2]
    assert outcome.seconds > 0


@pytest.mark.full
def test_no_more_calls_than_its_capacity_are_at_an_engine(make):
    engine = make(capacity=2)
    engine.submit(call(0, "slow"))
    assert engine.has_room
    engine.submit(call(1))
    assert not engine.has_room
    assert engine.next_result(wait=True).call.number == 0
    assert engine.has_room


@pytest.mark.full
@pytest.mark.parametrize("how", ["crash", "garbage", "stranger", "hang"])
def test_a_death_costs_a_restart_and_no_answer(make, tmp_path, caplog, how):
    engine = make(timeout=8.0 if how == "hang" else 60.0)
    engine.start()
    texts = ["what?"] * 10
    texts[5] = f"{how} once"
    assert set(ask(engine, texts).values()) == {"ok"}
    assert len(lives(tmp_path)) == 2
    reason = {
        "crash": "out of luck",
        "garbage": "an invalid message",
        "stranger": "an unknown prompt",
        "hang": "no sign of life",
    }[how]
    assert reason in caplog.text


def test_a_prompt_that_kills_the_engine_costs_only_itself(make, tmp_path):
    engine = make()
    engine.start()
    texts = ["what?"] * 10
    texts[5] = "crash"
    outcomes = ask(engine, texts)
    assert "out of luck" in outcomes.pop(5)
    assert set(outcomes.values()) == {"ok"}
    assert len(lives(tmp_path)) == 3


def test_an_engine_that_dies_again_and_again_ends_the_run(make, tmp_path):
    engine = make()
    engine.start()
    with pytest.raises(ModelError, match=r"(?s)out of luck.*Fix"):
        ask(engine, ["crash"] * 10)
    assert len(lives(tmp_path)) == MAX_DEATHS + 1


def test_a_restart_that_fails_blames_no_prompt(make, tmp_path):
    engine = make()
    engine.start()
    engine._launch[1]["STANDIN_FAILS"] = "the GPU is gone"
    with pytest.raises(ModelError, match="the GPU is gone"):
        ask(engine, ["crash once"])


@pytest.mark.full
def test_slow_work_that_shows_life_is_waited_for(make, tmp_path):
    engine = make(timeout=8.0)
    begun = time.monotonic()
    assert ask(engine, ["slow", "what?"]) == {0: "ok", 1: "ok"}
    assert time.monotonic() - begun > 8.0
    assert len(lives(tmp_path)) == 1


def test_a_refused_prompt_costs_only_itself(make):
    assert ask(make(), ["what?", "refused", "what?"]) == {0: "ok", 1: "ValueError: too long\nfor this model", 2: "ok"}


def test_an_engine_that_does_not_start_reports_the_reason(make):
    with pytest.raises(ModelError, match=r"status 1: ValueError: no such kind \(before it: RuntimeError: the f"):
        make(STANDIN_FAILS="no such kind").start()
    with pytest.raises(ModelError, match=r"engine_python .*nowhere: No such file.*Fix"):
        make(command=("/nowhere",)).start()
    with pytest.raises(ModelError, match=r"no sign of life for 0.3 s"):
        make(command=("sleep", "60"), timeout=0.3).start()


def test_closing_ends_the_process_and_the_next_call_starts_another(make, tmp_path):
    engine = make()
    engine.start()
    (first,) = lives(tmp_path)
    engine.submit(call(0, "hang"))
    engine.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert ask(engine, ["what?"]) == {0: "ok"}
    assert len(lives(tmp_path)) == 2
