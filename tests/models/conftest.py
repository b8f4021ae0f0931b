"""Tiny models that the tests of the transformers runner share; torch is imported where a test asks for one."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barista_bench.models.local.model import TransformersModel

FAMILIES = ("gemma3", "llava", "idefics3")


@pytest.fixture(scope="session")
def one_thread() -> Iterator[None]:
    """Tiny tensors gain nothing from threads, and other tests need the cores."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folders(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pytest.importorskip("transformers")
    from tests.tiny_architectures import make_tiny_model

    root = tmp_path_factory.mktemp("tiny")
    return {family: make_tiny_model(root / family, family) for family in FAMILIES}


@pytest.fixture
def copy(folders: dict[str, Path], tmp_path: Path) -> Path:
    """The tiny Gemma 3 in a folder of the test's own."""
    return Path(shutil.copytree(folders["gemma3"], tmp_path / "copy"))


@pytest.fixture(scope="session")
def loaded(folders: dict[str, Path]) -> dict[str, "TransformersModel"]:
    from barista_bench.models.local.model import TransformersModel

    return {family: TransformersModel.load(str(folder)) for family, folder in folders.items()}


@pytest.fixture(params=[FAMILIES[0], *(pytest.param(family, marks=pytest.mark.full) for family in FAMILIES[1:])])
def any_model(request: pytest.FixtureRequest, loaded: dict[str, "TransformersModel"]) -> "TransformersModel":
    return fresh(loaded[request.param])


@pytest.fixture
def model(loaded: dict[str, "TransformersModel"]) -> "TransformersModel":
    return fresh(loaded["gemma3"])


@pytest.fixture(scope="session")
def zoo(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a tiny checkpoint of a model type."""
    pytest.importorskip("transformers")
    from tests import checkpoint_zoo

    root = tmp_path_factory.mktemp("zoo")

    def checkpoint(model_type: str) -> str:
        folder = root / model_type
        return str(folder if folder.is_dir() else checkpoint_zoo.build(model_type, folder))

    return checkpoint


def fresh(model: "TransformersModel") -> "TransformersModel":
    """The model without what earlier tests taught it of its memory, and with batches that are checked already."""
    from barista_bench.models.local.batch_check import BatchCheck
    from barista_bench.models.local.batching import BatchBudget

    model._engine.budget, model._engine.batch_check = BatchBudget(8), BatchCheck(0.0, 0.001, has_images=True)
    return model


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls to a server that failed are tried again almost at once."""
    from barista_bench.models.served import client as served_client

    monkeypatch.setattr(served_client, "_FIRST_BACKOFF", 0.01)
