"""The checkpoints in the package: their size limit, and their training videos."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer

from barista_bench.aids.levels import LEVELS
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.model_names import EMBEDDED
from barista_bench.core.training_videos import TrainingVideos
from barista_bench.data.folder import build
from barista_bench.media.video.frame_folder import video_sha256
from barista_bench.mini import plan_kitchen, write_video
from barista_bench.mini.kitchen import write_kitchen
from barista_bench.models.local.loading import checkpoint_of
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.scoring import score
from barista_bench.training.exporting import export_training_set
from tests.one_run import run

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 8 * 10**6
TRAINED_SEED, TRAINED_SIZE = 201, (320, 180)
"""Seed and size of a kitchen of scripts/kitchen.sh."""
ASKED = {"repetitions": 1, "temperature": 0, "max_new_tokens": 256, "batch_size": 16, "progress": False}


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_checkpoint_is_small_and_names_its_training_videos(name: str, small_kitchen: Path) -> None:
    folder = Path(checkpoint_of(name))
    assert (folder / "model.safetensors").stat().st_size <= MOST_BYTES
    training = TrainingVideos.read(folder)
    assert training.box_format == "xyxy/100"
    asked = {video_sha256(path) for path in small_kitchen.glob("*/video.mp4")}
    assert asked
    assert not asked & training.videos


def test_kitchens_of_make_run_and_tests_have_other_seeds_than_the_training() -> None:
    """At any size: another size changes the hash by which the leak rule knows a video."""
    recipe = re.findall(
        r"^(?:kitchens=')?[rs]\d+ (\d+) (\d+) \d+ \d+'?$", (ROOT / "scripts/kitchen.sh").read_text(), re.M
    )
    trained = {int(seed) for seed, _ in recipe}
    of_make = re.findall(r"barista-bench mini (.*)", (ROOT / "Makefile").read_text())
    assert of_make
    rendered = {int(seed[1]) if (seed := re.search(r"--seed (\d+)", line)) else 0 for line in of_make}
    for path in (ROOT / "tests").rglob("*.py"):
        calls = re.findall(r"(?:write|plan)_kitchen\(([^()]*)", path.read_text())
        rendered |= {int(seed[1]) for call in calls if (seed := re.search(r"\bseed=(\d+)", call))}
    assert {0, 7} <= rendered
    assert not trained & rendered
    for name in EMBEDDED:
        assert len(TrainingVideos.read(Path(checkpoint_of(name))).videos) == sum(int(videos) for _, videos in recipe)


@pytest.mark.full
def test_a_run_on_a_kitchen_that_it_was_trained_on_says_so(tmp_path: Path) -> None:
    width, height = TRAINED_SIZE
    (tmp_path / "videos").mkdir()
    write_video(plan_kitchen(videos=1, seed=TRAINED_SEED, width=width, height=height)[0], tmp_path / "videos")
    build(tmp_path / "videos", tmp_path / "data", configs=("grounding",), sampling={"limit": 2}, cache=False)
    run(tmp_path / "data", tmp_path / "run", task="grounding", model="text_only:kitchen", **ASKED)
    assert score(tmp_path / "run").results.trained_on == 1
    assert len(read_run(tmp_path / "run").training_videos) > 1


BOUNDS = {
    "grounding": (0.05, 0.17),
    "hand_object": (0.28, 0.5),
    "referring": (0.72, 0.9),
    "activity": (0.9, 1),
    "relations": (0.67, 0.85),
    "temporal_vqa": (0.93, 1),
}
"""Bounds on three videos that it has not seen: .113, .426, .817, 1, .767 and .978 when this was written."""


@pytest.fixture(scope="module")
def metric_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., float]:
    """The primary metric of a model in a task, on three videos that `kitchen` has not seen. It may be given an aid."""
    folder = tmp_path_factory.mktemp("unseen")
    write_kitchen(folder / "videos", videos=3, seed=7, num_proc=1)
    build(folder / "videos", folder / "data", sampling={"limit": 24}, cache=False, progress=False)

    def asked(model: str, task: str, aid: str = "") -> float:
        out = folder / f"{model}{aid}".replace(":", "-") / task
        if not out.exists():
            run(folder / "data", out, task=task, model=model, aid=aid, **ASKED)
        results = score(out).results
        return round(results.metrics[results.primary].mean, 3)

    return asked


@pytest.mark.full
def test_the_scores_of_kitchen_stay_within_their_bounds(metric_of: Callable[..., float]) -> None:
    """A change of prompt, decoding, picture or parser that costs it is seen here."""
    metrics = {task: metric_of("kitchen", task) for task in BOUNDS}
    assert {task: metrics[task] for task, (low, high) in BOUNDS.items() if not low <= metrics[task] <= high} == {}, (
        metrics
    )


@pytest.mark.full
def test_kitchen_reads_the_aids_of_a_diagnosis(metric_of: Callable[..., float]) -> None:
    """Without training, a longer prompt left .02 of its score in referring."""
    assert metric_of("kitchen", "referring", "relations") > 0.7
    assert metric_of("kitchen", "relations", "objects") > 0.5


@pytest.mark.full
def test_the_first_four_things_that_the_tutorial_says_of_the_models_are_true(metric_of: Callable[..., float]) -> None:
    kitchen = {task: metric_of("kitchen", task) for task in ("hand_object", "referring", "temporal_vqa")}
    for task in ("hand_object", "temporal_vqa"):
        assert metric_of("kitchen_early", task) < kitchen[task] - 0.2, "1: which is better"
    assert metric_of("text_only:kitchen", "hand_object") < kitchen["hand_object"] - 0.2, "2: it looks"
    assert kitchen["referring"] / 3 < metric_of("text_only:kitchen", "referring") < kitchen["referring"], "3: words"
    assert metric_of("shuffled_frames:kitchen", "temporal_vqa") < kitchen["temporal_vqa"] - 0.1, "4: order"
    assert metric_of("shuffled_frames:kitchen", "hand_object") == kitchen["hand_object"], "4: one frame has none"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """scripts/train_kitchen.py as a module, with the modules beside it."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    before = set(sys.modules)
    import train_kitchen

    yield train_kitchen
    for name in set(sys.modules) - before:
        if name.startswith(("kitchen_", "train_kitchen")):
            del sys.modules[name]


