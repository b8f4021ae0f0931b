from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from barista_bench.data.folder import build
from barista_bench.judging import session
from barista_bench.models import Completion
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner
from tests.conftest import MadeOnce, Use
from tests.judging.judges import ScriptedJudge
from tests.one_run import run
from tests.releases import eventful, write_release


@pytest.fixture(scope="session")
def eventful_dataset(tmp_path_factory: pytest.TempPathFactory, made_once: MadeOnce) -> Path:
    """Referring and temporal VQA over three videos of 40 frames, with a change of each kind between frames 0 and 20."""
    root = tmp_path_factory.mktemp("eventful")
    for index, preparation in enumerate(("capsule", "portafilter", "fully automatic")):
        write_release(root, f"v{index}", eventful(preparation))
    sampling = {"referring": {"frame_step": 20, "per_frame": 2}, "temporal_vqa": {"frames": 6, "spacing": 4}}
    settings = {"configs": ["referring", "temporal_vqa"], "sampling": sampling, "cache": False}
    return made_once("eventful/barista", lambda out: build(root, out, **settings))


Answer = Callable[[str, int], str]


@pytest.fixture
def make_run(eventful_dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Runs a scripted model; by default each answer differs by example and run."""

    def make(task: str, answer: Answer | None = None, *, repetitions: int = 2, name: str = "student") -> Path:
        said = answer or (lambda example, seed: f"Answer: {seed} {example} a cup")
        model = ScriptedModel(name, said)
        monkeypatch.setattr(runner, "load_model", lambda *args, **kwargs: model)
        out = tmp_path / f"{task}-{name}"
        run(eventful_dataset, out, task=(task,), repetitions=repetitions, model=name)
        return out

    return make


@pytest.fixture
def use(loads_model: Callable[[ModuleType], Use]) -> Callable[[ScriptedJudge], ScriptedJudge]:
    return loads_model(session)


def never(*_: object) -> Completion:
    raise AssertionError("nobody may be asked")
