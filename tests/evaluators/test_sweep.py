"""`run --sweep`: one command, one table and one chart over combinations of settings."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.errors import ConfigError
from barista_bench.models import Completion, GenerationConfig, ModelIdentity, Request
from barista_bench.runs.ask import runner
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


def test_one_command_one_table_one_chart(six_tasks: Path, tmp_path: Path, loads_model: object) -> None:
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
def test_what_is_no_sweep_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        list(sweep_configs(RunConfig(data="d", out=tmp_path, model="m", sweep=(text,))))
