"""`--batch-api`: one answer a sample and nothing paid twice, through any kill."""

import json
import random
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from signal import SIGKILL
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from barista_bench.errors import BudgetError, ConfigError, ModelError
from barista_bench.models.served import batches
from barista_bench.models.served.model import ServedModel
from barista_bench.runs.score.scoring import score
from tests.evaluators.batch_standin import BatchServer, listening
from tests.one_run import run
from tests.served_standin import ServedStandIn

pytestmark = pytest.mark.usefixtures("relations_answers")
URL = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "POLL", 0)
    monkeypatch.setattr(batches, "MOST_LINES", 10)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> BatchServer:
    server, client = BatchServer(), httpx2.Client
    monkeypatch.setattr(
        batches.httpx2, "Client", lambda **settings: client(transport=server, base_url=settings["base_url"])
    )
    return server


def ask(data: Path, folder: Path, url: str = URL, **settings: Any) -> None:
    run(data, folder, **{"model": "served:m", "base_url": url, "repetitions": 2, "batch_api": True, **settings})


def answers(folder: Path) -> dict[tuple[str, int], str]:
    records = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    finished = [each for each in records if each["status"] != "infra_error"]
    by_name = {(each["example_id"], each["repetition"]): each["text"] for each in finished}
    assert len(by_name) == len(finished)
    return by_name


def test_the_same_answers_statuses_and_tokens_as_live_calls(dataset: Path, tmp_path: Path, server: BatchServer) -> None:
    ask(dataset, tmp_path / "batch")
    assert len(server.batches) == 5  # of 48 samples, 10 a file
    with ServedStandIn() as live:
        ask(dataset, tmp_path / "live", live.url, batch_api=False, omit=[])
    batch, served = (score(tmp_path / name).results for name in ("batch", "live"))
    assert answers(tmp_path / "batch").keys() == answers(tmp_path / "live").keys()
    assert batch.coverage == served.coverage
    assert batch.timing.output_tokens == 7 * 48


@pytest.mark.parametrize("seed", range(10))
def test_killed_at_random_points_of_submit_poll_and_collect(dataset: Path, tmp_path: Path, seed: int) -> None:
    server, rng = BatchServer(), random.Random(seed)
    kills = [(call, rng.random() < 0.5) for call in sorted(rng.sample(range(1, 24), 3))]
    ended = []

    def kill(method: str, path: str, place: str) -> None:
        if kills and (server.calls, place == "after") >= kills[0]:
            kills.pop(0)
            asking.kill()
            raise ConnectionError("the client is gone")

    server.on_call = kill
    with listening(server) as url:
        while 0 not in ended:
            asking = get_context("fork").Process(target=ask, args=(dataset, tmp_path / "run", url))
            asking.start()
            asking.join()
            ended.append(asking.exitcode)
    assert ended == [-SIGKILL] * 3 + [0]
    assert len(answers(tmp_path / "run")) == 48
    assert len(server.paid) == 48
    assert set(server.paid.values()) == {1}


def test_failed_requests_are_asked_again_one_by_one(dataset: Path, tmp_path: Path, server: BatchServer) -> None:
    tries = Counter[str]()

    def refuse(custom_id: str) -> int | None:
        tries[custom_id] += 1
        return (429 if tries[custom_id] == 1 else None) if int(custom_id[0], 16) < 5 else None

    server.refuses = refuse
    ask(dataset, tmp_path / "run")
    assert len(answers(tmp_path / "run")) == 48
    assert set(server.paid.values()) == {1}
    assert sum(count == 2 for count in tries.values()) == sum(int(name[0], 16) < 5 for name in tries)


def test_a_pause_is_as_long_as_the_server_asks_and_none_follows_the_last_attempt(
    dataset: Path, tmp_path: Path, server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(batches, "POLL", 1)
    monkeypatch.setattr(batches, "time", SimpleNamespace(sleep=pauses.append, time_ns=lambda: 0))
    busy = httpx2.Response(429, headers={"retry-after": "7"}, json={"error": {"message": "wait"}})
    monkeypatch.setattr(server, "handle_request", lambda request: busy)
    with pytest.raises(ModelError, match="start the same command again"):
        ask(dataset, tmp_path / "busy", max_attempts=3)
    assert pauses == [7.0, 7.0]


def test_a_request_that_always_fails_is_asked_again_at_the_next_start(
    dataset: Path, tmp_path: Path, server: BatchServer
) -> None:
    server.refuses = lambda custom_id: 500
    ask(dataset, tmp_path / "run", limit=2, max_attempts=2)
    assert answers(tmp_path / "run") == {}
    server.refuses = lambda custom_id: None
    ask(dataset, tmp_path / "run", limit=2, max_attempts=2)
    assert len(answers(tmp_path / "run")) == 4


def test_batches_stop_at_the_limit_of_tokens(dataset: Path, tmp_path: Path, server: BatchServer) -> None:
    with pytest.raises(BudgetError):
        ask(dataset, tmp_path / "run", max_tokens_total=3000, max_new_tokens=100)
    assert 0 < sum(server.paid.values()) * 107 <= 3000
    ask(dataset, tmp_path / "run", max_tokens_total=10**6, max_new_tokens=100)
    assert len(answers(tmp_path / "run")) == 48
    assert set(server.paid.values()) == {1}


def test_a_lost_reply_to_a_submission_makes_no_second_batch(dataset: Path, tmp_path: Path, server: BatchServer) -> None:
    lost = iter([True])

    def lose(method: str, path: str, place: str) -> None:
        if (method, path, place) == ("POST", "/batches", "after") and next(lost, False):
            raise httpx2.ReadError("gone")

    server.on_call = lose
    ask(dataset, tmp_path / "run", limit=4)
    assert len(server.batches) == 1
    assert set(server.paid.values()) == {1}


def test_a_model_without_a_run_folder_is_refused() -> None:
    from barista_bench.models import GenerationConfig

    with pytest.raises(ConfigError, match="run folder"):
        list(ServedModel.load("m", base_url=URL, batch_api=True).stream([], GenerationConfig()))


def test_a_reply_above_the_limit_ends_the_run(
    dataset: Path, tmp_path: Path, server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MOST_REPLY", 8)
    with pytest.raises(ModelError, match="POST /files is too large"):
        ask(dataset, tmp_path / "run")
