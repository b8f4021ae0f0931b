"""Two honest runs, made once and never changed: the task scores one, and a judge scores the other."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.training_videos import videos_digest
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.data.rows import video_hashes
from barista_bench.judging import session
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner
from barista_bench.runs.score.scoring import score
from tests.conftest import MadeOnce
from tests.hub.made_results import MODEL
from tests.judging.judges import VQA, ScriptedJudge, by_hash, judged
from tests.one_run import run
from tests.releases import eventful, write_release


def run_of(
    data: Path,
    out: Path,
    task: str,
    answer: Callable[[str, int], str],
    training: frozenset[str] = frozenset(),
    *,
    model_settings: Mapping[str, Any] = MappingProxyType({}),
    **settings: object,
) -> Path:
    """A scored run of a scripted model with the name `MODEL`; two repetitions unless `settings` say otherwise.

    Args:
        training: the videos that it was trained on, as a checkpoint says it.
        model_settings: settings in its identity.
    """
    model = ScriptedModel(MODEL, answer)
    digests = {"training_videos": videos_digest(training)} if training else {}
    model.identity = replace(model.identity, settings={**model_settings, **digests})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "load_model", lambda *args, **kwargs: model)
        patch.setattr(runner, "trained_videos", lambda *args: training)
        run(data, out, task=(task,), model=MODEL, **{"repetitions": 2, **settings})
    score(out)
    return out


def some_right(data: Path, task: str) -> Callable[[str, int], str]:
    """Answers, some of them right, with different ones in the second run."""
    asked = get_task("barista", task)
    right = {
        example.example_id: asked.reference_answer(example, BoxFormat())
        for example in open_examples(data, "barista", task).examples
    }
    places = {example_id: index for index, example_id in enumerate(right)}
    return lambda example_id, seed: right[example_id] if (places[example_id] + seed % 2) % 3 else "[]"


@pytest.fixture(scope="session")
def honest_data(small_release: Path, made_once: MadeOnce) -> Path:
    settings = {"configs": ["relations"], "sampling": {"frame_step": 20}, "cache": False}
    return made_once("honest/barista", lambda out: build(small_release, out, **settings))


@pytest.fixture(scope="session")
def honest_run(honest_data: Path, made_once: MadeOnce) -> Path:
    answers = some_right(honest_data, "relations")
    return made_once("honest/run", lambda out: run_of(honest_data, out, "relations", answers))


@pytest.fixture(scope="session")
def trained_run(honest_data: Path, made_once: MadeOnce) -> Path:
    """A run of a model that was trained on its videos and on two others."""
    seen = {sha256 for hashes in video_hashes(honest_data).values() for sha256 in hashes.values()}
    training = frozenset({*seen, "0f" * 32, "ff" * 32})
    answers = some_right(honest_data, "relations")
    return made_once("honest/trained_run", lambda out: run_of(honest_data, out, "relations", answers, training))


@pytest.fixture(scope="session")
def judged_run(made_once: MadeOnce) -> Path:
    def make_data(out: Path) -> None:
        for index, preparation in enumerate(("capsule", "portafilter")):
            write_release(out / "release", f"v{index}", eventful(preparation))
        sampling = {"temporal_vqa": {"frames": 6, "spacing": 4}}
        build(out / "release", out / "barista", configs=[VQA], sampling=sampling, cache=False)

    def make_run(out: Path) -> None:
        run_of(data / "barista", out, VQA, lambda example, seed: f"Answer: {seed} {example} a cup")
        with pytest.MonkeyPatch.context() as patch:
            judge = ScriptedJudge(by_hash, name="maker/judge")
            patch.setattr(session, "load_model", lambda *args, **kwargs: judge)
            judged(out, judge.identity.name, verdicts_per_answer=2)

    data = made_once("honest/judged_data", make_data)
    return made_once("honest/judged_run", make_run)
