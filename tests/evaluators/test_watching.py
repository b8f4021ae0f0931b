"""`run watch CHECKPOINTS DATA` and the callback of a Trainer: scores of a fixed part at every checkpoint."""

import csv
from pathlib import Path
from types import SimpleNamespace

import pytest

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.errors import DataError
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner, watching
from tests.evaluators.recorded import barista


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Checkpoints answer by their number: even ones A, odd ones B."""
    names: list[str] = []

    def load(config: object, tasks: object) -> ScriptedModel:
        name = Path(config.model).name  # type: ignore[attr-defined]

        def answer(example_id: str, seed: int) -> str:
            names.append(name)
            return "ANSWER: " + "AB"[int(name[-1]) % 2]

        model = ScriptedModel(name, answer)
        assert model.box_format == DEFAULT_BOX_FORMAT
        return model

    monkeypatch.setattr(runner, "load_model", load)
    return names


def checkpoint(folder: Path, number: int) -> None:
    path = folder / f"checkpoint-{number}"
    path.mkdir(parents=True)
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(b"")


def test_each_checkpoint_is_asked_once_and_the_curve_goes_on(six_tasks: Path, tmp_path: Path, asked: list[str]) -> None:
    for number in (10, 2):
        checkpoint(tmp_path / "ckpt", number)
    (tmp_path / "ckpt/checkpoint-30").mkdir()  # not complete
    words = ("run", "watch", tmp_path / "ckpt", six_tasks, "--task", "activity", "--limit", 5, "--repetitions", 1)
    barista(*words, "--out", tmp_path / "out")
    assert asked == ["checkpoint-2"] * 5 + ["checkpoint-10"] * 5
    checkpoint(tmp_path / "ckpt", 31)
    barista(*words, "--out", tmp_path / "out")
    assert asked[10:] == ["checkpoint-31"] * 5
    rows = list(csv.reader((tmp_path / "out/curve.csv").read_text().splitlines()))
    assert [row[0] for row in rows[1:]] == ["2", "10", "31"]
    assert rows[1][1] == rows[2][1]


def test_the_callback_scores_what_was_saved(six_tasks: Path, tmp_path: Path, asked: list[str]) -> None:
    pytest.importorskip("transformers")
    checkpoint(tmp_path / "ckpt", 4)
    callback = watching.trainer_callback(
        data=str(six_tasks), out=tmp_path / "out", task=("activity",), limit=3, repetitions=1
    )
    state = SimpleNamespace(is_world_process_zero=True, global_step=4, log_history=[])
    callback.on_save(SimpleNamespace(output_dir=str(tmp_path / "ckpt")), state, None)
    ((entry),) = state.log_history
    assert entry["step"] == 4
    assert 0 <= entry["barista_activity"] <= 1


def test_a_folder_without_checkpoints_is_refused(six_tasks: Path, tmp_path: Path) -> None:
    config = watching.WatchConfig(checkpoints=tmp_path, data=str(six_tasks), out=tmp_path / "out")
    with pytest.raises(DataError, match="no complete checkpoint"):
        watching.watch(config)
