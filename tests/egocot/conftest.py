from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.benchmarks.egocot.cot import Cot, CotSampling
from barista_bench.benchmarks.egocot.release import EgocotRelease, open_release
from barista_bench.core.example import Example
from tests.conftest import SHARED


@pytest.fixture(scope="session")
def mini_root(generated: Callable[[str], Path]) -> Path:
    """A release in the benchmark's format, of a few questions a subtask."""
    return generated("egocot")


@pytest.fixture(scope="session")
def mini_release(mini_root: Path) -> EgocotRelease:
    return open_release(mini_root)


@pytest.fixture(scope="session")
def mini_examples(mini_release: EgocotRelease) -> list[Example]:
    items = list(Cot().examples(mini_release, CotSampling(frames=4)))
    return [example for example in items if isinstance(example, Example)]


@pytest.fixture(scope="session")
def dev(mini_examples: list[Example]) -> list[Example]:
    return [example for example in mini_examples if example.metadata["split"] == "dev"]


@pytest.fixture(scope="session")
def hidden(mini_examples: list[Example]) -> list[Example]:
    return [example for example in mini_examples if example.metadata["split"] == "test"]


@pytest.fixture(scope="session")
def page_folder() -> Path:
    """The records of the benchmark's page, which some machines have beside the repository."""
    folder = SHARED / "data" / "egocot"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: the page's records are not part of this repository")
    return folder
