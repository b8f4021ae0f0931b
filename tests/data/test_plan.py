"""Frozen sets are the same on any number of processes, made task by task or all at once."""

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from barista_bench.benchmarks import BENCHMARKS, get_task
from barista_bench.core.deriving import Candidate, GraphTask
from barista_bench.core.example import Example, SkippedExample
from barista_bench.core.options import Sampling
from barista_bench.data.folder import build
from barista_bench.data.manifest import BuiltDataset
from barista_bench.data.origin import TEST, TRAIN, split_videos
from barista_bench.data.plan import PlannedSets, plan_task, plan_tasks, task_overrides
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph import SceneGraph
from tests.graph_examples import graph_examples
from tests.releases import CUP, document, relation, write_release

TASKS = list(BENCHMARKS["barista"].task_names)
SAMPLING = {
    "frame_step": 3,
    "grounding": {"fraction": 1.0},
    "referring": {"frame_step": 5},
    "activity": {"frames": 2},
    "temporal_vqa": {"spacing": 3},
}
LIMITS = {"grounding": 17, "hand_object": 23, "referring": 9, "activity": 5, "relations": 31, "temporal_vqa": 3}


def busy(index: int) -> dict:
    """A video with examples for all six tasks, and with a frame that relations and a frame that hand_object must
    skip."""
    content = document(("capsule", "portafilter", "fully automatic")[index % 3])
    for row, name in enumerate(("Place cup", "Press button")):
        content["activities"][row]["activity_class_id"] = f"a-{row}-{index % 3}"
        content["activities"][row]["display_name"] = f"{name} {index % 3}"
    content["relations"].append(relation(CUP, "o-button", "position", "on", (2 * index, 20)))
    for annotation in content["annotations"]:
        if annotation["object_id"] == CUP and annotation["image_id"] == 6:
            annotation["segmentation"] = {"counts": "0", "size": [64, 96]}
        if annotation["object_id"] == CUP and annotation["image_id"] == 9:
            annotation["bbox"] = [50.0, 30.0, 0.01, 20.0]
    return content


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("release")
    for index in range(7):
        write_release(root, f"v{index}", busy(index))
    return root


def sampled(name: str, **changes: object) -> Sampling:
    options = {**{key: value for key, value in SAMPLING.items() if key not in TASKS}, **SAMPLING.get(name, {})}
    published = get_task("barista", name).sampling
    return published.with_overrides(
        {key: value for key, value in options.items() if key in published.names()} | changes
    )


def plans_of(root: Path, num_proc: int = 1) -> PlannedSets:
    wanted = [(get_task("barista", name), sampled(name, limit=LIMITS[name])) for name in TASKS]
    return plan_tasks(SceneGraph(root), wanted, split=split_videos, num_proc=num_proc)


@pytest.fixture(scope="module")
def plans(release: Path) -> PlannedSets:
    return plans_of(release)


@pytest.mark.full
@pytest.mark.usefixtures("ready_workers")
def test_two_processes_make_the_plan_of_one(release: Path, plans: PlannedSets) -> None:
    other = plans_of(release, num_proc=2)
    assert list(plans.by_task) == TASKS
    for name, plan in plans.by_task.items():
        assert len(plan.examples) == LIMITS[name] < plan.candidates, name
        again = other.by_task[name]
        for field in ("examples", "skipped", "candidates", "content_hash"):
            assert getattr(again, field) == getattr(plan, field)
    assert (other.splits, other.problems) == (plans.splits, plans.problems)


@pytest.mark.parametrize("name", TASKS)
def test_the_plan_is_the_draw_of_all_examples(release: Path, plans: PlannedSets, name: str) -> None:
    """Drawing candidates and building those drawn gives what building everything and drawing examples gives."""
    task, sampling = get_task("barista", name), sampled(name, limit=LIMITS[name])
    items = list(graph_examples(task, SceneGraph(release), sampling))
    every = [item for item in items if isinstance(item, Example)]
    drawn = [replace(e, metadata={**e.metadata, "split": plans.splits[e.video_id]}) for e in sampling.sample(every)]
    assert drawn == list(plans.by_task[name].examples)
    assert [item for item in items if isinstance(item, SkippedExample)] == list(plans.by_task[name].skipped)
    alone = plan_task(SceneGraph(release), task, sampling, plans.splits)
    assert alone.content_hash == plans.by_task[name].content_hash


