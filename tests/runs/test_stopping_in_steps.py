"""A task that asks on after an answer stops early too: an example counts with all its steps."""

from pathlib import Path

import pytest

from barista_bench.models.base import ScriptedModel
from barista_bench.runs.decide import order
from barista_bench.runs.score.stopping import read_decision
from tests.conftest import Use
from tests.made_benchmark import Words
from tests.one_run import run
from tests.runs.made_logs import read_folder


@pytest.mark.full
def test_every_step_of_a_block_is_answered_before_the_next_block(
    data: Path, use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "BLOCK", 2)
    monkeypatch.setattr(Words, "decided_by", "mean")
    use(ScriptedModel("wrong", lambda request, seed: "nothing"))
    settings = {"benchmark": "words", "task": "choose", "split": "test", "repetitions": 1}
    run(data, tmp_path / "out", model="wrong", until="above=0.9", alpha=0.5, **settings)
    decision = read_decision(tmp_path / "out")
    assert decision is not None
    assert decision.verdict == "below"
    finished = [record for record in read_folder(tmp_path / "out") if record.is_finished]
    assert len(finished) == decision.counted < decision.examples
    assert all(record.earlier for record in finished)
