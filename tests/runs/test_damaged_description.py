"""A damaged `run.json` costs no answer: whose the answers are, their keys and the list of questions say."""

import json
import random
import shutil
from pathlib import Path

import pytest

from barista_bench.errors import BaristaError, ConfigError
from barista_bench.runs.run_folder import CONFIG_FILE, claim, read_run
from barista_bench.runs.score.scoring import score
from tests.one_run import run

SETTINGS = {"task": "relations", "model": "chance", "repetitions": 2, "limit": 4}


@pytest.fixture(scope="session")
def whole(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    run(dataset, out, **SETTINGS)
    return out


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def flip(path: Path, at: int) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[at // 8] ^= 1 << at % 8
    path.write_bytes(content)


def start_again(dataset: Path, folder: Path) -> None:
    """The same command asks nothing, and leaves the folder as it was."""
    done = run(dataset, folder, **SETTINGS)
    assert (done.asked, done.already_done) == (0, 8)


PLACES = [
    *('"temperature"', '"content_hash"', '"name"', '"split"', '"limit"', '"prompts_hash"', '"repetitions"'),
    *("{", "protocol", "benchmark"),
]


@pytest.mark.parametrize("place", PLACES)
def test_after_a_flipped_bit_the_same_command_keeps_all_answers(
    place: str, dataset: Path, whole: Path, folder: Path
) -> None:
    path = folder / CONFIG_FILE
    before = path.read_bytes()
    for offset in (1, 7 + len(place), 8 + len(place)):  # in the name, and in the value
        path.write_bytes(before)
        flip(path, 8 * (before.index(place.encode()) + offset))
        refusal = ""
        try:
            score(folder)
        except BaristaError as error:
            refusal = str(error)
        assert "another --out" not in refusal
        start_again(dataset, folder)
        assert json.loads(path.read_text()) == json.loads(before)
    assert score(folder).results.metrics == score(whole).results.metrics


@pytest.mark.full
def test_no_flipped_bit_costs_an_answer(dataset: Path, folder: Path) -> None:
    path = folder / CONFIG_FILE
    before = path.read_bytes()
    for at in random.Random(3).sample(range(8 * len(before)), 40):
        path.write_bytes(before)
        flip(path, at)
        start_again(dataset, folder)


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, None])
def test_a_description_that_is_lost_is_written_again(content: bytes | None, dataset: Path, folder: Path) -> None:
    path = folder / CONFIG_FILE
    before = path.read_bytes()
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(BaristaError, match="start the run with the same command again, which keeps its answers"):
        score(folder)
    start_again(dataset, folder)
    assert path.read_bytes() == before


@pytest.mark.parametrize("change", [{"limit": 5}, {"temperature": 0.3}, {"model": "oracle"}, {"model": "prior"}])
def test_answers_of_another_run_are_not_taken_for_this_one(
    change: dict[str, object], dataset: Path, folder: Path
) -> None:
    for content in (None, b"", b"{}"):
        if content is not None:
            (folder / CONFIG_FILE).write_bytes(content)
        with pytest.raises(ConfigError, match="Fix: use another --out"):
            run(dataset, folder, **{**SETTINGS, **change})


def test_fields_that_the_answers_do_not_show_are_believed(folder: Path) -> None:
    """The protocol is in no key."""
    other = read_run(folder).model_copy(update={"protocol": "paper"})
    with pytest.raises(ConfigError, match=r"protocol 'release', not 'paper'.*Fix: use another --out"):
        claim(folder, other, lambda: True)
