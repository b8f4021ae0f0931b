from __future__ import annotations

import functools
import gc
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import typer.testing
from filelock import FileLock
from hypothesis import HealthCheck, settings

from tests.hub_standin import HubStandIn
from tests.releases import document, write_release

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from barista_bench.data.source import Source

# A busy machine is not a failure: nothing here is timed. Every run tries the same examples.
settings.register_profile(
    "any machine", max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# All commands are made of their functions once a process, and not at each call: nine tenths of the cost of a refusal.
typer.testing._get_command = functools.cache(typer.testing._get_command)  # type: ignore[attr-defined]

SHARED = Path(os.environ.get("BARISTA_SHARED") or Path(__file__).resolve().parents[2] / "shared").resolve()
"""Test data that is no part of the repository."""
# Metrics are tested in their place, as the modules that a user copies out of the repository.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "metrics"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Modules and tests live to the end: searched for garbage again and again, they cost an eighth of all time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    # A split of a few rows is two files here, and four for users: tests write and open sets a thousand times, and the
    # number of files is most of that cost. `data/test_shards.py` tests four.
    if folders := sys.modules.get("barista_bench.data.folder"):
        folders.FEWEST_SHARDS = 2  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def real_release() -> Path:
    """Real annotated clips, which some machines have beside the repository and which are never part of it."""
    folder = SHARED / "real"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: real clips are not part of this repository")
    return folder


Compared = Callable[[str, str, int], None]
_COMPARED = pytest.StashKey[list[tuple[str, str, int]]]()


@pytest.fixture
def compared(request: pytest.FixtureRequest) -> Iterator[Compared]:
    """Records the values that a test found equal to the released code's (task, kind, number), for `make fidelity`."""
    noted: list[tuple[str, str, int]] = []
    yield lambda task, what, count: noted.append((task, what, count))
    request.config.stash.setdefault(_COMPARED, []).extend(noted)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    notes = os.environ.get("FIDELITY_NOTES")
    if notes and exitstatus == pytest.ExitCode.OK:
        Path(notes).write_text(json.dumps(session.config.stash.get(_COMPARED, [])), encoding="utf-8")


@pytest.fixture(scope="session")
def golden() -> Path:
    """Outputs of the released BARISTA code; its README describes each file. Never part of this repository."""
    folder = SHARED / "golden" / "barista"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: the released code's outputs are not part of this repository")
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line that lists skipped tests and the reasons."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        listed = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"{len(skipped)} skipped: {listed}")


Use = Callable[[Any], Any]
"""Has this model loaded, whatever name is given, and returns it."""


@pytest.fixture
def loads_model(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], Use]:
    """Of a module that calls `load_model`: `use(model)` has it load this model."""

    def of(module: ModuleType) -> Use:
        def use(model: Any) -> Any:
            monkeypatch.setattr(module, "load_model", lambda *args, **kwargs: model)
            return model

        return use

    return of


