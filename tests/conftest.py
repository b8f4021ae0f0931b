from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.releases import document, write_release

# A busy machine is no failure: nothing here is timed.
settings.register_profile("any machine", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def real_release() -> Path:
    """Real annotated clips, which lie beside the repository on some machines and are never part of it."""
    folder = SHARED / "real"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: real clips are not part of this repository")
    return folder


@pytest.fixture(scope="session")
def small_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six hand-made videos of 40 frames, two of each preparation type."""
    root = tmp_path_factory.mktemp("small_release")
    for index, preparation in enumerate(("capsule", "portafilter", "fully automatic") * 2):
        write_release(root, f"v{index}", document(preparation))
    return root


@pytest.fixture(scope="session")
def small_kitchen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three videos of the mini kitchen, small and short: what sibling benchmarks are made from."""
    from barista_bench.mini import write_kitchen

    root = tmp_path_factory.mktemp("small_kitchen") / "kitchen"
    write_kitchen(root, videos=3, width=128, height=72, seconds=(6.0, 8.0), num_proc=1)
    return root


@pytest.fixture
def datasets_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `datasets` cache of the test's own."""
    import datasets

    cache = tmp_path / "datasets_cache"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    return cache
