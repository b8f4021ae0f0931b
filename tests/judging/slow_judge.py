"""Judging in a separate process that can be killed; it writes down its judge's requests."""

import hashlib
import time
from pathlib import Path

from barista_bench.judging import session
from barista_bench.judging.session import judge
from barista_bench.models import Completion, Request
from tests.judging.judges import ScriptedJudge, verdict


def slow_judge(run: Path, asked: Path, pause: float, batch_size: int) -> None:
    def answer(request: Request, draw: int) -> Completion:
        with asked.open("a", encoding="utf-8") as file:
            file.write(f"{request.request_id} {request.seeds[draw]}\n")
        time.sleep(pause)
        return verdict(hashlib.sha256(f"{request.request_id} {request.seeds[draw]}".encode()).digest()[0] % 11)

    session.load_model = lambda *args, **kwargs: ScriptedJudge(answer, batch_size=batch_size)
    judge(run, "slow", verdicts_per_answer=2)
