"""A model that has seen the answers of a public set is named by its guesses. A model that has not seen them is not."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner

from barista_bench.benchmarks import get_task
from barista_bench.cli.commands import app
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import content_seed
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.models.ablations import ablate
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner
from barista_bench.runs.score.comparability import Comparability
from barista_bench.runs.score.samples import counted_samples
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import GuessComparison, compare_guesses
from tests.six_tasks import write_videos
from tests.stats.made import Quiz, quiz_example, quiz_sample, video_effects

QUIZ = {"benchmark": "made", "task": "quiz", "task_version": 1, "protocol": "", "wording": "", "options": {}}


def quiz_run(label: str, right: np.ndarray, content: str) -> ScoredRun:
    """A run on a set of `right` (videos, questions of each)."""
    pairs = [(video, bool(value)) for video, row in enumerate(right) for value in row]
    samples = [quiz_sample(quiz_example(i, f"{content}{video}"), value) for i, (video, value) in enumerate(pairs)]
    results = SimpleNamespace(
        model=SimpleNamespace(label=label),
        comparability=Comparability.model_validate(
            {**QUIZ, "split": "all", "limit": None, "content_hash": content, "held": False}
        ),
        dataset=SimpleNamespace(examples=len(samples)),
        coverage=SimpleNamespace(expected=len(samples), missing=0),
    )
    counted = counted_samples(Quiz(), samples)
    return ScoredRun(Path(content, label), Quiz(), cast("Any", None), tuple(samples), cast("Any", results), counted)


def guesses(seed: int, known: float = 0.0) -> GuessComparison:
    """The guesses of a model that knows this fraction of the public answers. Both sets have 24 videos."""
    rng = np.random.default_rng(seed)
    public, private, *priors = (video_effects(rng, 24, 8) for _ in range(4))
    public = public | (rng.random(public.shape) < known)
    sides = ((public, priors[0], "public"), (private, priors[1], "private"))
    (found,) = compare_guesses(
        *([quiz_run("text_only:m", own, name), quiz_run("prior", prior, name)] for own, prior, name in sides),
        permutations=1,
    )
    return found


@pytest.mark.full
def test_equal_guesses_are_named_in_at_most_five_percent_of_200_seeds() -> None:
    assert sum(guesses(seed).is_larger_on_public for seed in range(200)) <= 10


def test_known_answers_are_named() -> None:
    assert sum(guesses(seed, known=0.9).is_larger_on_public for seed in range(10)) >= 9


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four questions about each of 24 videos."""
    folder = tmp_path_factory.mktemp("contamination")
    write_videos(folder / "release", rounds=8)
    build(folder / "release", folder / "data", configs=["activity"], sampling={"frames": 4}, cache=False)
    return folder / "data"


PUBLIC = [f"v{number}" for number in range(12)]
PRIVATE = [f"v{number}" for number in range(12, 24)]


@pytest.mark.parametrize(("known", "verdict"), [(PUBLIC, "LARGER"), ([], "not shown to be larger")])
def test_the_command_names_a_model_that_has_memorised_the_public_videos(
    known: list[str], verdict: str, videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = get_task("barista", "activity")
    by_id = {example.example_id: example for example in open_examples(videos, "barista", "activity").examples}

    def answer(request: str, seed: int) -> str:
        example = by_id[request]
        if example.video_id in known:
            return task.reference_answer(example, DEFAULT_BOX_FORMAT)
        return task.random_answer(example, random.Random(content_seed(request, seed)), DEFAULT_BOX_FORMAT)

    model = ablate(ScriptedModel("m", answer), "text_only")
    for side, chosen in (("public", PUBLIC), ("private", PRIVATE)):
        settings: dict[str, Any] = {"task": ("activity",), "videos": chosen, "repetitions": 1}
        runner.run(videos, tmp_path / side / "prior", model="prior", **settings)
        with monkeypatch.context() as patch:
            patch.setattr(runner, "load_model", lambda *args, **kwargs: model)
            runner.run(videos, tmp_path / side / "m", model="text_only:m", **settings)
    command = ("compare", "contamination", str(tmp_path / "public"))
    done = CliRunner().invoke(app, [*command, str(tmp_path / "private")])
    assert done.exit_code == 0, done.output
    assert verdict in done.output
    assert "of the same questions" in CliRunner().invoke(app, [*command, str(tmp_path / "public")]).output
