"""The mark of a model that was trained on the run's videos comes off by no edit of the run folder."""

import json
import shutil
from pathlib import Path

import pytest

from barista_bench.errors import BaristaError, DataError
from barista_bench.runs.run_folder import CONFIG_FILE, read_run
from barista_bench.runs.score.scoring import score
from tests.hub.forging import edit, submit


@pytest.fixture
def run(trained_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained_run, tmp_path / "run"))


@pytest.mark.parametrize("said", [[], ["5f" * 32], ["ab" * 32] * 3])
def test_the_mark_is_found_again_with_any_description_of_the_run(said: list[str], run: Path) -> None:
    seen = len(read_run(run).trained_on)
    edit(run / CONFIG_FILE, "trained_on", said)
    assert score(run).results.trained_on == seen > 0
    with pytest.raises(DataError, match=rf"trained_on: the model was trained on {seen} of these videos: never ranked"):
        submit(run)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_training_videos_that_are_left_out_are_missed(kept: int, run: Path) -> None:
    edit(run / CONFIG_FILE, "training_videos", lambda videos: videos[:kept])
    edit(run / CONFIG_FILE, "trained_on", [])
    for read in (score, submit):
        with pytest.raises(DataError, match=r"run\.json: training_videos: .*digest of.*Fix"):
            read(run)


def test_a_run_without_training_marks_is_refused(run: Path) -> None:
    content = json.loads((run / CONFIG_FILE).read_text())
    del content["training_videos"], content["trained_on"]
    (run / CONFIG_FILE).write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"run\.json: training_videos: .*Fix"):
        score(run)


def test_the_digest_of_training_videos_is_part_of_the_identity_of_answers(run: Path) -> None:
    edit(run / CONFIG_FILE, "training_videos", [])
    edit(run / CONFIG_FILE, "identity.model.settings", {})
    for read in (score, submit):
        with pytest.raises(BaristaError, match="no finished sample to score"):
            read(run)


def test_an_older_run_without_the_digest_is_marked_too(run: Path, honest_run: Path) -> None:
    """It was made before identities held one."""
    described = read_run(run)
    older = Path(shutil.copytree(honest_run, run.with_name("older")))
    edit(older / CONFIG_FILE, "training_videos", described.training_videos)
    assert score(older).results.trained_on == len(described.trained_on)