class Killed(Exception):
    """In place of a signal."""


@pytest.fixture
def train(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Train into a folder of tmp_path for few steps; killed at the given number of optimizer steps."""
    write_kitchen(
        tmp_path / "videos", videos=2, seed=7, width=128, height=72, seconds=(3, 4), num_proc=1, progress=False
    )
    videos = sorted(path.parent.name for path in tmp_path.glob("videos/*/video.mp4"))
    (tmp_path / "split.json").write_text(json.dumps({"train": videos, "test": []}))
    build(
        tmp_path / "videos",
        tmp_path / "data",
        configs=("grounding", "activity"),
        split_file=tmp_path / "split.json",
        sampling={"limit": 20},
        cache=False,
        progress=False,
    )
    export_training_set(tmp_path / "data", tmp_path / "chats", "chat", box_format=BoxFormat.parse("xyxy/100"))
    given = (
        "--tower-steps 5 --drill-steps 2 --steps 6 --early 4 --batch 4 --drill 2 --kitchens videos --chats chats --out"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kitchen_loop.SAVE_SECONDS", 0)
    step = script.torch.optim.AdamW.step

    def main(out: str, kill_at: int) -> None:
        left = iter(range(kill_at))

        def counted(*args: object, **named: object) -> object:
            if next(left, None) is None:
                raise Killed
            return step(*args, **named)

        monkeypatch.setattr("torch.optim.AdamW.step", counted)
        monkeypatch.setattr("sys.argv", ["train_kitchen.py", *given.split(), out])
        script.main()

    return main


@pytest.mark.full
def test_the_same_data_give_the_same_bytes_and_so_does_a_training_that_was_killed_thrice(
    train: Callable[[str, int], None], tmp_path: Path
) -> None:
    train("whole", 100)
    for kill_at in (3, 3, 5):  # in the tower; in the drills after its other steps; then in the chats
        with pytest.raises(Killed):
            train("killed", kill_at)
    train("killed", 100)
    for name in ("model", "early"):
        written = {path.name: path.read_bytes() for path in (tmp_path / "whole" / name).iterdir()}
        assert "model.safetensors" in written
        assert written == {path.name: path.read_bytes() for path in (tmp_path / "killed" / name).iterdir()}
    of_two_steps = [(tmp_path / "whole" / name / "model.safetensors").read_bytes() for name in ("model", "early")]
    assert of_two_steps[0] != of_two_steps[1]


@pytest.mark.full
def test_a_training_with_aids_starts_from_all_that_the_checkpoint_knows(
    train: Callable[[str, int], None], script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train("whole", 100)
    shutil.copytree(tmp_path / "chats", tmp_path / "chats-true")
    given = "--start whole/model --chats chats chats-true --out aided --steps 1 --batch 2 --drill 1 --rate 0"
    monkeypatch.setattr("sys.argv", ["train_kitchen.py", *given.split()])
    script.main()
    before, after = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "aided"))
    assert before.keys() == after.keys()
    for name, weights in before.items():
        assert torch.equal(after[name][: len(weights)], weights), name
    known, aided = (AutoTokenizer.from_pretrained(tmp_path / name / "model") for name in ("whole", "aided"))
    plain, heading = "Find everything that fits this phrase", LEVELS["states"].heading
    assert aided.tokenize(plain) == known.tokenize(plain)
    assert len(aided.tokenize(heading)) == 1 < len(known.tokenize(heading))
    assert (tmp_path / "aided/model/training_videos.json").read_bytes() == (
        tmp_path / "whole/model/training_videos.json"
    ).read_bytes()
