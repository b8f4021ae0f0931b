"""A model's own answers in place of the truth: the cost of propagated errors."""

from pathlib import Path

import pytest

from barista_bench.diagnosis.running import DiagnoseConfig, diagnose
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.ask import runner
from tests.diagnosis.test_diagnose import Reader

LIMIT = 6


def _config(data: Path, out: Path, run: Path) -> DiagnoseConfig:
    settings = {"task": ("relations",), "model": "reader", "limit": LIMIT, "workers": 1}
    return DiagnoseConfig(data=str(data), out=out, own=(f"objects={run}",), **settings)


def _answered(file: Path, data: Path, out: Path, model: str) -> Path:
    runner.run(file, out, task="grounding", model=model, repetitions=1, root=data.parent / "kitchen")
    return out / "grounding"


@pytest.mark.full
@pytest.mark.parametrize(("upstream", "most"), [("oracle", 0.001), ("chance", 1.0)])
def test_own_answers_as_aids_lower_the_score_by_their_errors(
    upstream: str, most: float, kitchen_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, run = tmp_path / "diagnosis", tmp_path / "own/grounding"
    with pytest.raises(DataError, match=r"the questions are in .*jsonl. Fix: run `barista-bench run "):
        diagnose(_config(kitchen_data, out, run))
    _answered(tmp_path / "diagnosis-relations-questions.jsonl", kitchen_data, run.parent, upstream)
    monkeypatch.setattr(runner, "load_model", lambda *_: Reader(kitchen_data))
    (found,) = diagnose(_config(kitchen_data, out, run))
    (own,) = found.own
    assert own.examples == LIMIT
    assert own.before.value == 1
    assert own.change.value is not None
    assert -most <= own.change.value <= 0
    assert (own.change.value < -0.5) == (upstream == "chance")


@pytest.mark.full
def test_own_answers_are_part_of_the_runs_identity(kitchen_data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        diagnose(_config(kitchen_data, tmp_path / "d", tmp_path / "own/grounding"))
    file = tmp_path / "d-relations-questions.jsonl"
    runs = [_answered(file, kitchen_data, tmp_path / name, name) for name in ("oracle", "centre_box")]
    settings = {"task": "relations", "model": "prior", "repetitions": 1, "limit": LIMIT}
    runner.run(kitchen_data, tmp_path / "aided", aid=f"objects={runs[0]}", **settings)
    with pytest.raises(ConfigError, match="use another --out"):
        runner.run(kitchen_data, tmp_path / "aided", aid=f"objects={runs[1]}", **settings)