@pytest.mark.parametrize("name", TASKS)
def test_examples_are_built_as_their_candidates_say_in_any_order(release: Path, name: str) -> None:
    task, sampling, graph = get_task("barista", name), sampled(name), SceneGraph(release)
    vocabulary = tuple(dict.fromkeys(pair for video in graph for pair in task.vocabulary(video, task.sampling)))
    video = graph["v3"]
    candidates = [item for item in task.candidates(video, sampling) if isinstance(item, Candidate)]
    in_order = list(task.build(video, candidates, vocabulary, sampling))
    assert [(e.video_id, e.frames[0].frame_index) for e in in_order] == [(c.video_id, c.frame) for c in candidates]
    assert len({e.example_id for e in in_order}) == len(candidates) > 1
    order = random.Random(3).sample(range(len(candidates)), len(candidates))
    shuffled = list(task.build(video, [candidates[i] for i in order], vocabulary, sampling))
    assert shuffled == [in_order[i] for i in order]


def test_splits_are_chosen_before_classes_are_capped(release: Path) -> None:
    """One example a class, only of test videos: caps over all videos would leave some classes to train."""
    task = get_task("barista", "referring")
    splits = {f"v{index}": TEST if index == 6 else TRAIN for index in range(7)}
    sampling = sampled("referring", per_class=1)
    everywhere = plan_task(SceneGraph(release), task, sampling, splits)
    inside = plan_task(SceneGraph(release), task, replace(sampling, splits=(TEST,)), splits)
    assert set(inside.labels()) == set(everywhere.labels())
    assert inside.video_ids == ("v6",) != everywhere.video_ids


@pytest.mark.full
@pytest.mark.usefixtures("ready_workers")
def test_an_unusable_video_is_left_out_and_named_on_any_number_of_processes(tmp_path: Path) -> None:
    for index in range(3):
        write_release(tmp_path, f"v{index}", busy(index), video=False)
    (tmp_path / "v1/coco_annotation.json").write_text("[")
    single, two = plans_of(tmp_path), plans_of(tmp_path, num_proc=2)
    assert single.problems == two.problems
    assert [problem.file for problem in single.problems if problem.file == "v1"] == ["v1"]
    assert single.by_task["relations"].examples == two.by_task["relations"].examples
    assert set(single.splits) == {"v0", "v2"}


def test_an_error_in_a_strict_release_stops_every_process(tmp_path: Path) -> None:
    content = document()
    content["annotations"][3]["object_id"] = "nobody"
    write_release(tmp_path, "v0", content, video=False)
    write_release(tmp_path, "v1", video=False)
    task = get_task("barista", "relations")
    for num_proc in (1, 2):
        with pytest.raises(DataError, match="unknown object id 'nobody'"):
            plan_tasks(
                SceneGraph(tmp_path, strict=True), [(task, task.sampling)], split=split_videos, num_proc=num_proc
            )


def test_a_task_without_examples_is_named_and_costs_no_other(tmp_path: Path) -> None:
    write_release(tmp_path, "v0", video=False)
    tasks: list[GraphTask] = [get_task("barista", name) for name in ("temporal_vqa", "relations")]
    sampled = [(task, task.sampling) for task in tasks]
    sampled[0] = (tasks[0], tasks[0].sampling.with_overrides({"spacing": 40}))
    plan = plan_tasks(SceneGraph(tmp_path), sampled, split=split_videos)
    assert list(plan.by_task) == ["relations"]
    assert str(plan.empty["temporal_vqa"]) == (
        f"{tmp_path}: no example for barista/temporal_vqa with spacing=40: there is none to ask about. "
        "Fix: loosen the sampling, or check the release"
    )


@pytest.mark.parametrize(
    ("name", "layer", "message"),
    [
        ("grounding", "activities", "no activities. Fix: give --sampling grounding.in_activities=false"),
        ("grounding", "relations", "no relations. Fix: give --sampling grounding.with_relations=false"),
        ("referring", "activities", "no activities. Fix: give --sampling referring.in_activities=false"),
        ("activity", "activities", "no activities. Fix: annotate them"),
        ("relations", "relations", "no relations. Fix: annotate them"),
        ("hand_object", "relations", "no relations. Fix: annotate them"),
    ],
)
def test_an_empty_task_names_the_missing_section_and_the_switch_that_helps(
    tmp_path: Path, name: str, layer: str, message: str
) -> None:
    write_release(tmp_path, "v0", document() | {layer: []}, video=False)
    task: GraphTask = get_task("barista", name)
    plan = plan_tasks(SceneGraph(tmp_path), [(task, task.sampling)], split=split_videos)
    assert f"the graphs record {message}" in str(plan.empty[name])