@pytest.fixture
def ready_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of a command come from a server that has imported the package, which knows nothing of this process."""
    from barista_bench import cluster
    from tests.processes import PROCESSES

    monkeypatch.setattr(cluster, "get_context", lambda _: PROCESSES)


Program = Callable[..., None]
"""Writes a program into a path, of a module, or of Python itself; its commands start in milliseconds."""


@pytest.fixture(scope="session")
def write_program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    from tests.command_server import command_server, write_program

    with TemporaryDirectory() as folder, command_server(Path(folder)) as address:
        yield functools.partial(write_program, address=address)


MadeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Makes a folder for the whole session, in the first test process that needs it; no test changes it.

    A call gives its name as a path, and a function that fills the folder, which does not exist yet.
    """
    base = tmp_path_factory.getbasetemp()
    base = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made_once"

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, done, maker = base / name, base / f"{name}.made", f"{make.__module__}.{make.__qualname__}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(base / f"{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a process that failed here
                make(folder)
                done.write_text(maker)
            assert done.read_text() == maker, f"{name} is the name of two folders"
        return folder

    return made


@pytest.fixture(scope="session")
def small_release(made_once: MadeOnce) -> Path:
    """Six hand-made videos of 40 frames, two of each preparation type."""

    def make(root: Path) -> None:
        for index, preparation in enumerate(("capsule", "portafilter", "fully automatic") * 2):
            write_release(root, f"v{index}", document(preparation))

    return made_once("small_release", make)


@pytest.fixture(scope="session")
def dataset(small_release: Path, made_once: MadeOnce) -> Path:
    """24 frozen examples of relations."""
    from barista_bench.data.folder import build

    settings = {"configs": ["relations"], "sampling": {"frame_step": 10}, "cache": False}
    return made_once("small/barista", lambda out: build(small_release, out, **settings))


@pytest.fixture(scope="session")
def six_release(made_once: MadeOnce) -> Path:
    from tests.six_tasks import write_videos

    return made_once("six/release", write_videos)


@pytest.fixture(scope="session")
def six_tasks(six_release: Path, made_once: MadeOnce) -> Path:
    """A dataset of BARISTA's tasks; see `tests/six_tasks.py`."""
    from tests.six_tasks import build_tasks

    return made_once("six/barista", lambda out: build_tasks(six_release, out))


@pytest.fixture(scope="session")
def six_runs(six_tasks: Path, made_once: MadeOnce) -> Path:
    """Runs of several models over it, which every test of several tasks or models reads."""
    from tests.six_tasks import run_models

    return made_once("six/runs", lambda out: run_models(six_tasks, out))


@pytest.fixture(scope="session")
def small_kitchen(made_once: MadeOnce) -> Path:
    """Three videos of the mini kitchen, small and short: what sibling benchmarks are made from."""
    from barista_bench.mini import write_kitchen

    def make(root: Path) -> None:
        write_kitchen(root, videos=3, width=128, height=72, seconds=(6.0, 8.0), num_proc=1)

    return made_once("small/kitchen", make)


@pytest.fixture(scope="session")
def generated(small_kitchen: Path, made_once: MadeOnce) -> Callable[[str], Path]:
    """A small release of a sibling benchmark, by its name: a few questions a subtask about the small kitchen."""
    from barista_bench.generate.generator import generate

    def release(name: str) -> Path:
        return made_once(f"siblings/{name}", lambda out: generate(small_kitchen, out, [name], per_subtask=4)) / name

    return release


@pytest.fixture(scope="session")
def source_of(small_kitchen: Path, generated: Callable[[str], Path], made_once: MadeOnce) -> Callable[[str], Path]:
    """The small sources of a benchmark's sets, with examples of every task."""
    from tests.vista.made import write_small_release

    def source(name: str) -> Path:
        if name == "vista":  # the items generated for it have one environment, and each is a task
            return made_once("made/vista", write_small_release)
        return small_kitchen if name in ("barista", "extended") else generated(name)

    return source


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny encoder of sentences."""
    pytest.importorskip("torch")
    from tests.tiny_architectures import make_tiny_sentence_encoder

    return str(make_tiny_sentence_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture
def datasets_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `datasets` cache of the test's own."""
    import datasets

    cache = tmp_path / "datasets_cache"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    return cache


@pytest.fixture
def hub() -> Iterator[HubStandIn]:
    """A Hub of this machine."""
    with HubStandIn() as server:
        yield server


@pytest.fixture
def opened(hub: HubStandIn, tmp_path: Path) -> Callable[..., Source]:
    """Opens org/name of that Hub, with a cache of this test."""
    from barista_bench.data.source import open_source

    def open_it(source: str = "org/name", **options: Any) -> Source:
        return open_source(source, cache_dir=tmp_path / "cache", endpoint=hub.endpoint, **options)

    return open_it


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests: Playwright takes one at a time."""
    from playwright.sync_api import expect, sync_playwright

    from tests.reporting.browser import CHROMIUM

    assert CHROMIUM, "no browser: apt-get install chromium, or name one in the variable CHROMIUM"
    expect.set_options(timeout=120_000)  # of what never comes: a busy machine is slow
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


AXE = "axe-core-4.14.1", "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"


@pytest.fixture(scope="session")
def axe(made_once: MadeOnce) -> str:
    """The accessibility checker's script, from npm."""
    name, known = AXE

    def fetch(folder: Path) -> None:
        folder.mkdir()
        package = "axe-core@" + name.rpartition("-")[2]
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True)

    content = (made_once("axe", fetch) / f"{name}.tgz").read_bytes()
    assert hashlib.sha256(content).hexdigest() == known
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


@pytest.fixture
def decode_count(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """The number of frames that `LazyFrames` has decoded so far."""
    from barista_bench.media import lazy_frames

    decoded: list[int] = []
    read = lazy_frames.read_frames

    def counted(path: str, indices: tuple[int, ...], *, backend: str) -> object:
        images = read(path, indices, backend=backend)
        decoded.extend(indices)
        return images

    monkeypatch.setattr(lazy_frames, "read_frames", counted)
    return lambda: len(decoded)
