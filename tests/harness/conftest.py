from pathlib import Path

import pytest

from barista_bench.data.folder import build


@pytest.fixture(scope="module")
def dataset(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out, configs = tmp_path_factory.mktemp("harness") / "barista", ["relations", "grounding"]
    return build(small_release, out, configs=configs, sampling={"frame_step": 20}, cache=False).folder