@pytest.mark.parametrize(("key", "near"), [("groundng", "grounding"), ("limitt", "limit")])
def test_the_message_about_a_mistyped_sampling_names_the_nearest_task_or_parameter(key: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean {near}"):
        task_overrides("barista", "grounding", ("grounding", "relations"), {key: {"limit": 3}})


def test_the_message_of_an_empty_task_counts_why_candidates_were_left_out(tmp_path: Path) -> None:
    """It names the settings that are not the task's own, and reasons without what tells one candidate from another."""
    content = document()
    for index, segment in enumerate(content["activities"]):
        if index:
            segment["activity_class_id"] = None
        else:
            segment["display_name"] = "grinding"
    content["activities"] += [{**content["activities"][-1], "activity_id": f"more-{i}"} for i in range(2)]
    write_release(tmp_path, "v0", content, video=False)
    task = get_task("barista", "activity")
    sampled = replace(task.sampling, limit=6, seed=7)
    empty = plan_tasks(SceneGraph(tmp_path), [(task, sampled)], split=split_videos).empty["activity"]
    count = len(content["activities"])
    assert (
        f"with limit=6, seed=7: {count} were left out: {count - 1} x has no class; 1 x is called 'grinding', "
        in str(empty)
    )
    assert "per_frame" not in str(empty)


def files(built: BuiltDataset) -> dict[str, bytes]:
    return {
        str(path.relative_to(built.folder)): path.read_bytes()
        for path in sorted(built.folder.rglob("*"))
        if path.suffix in (".jsonl", ".parquet")
    }


def hashes(built: BuiltDataset) -> dict[str, str | None]:
    return {config.name: config.content_hash for config in built.configs}


@pytest.mark.full
@pytest.mark.usefixtures("ready_workers")
def test_a_build_has_the_same_bytes_on_one_and_two_processes_elsewhere_and_listed_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(4):
        write_release(tmp_path / "root", f"v{index}", busy(index))
    sampling = SAMPLING | {"frame_step": 5, "limit": 8}
    first = build(tmp_path / "root", tmp_path / "one", sampling=sampling, cache=False)
    expected = files(first)
    assert {name for name in expected if name.startswith("frozen/")} == {f"frozen/{name}.jsonl" for name in TASKS}
    shutil.copytree(tmp_path / "root", tmp_path / "elsewhere/root")
    listed = Path.iterdir

    def shuffled(folder: Path) -> list[Path]:
        entries = sorted(listed(folder))
        random.Random(len(entries)).shuffle(entries)
        return entries

    monkeypatch.setattr(Path, "iterdir", shuffled)
    assert [path.name for path in (tmp_path / "elsewhere/root").iterdir()] != ["v0", "v1", "v2", "v3"]
    for num_proc in (1, 2):
        out = tmp_path / f"again{num_proc}"
        again = build(tmp_path / "elsewhere/root", out, sampling=sampling, cache=False, num_proc=num_proc)
        assert hashes(again) == hashes(first)
        assert files(again) == expected


@pytest.mark.full
@pytest.mark.usefixtures("ready_workers")
def test_losses_on_several_processes_are_counted_as_on_one(tmp_path: Path) -> None:
    for index in range(6):
        write_release(tmp_path / "root", f"v{index}", busy(index))
    (tmp_path / "root/v1/video.mp4").unlink()
    (tmp_path / "root/v4/video.mp4").write_bytes(b"")
    settings = {"configs": ["relations", "hand_object"], "sampling": {"frame_step": 3}, "cache": False}
    single = build(tmp_path / "root", tmp_path / "one", **settings)
    two = build(tmp_path / "root", tmp_path / "two", **settings, num_proc=2)
    for config in single.configs:
        unopened = {lost.example_id.split(":")[1] for lost in config.lost if "cannot be drawn" not in lost.reason}
        assert unopened == {"v1", "v4"}
    assert [config.lost for config in two.configs] == [config.lost for config in single.configs]
    assert [config.rows for config in two.configs] == [config.rows for config in single.configs]
    assert files(two) == files(single)


@pytest.mark.full
@pytest.mark.usefixtures("ready_workers")
def test_a_cached_build_still_knows_its_losses(tmp_path: Path, datasets_cache: Path) -> None:
    for index in range(4):
        write_release(tmp_path / "root", f"v{index}", busy(index), video=index != 2)
    first, again = (
        build(tmp_path / "root", tmp_path / "out", configs=["relations"], sampling={"frame_step": 3}, num_proc=count)
        for count in (2, 1)
    )
    assert first.configs[0].lost == again.configs[0].lost != []
