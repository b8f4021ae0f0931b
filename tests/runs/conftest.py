import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.data.folder import build
from barista_bench.runs.ask import runner
from tests import served_standin
from tests.conftest import MadeOnce, Use
from tests.made_benchmark import BENCHMARK, WORDS
from tests.served_standin import Body
from tests.video_samples import render


@pytest.fixture(scope="session")
def linked_dataset(small_release: Path, made_once: MadeOnce) -> Path:
    """The same examples, frames decoded on access."""
    settings = {"configs": ["relations"], "sampling": {"frame_step": 10}, "frames": "linked", "cache": False}
    return made_once("running_linked/barista", lambda out: build(small_release, out, **settings))


@pytest.fixture(scope="module")
def registered() -> Iterator[None]:
    """The made benchmark is one of ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BENCHMARKS, "words", BENCHMARK)
        yield


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six questions of the made benchmark; the video of one is missing."""
    root = tmp_path_factory.mktemp("words_release")
    rows = []
    for index in range(6):
        name = f"videos/clip_{index % 3}.mp4" if index < 5 else "videos/gone.mp4"
        split = "dev" if index < 2 else "test"
        rows.append({"id": index, "video": name, "split": split, "words": list(WORDS), "answer": WORDS[index % 3]})
        if index < 3:
            (root / "videos").mkdir(exist_ok=True)
            render(root / name, 6 + index)
    (root / "questions.json").write_text(json.dumps(rows))
    return root


@pytest.fixture(scope="module")
def data(registered: None, release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("words_data") / "words"
    return build(release, out, benchmark="words", cache=False).folder


@pytest.fixture
def use(loads_model: Callable[[ModuleType], Use]) -> Use:
    return loads_model(runner)


@pytest.fixture
def relations_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What servers answer has the format of relations."""

    def answer(body: Body, choice: int = 0) -> str:
        target = 2 + (int(served_standin.prompt_digest(body), 16) + choice) % 3
        return json.dumps([{"source_id": 1, "target_id": target, "relation_type": "position", "value": "part of"}])

    monkeypatch.setattr(served_standin, "expected_text", answer)
