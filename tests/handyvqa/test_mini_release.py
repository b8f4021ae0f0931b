"""The small release made of a mini kitchen: its questions are true, and it goes all the way to scores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from barista_bench.api import evaluate
from barista_bench.benchmarks.handyvqa import BENCHMARK, HandyvqaRelease, RvosObjects, open_release
from barista_bench.benchmarks.handyvqa.mini import write_mini
from barista_bench.benchmarks.handyvqa.mini_questions import QUESTIONS, VideoQuestions
from barista_bench.core.task import Example, SkippedExample
from barista_bench.data.folder import build
from barista_bench.errors import DataError
from barista_bench.interchange.recorded_answers import import_recorded
from barista_bench.runs.score.scoring import score
from barista_bench.scene_graph import SceneGraph, decode_mask
from tests.conftest import MadeOnce
from tests.handyvqa.made import examples_of


@pytest.fixture(scope="module")
def root(small_kitchen: Path, made_once: MadeOnce) -> Path:
    return made_once("mini/handyvqa", lambda out: write_mini(small_kitchen, out))


@pytest.fixture(scope="module")
def release(root: Path) -> HandyvqaRelease:
    return open_release(root, None)


@pytest.fixture(scope="module")
def dataset(root: Path, made_once: MadeOnce) -> Path:
    settings = {"benchmark": "handyvqa", "sampling": {"frames": 4}, "cache": False}
    return made_once("built/handyvqa", lambda out: build(root, out, **settings))


def test_every_category_has_questions_and_nothing_is_wrong_with_them(release: HandyvqaRelease) -> None:
    assert not release.problems
    assert set(release.counts) == set(QUESTIONS)
    assert min(release.counts.values()) >= 3
    for task in BENCHMARK.tasks:
        found = examples_of(task(), release)
        assert not [item for item in found if isinstance(item, SkippedExample)]


def test_nothing_without_a_name_is_asked_about_or_offered(release: HandyvqaRelease) -> None:
    assert all(release.questions.values())
    for question in (one for found in release.questions.values() for one in found):
        assert not [text for text in (question.question, *question.options) if "unknown" in text]


def test_the_words_of_a_question_about_states_do_not_tell_its_answer(release: HandyvqaRelease) -> None:
    """The same two states stand in three of the wrong options."""
    assert release.questions["state"]
    for question in release.questions["state"]:
        before, after = question.options[question.correct[0]].removeprefix("From ").rstrip(".").split(" to ")
        assert {f"From {after} to {before}.", f"It stays {before}.", f"It stays {after}."} <= set(question.options)


def test_wrong_places_and_parts_are_places_and_parts_of_something(
    small_kitchen: Path, release: HandyvqaRelease
) -> None:
    known: set[str] = set()
    for video in SceneGraph(small_kitchen):
        namer = VideoQuestions(video).name
        known |= {namer(item.source) for item in video.relations() if item.value in ("part of", "attached to")}
        known |= {f"{item.value.capitalize()} the {namer(item.target)}." for item in video.relations()}
    for question in (*release.questions["parts"], *release.questions["location"]):
        assert sum(option in known for option in question.options) >= 3, question.options


def test_every_kind_of_clip_occurs(release: HandyvqaRelease) -> None:
    clips = [release.clip(question) for found in release.questions.values() for question in found]
    assert any(clip.is_folder for clip in clips)
    assert any(clip.centre_s is not None for clip in clips)
    assert any(clip.centre_s is None and not clip.is_folder for clip in clips)


@pytest.fixture(scope="module")
def touching(small_kitchen: Path) -> dict[str, list[set[tuple[str, str, str]]]]:
    """By video, then by frame: (side, verb, name) of each hand on an object."""
    found = {}
    for video in SceneGraph(small_kitchen):
        namer, frames = VideoQuestions(video).name, range(video.frame_count)
        found[video.video_id] = [{(c.side, c.value, namer(c.object)) for c in video.hand_contacts(f)} for f in frames]
    return found


def test_right_objects_are_touched_in_the_clip_and_wrong_ones_are_not(
    small_kitchen: Path, touching: dict[str, list[set[tuple[str, str, str]]]]
) -> None:
    videos = list(SceneGraph(small_kitchen))
    assert any(True for video in videos for _ in QUESTIONS["objects"](video))
    for video in videos:
        for asked in QUESTIONS["objects"](video):
            touched = {name for frame in asked.span for _, _, name in touching[video.video_id][frame]}
            assert {asked.options[place] for place in asked.correct} == touched & set(asked.options)


def test_the_right_action_is_done_in_the_clip_and_the_wrong_ones_are_not(
    small_kitchen: Path, touching: dict[str, list[set[tuple[str, str, str]]]]
) -> None:
    videos = list(SceneGraph(small_kitchen))
    assert any(True for video in videos for _ in QUESTIONS["action"](video))
    for video in videos:
        for asked in QUESTIONS["action"](video):
            facts = {fact for frame in asked.span for fact in touching[video.video_id][frame]}
            done = {f"The {side} hand {verb} the {name}." for side, verb, name in facts}
            assert [option in done for option in asked.options] == [place in asked.correct for place in range(5)]


def test_masks_are_those_of_the_objects_that_are_touched(small_kitchen: Path, release: HandyvqaRelease) -> None:
    graph = SceneGraph(small_kitchen)
    checked = 0
    for example in examples_of(RvosObjects(), release):
        assert isinstance(example, Example)
        if not example.video_id.startswith("videos/"):
            continue
        video = graph[Path(example.video_id).stem]
        (question,) = [one for one in release.questions["rvos_objects"] if one.item_id == example.example_id]
        for annotated in question.annotated:
            frame = annotated.moment.frame
            if frame is None:
                frame = round((annotated.moment.second or 0.0) * 30)
            wanted = {question.options[place] for place in annotated.options}
            named = [one for one in video.instances(frame) if VideoQuestions(video).name(one.object) in wanted]
            mask = decode_mask(annotated.mask)
            assert mask.any()
            assert not (mask & ~np.any([video.mask(one) for one in named], axis=0)).any()
            checked += 1
    assert checked >= 3


def test_the_same_kitchen_gives_the_same_annotations(small_kitchen: Path, root: Path, tmp_path: Path) -> None:
    write_mini(small_kitchen, tmp_path / "again")
    paths = sorted(root.rglob("*.json*"))
    assert paths
    for path in paths:
        assert (tmp_path / "again" / path.relative_to(root)).read_bytes() == path.read_bytes()
    with pytest.raises(DataError, match="is not empty"):
        write_mini(small_kitchen, tmp_path / "again")


@pytest.mark.full
def test_the_oracle_is_perfect_and_the_other_baselines_run(dataset: Path, tmp_path: Path) -> None:
    for model, tasks in (("oracle", "all"), ("chance", "objects,rvos_parts"), ("prior", "objects,rvos_parts")):
        found = evaluate(dataset, model, out=tmp_path / model, benchmark="handyvqa", task=tasks, runs=1)
        assert len(found.runs) == (len(BENCHMARK.tasks) if tasks == "all" else 2)
        for run in found.runs:
            figure = run.results.figures[run.task.primary]
            assert figure.mean == 1.0 if model == "oracle" else 0 <= figure.mean <= 1


@pytest.mark.parametrize("model", ["tiny", "dual:tiny"])
def test_tiny_models_answer_every_kind_of_question(dataset: Path, tmp_path: Path, model: str) -> None:
    tasks = "objects" if model == "tiny" else "action,objects"
    settings = {"benchmark": "handyvqa", "task": tasks, "option": ["max_side=32"], "max_new_tokens": 4}
    found = evaluate(dataset, model, out=tmp_path, runs=1, limit=1, **settings)
    for run in found.runs:
        assert run.results.coverage.scored == 1
        if model == "dual:tiny":
            assert all(sample.prediction is not None for sample in run.samples)


def test_options_change_what_is_shown_of_frozen_images(dataset: Path, tmp_path: Path) -> None:
    frame_wise = evaluate(
        dataset,
        "oracle",
        out=tmp_path,
        benchmark="handyvqa",
        task="rvos_objects",
        runs=1,
        option=["mode=frame_wise", "max_side=32", "truth_options=true"],
    )
    (run,) = frame_wise.runs
    assert run.results.figures["J_and_F"].mean == 1.0
    for place, example in enumerate(run.examples.examples):
        images = run.examples[place].images(run.task)
        assert len(images) == len(example.inputs["frames"])  # type: ignore[arg-type]
        assert {max(image.size) for image in images} == {32}


def test_recorded_masks_of_the_truth_score_one(root: Path, release: HandyvqaRelease, tmp_path: Path) -> None:
    records = []
    for line in (root / "rvos_parts.jsonl").read_text().splitlines():
        record = json.loads(line)
        (question,) = [one for one in release.questions["rvos_parts"] if one.item_id == record["id"]]
        if all(frame.moment.frame is not None for frame in question.annotated):
            masks = [
                {"frame": frame.moment.frame, "rle": {"size": frame.mask.size, "counts": frame.mask.counts}}
                for frame in question.annotated
            ]
            records.append({**record, "inference": {"masks": masks}})
    assert records
    (tmp_path / "said").mkdir()
    path = tmp_path / "said/rvos_parts.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder,) = import_recorded(path, tmp_path / "runs", "handyvqa_rvos")
    scored = score(folder)
    assert scored.results.figures["J_and_F"].mean == 1.0
    assert scored.results.coverage.scored == len(records)
