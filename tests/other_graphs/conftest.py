from __future__ import annotations

from pathlib import Path

import pytest

from barista_bench.other_graphs.importing import import_graphs
from tests.conftest import MadeOnce
from tests.other_graphs.stand_ins import write_pvsg, write_visor


@pytest.fixture(scope="session")
def pvsg(small_kitchen: Path, made_once: MadeOnce) -> Path:
    """The small kitchen as PVSG."""
    return made_once("other_graphs/pvsg", lambda root: write_pvsg(small_kitchen, root))


@pytest.fixture(scope="session")
def visor(small_kitchen: Path, made_once: MadeOnce) -> Path:
    """The small kitchen as VISOR."""
    return made_once("other_graphs/visor", lambda root: write_visor(small_kitchen, root))


@pytest.fixture(scope="session")
def graphs(pvsg: Path, visor: Path, made_once: MadeOnce) -> dict[str, Path]:
    """Both as graphs, by the name of the reader."""
    made = {"pvsg": pvsg, "visor": visor}
    return {
        name: made_once(f"other_graphs/{name}_graphs", lambda out, name=name, root=root: import_graphs(name, root, out))
        for name, root in made.items()
    }
