"""`run --sweep`: one command, one table and one chart over combinations of settings."""

import csv
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.errors import ConfigError, DataError
from barista_bench.models import Completion, GenerationConfig, ModelIdentity, Request
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner, watching
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.sweep import sweep_configs
from tests.conftest import Use
from tests.evaluators.recorded import barista


class Looker:
    box_format, batch_size = DEFAULT_BOX_FORMAT, 4

    def __init__(self) -> None:
        self.identity, self.seen = ModelIdentity("looker"), list[tuple[int, int]]()

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion]]:
        for request in requests:
            request.check_images()
            self.seen.append((len(request.images), max(max(image.size) for image in request.images)))
        return [[Completion("ANSWER: A", input_tokens=10 * len(each.images), output_tokens=3)] for each in requests]


def test_a_sweep_writes_one_table_and_one_chart(six_tasks: Path, tmp_path: Path, loads_model: object) -> None:
    use: Use = loads_model(runner)  # type: ignore[operator]
    model = Looker()
    use(model)
    words = ("run", six_tasks, "--model", "served:looker", "--task", "activity", "--repetitions", 1, "--limit", 3)
    sweep = ("--sweep", "frames=1,2,4", "--sweep", "max_side=16,32", "--out", tmp_path)
    output = barista(*words, *sweep).output
    assert sorted(set(model.seen)) == [(1, 16), (1, 32), (2, 16), (2, 32), (4, 16), (4, 32)]
    rows = list(csv.reader((tmp_path / "sweep.csv").read_text().splitlines()))
    assert len(rows) == 7
    assert "activity, frames=2,max_side=32" in output
    asked = len(model.seen)
    barista(*words, *sweep)
    assert len(model.seen) == asked  # nothing is asked again
    pytest.importorskip("matplotlib")
    assert (tmp_path / "sweep.svg").exists()


def test_settings_and_task_options_may_be_swept(tmp_path: Path) -> None:
    config = RunConfig(data="d", out=tmp_path, model="m", sweep=("temperature=0,1", "order=as_built,circular"))
    cells = dict(sweep_configs(config))
    assert len(cells) == 4
    cell = cells["temperature=1,order=circular"]
    assert (cell.temperature, cell.option) == (1.0, ("order=circular",))


@pytest.mark.parametrize("text", ["frames", "frames=", "out=a,b", "frames=x"])
def test_a_folder_that_is_no_sweep_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        list(sweep_configs(RunConfig(data="d", out=tmp_path, model="m", sweep=(text,))))


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


def test_each_checkpoint_is_asked_once_and_the_curve_continues(
    six_tasks: Path, tmp_path: Path, asked: list[str]
) -> None:
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


def test_the_callback_scores_the_saved_checkpoint(six_tasks: Path, tmp_path: Path, asked: list[str]) -> None:
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
