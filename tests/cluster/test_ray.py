"""A Ray cluster of several nodes: a fault of any node loses, doubles and changes nothing."""

import re
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.annotate.decisions import accept
from barista_bench.annotate.project import Project, start_project
from barista_bench.annotate.running import run as run_stages
from barista_bench.cluster import RayCluster
from barista_bench.core.status import Status
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.errors import ClusterError
from barista_bench.generate.generator import generate
from barista_bench.judging.session import judge
from barista_bench.runs.log.sample_log import LOG_FILE, SampleRecord, read_records
from barista_bench.runs.score.scoring import score
from tests.annotate.projects import contents
from tests.annotate.test_pipeline import masks_of
from tests.cluster.ray_nodes import LocalCluster
from tests.conftest import MadeOnce
from tests.one_run import run
from tests.releases import document, write_release

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
ROOT = Path(__file__).resolve().parents[2]
TINY = {"model": "tiny", "max_new_tokens": 8, "temperature": 0.0, "batch_size": 4, "device": "cpu"}

POISONED = """
from barista_bench.models.base import ScriptedModel

generate = ScriptedModel.generate

def ending(self, requests, config):
    if any({poison!r} in request.request_id for request in requests):
        import os
        os._exit(1)
    return generate(self, requests, config)

ScriptedModel.generate = ending
"""


@pytest.fixture(scope="session")
def many_videos(made_once: MadeOnce) -> Path:
    def make(root: Path) -> None:
        for number in range(250):
            write_release(root, f"v{number:03d}", document())

    return made_once("many_videos", make)


@pytest.fixture(scope="session")
def linked(many_videos: Path, made_once: MadeOnce) -> Path:
    """10,000 examples of 250 videos."""
    settings = {"configs": ["relations"], "frames": "linked", "cache": False}
    settings["sampling"] = {"frame_step": 1, "limit": 10_000}
    return made_once("many/barista", lambda out: build(many_videos, out, **settings))


def lines(folder: Path) -> int:
    path = folder / LOG_FILE
    return path.read_bytes().count(b"\n") if path.exists() else 0


def answers(folder: Path) -> dict[tuple[str, int], tuple[str, str, Status, str | None]]:
    """Records by example and repetition, of a log that has one record of each."""
    records: list[SampleRecord] = list(read_records(folder / LOG_FILE))
    assert max(Counter((r.example_id, r.repetition) for r in records).values()) == 1
    return {(r.example_id, r.repetition): (r.key, r.fingerprint, r.status, r.text) for r in records}


@pytest.mark.parametrize(
    ("settings", "count", "killed_after"),
    [({"model": "chance"}, 10_000, 3_000), ({**TINY, "limit": 200}, 200, 40)],
    ids=["10000 by a scripted model", "200 by a tiny checkpoint"],
)
def test_after_a_node_is_killed_each_answer_is_there_once(
    settings: dict, count: int, killed_after: int, cluster: LocalCluster, linked: Path, tmp_path: Path
) -> None:
    run(linked, tmp_path / "here", repetitions=1, **settings)
    out = tmp_path / "there"
    with cluster.killing(lambda: lines(out) > killed_after) as killed:
        session = run(linked, out, repetitions=1, cluster=cluster.address, **settings)
        assert killed.is_set()
    assert (session.asked, session.failed) == (count, 0)
    assert answers(out) == answers(tmp_path / "here")
    assert len(answers(out)) == count
    assert run(linked, out, repetitions=1, **settings).asked == 0
    assert score(out).results.metrics == score(tmp_path / "here").results.metrics


@pytest.mark.parametrize("frames", ["frozen", "linked"])
def test_a_dataset_has_the_same_bytes_though_a_node_is_killed(
    frames: str, cluster: LocalCluster, many_videos: Path, tmp_path: Path
) -> None:
    configs, sampling = ["relations", "graph_instances"], {"frame_step": 8}
    settings = {"configs": configs, "sampling": sampling, "frames": frames, "cache": False}
    here = build(many_videos, tmp_path / "here/barista", **settings)
    with cluster.killing(after_a_second()) as killed:
        there = build(many_videos, tmp_path / "there/barista", cluster=cluster.address, **settings)
        assert killed.is_set()
    assert [config.rows for config in there.configs] == [config.rows for config in here.configs]
    assert files(there.folder) == files(here.folder)


def after_a_second() -> Callable[[], bool]:
    """A condition that holds before the first result: a node takes longer to import its modules."""
    begun = time.monotonic()
    return lambda: time.monotonic() - begun > 1


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_generated_questions_have_the_same_bytes(cluster: LocalCluster, small_kitchen: Path, tmp_path: Path) -> None:
    generate(small_kitchen, tmp_path / "here", ["vista"], per_subtask=4)
    generate(small_kitchen, tmp_path / "there", ["vista"], per_subtask=4, cluster=cluster.address)
    assert files(tmp_path / "there") == files(tmp_path / "here")


def test_a_task_that_asks_on_does_so_on_a_cluster(
    cluster: LocalCluster, generated: Callable[[str], Path], tmp_path: Path
) -> None:
    data = build(generated("vista"), tmp_path / "vista", benchmark="vista", cache=False).folder
    run(data, tmp_path / "here", model="chance", repetitions=1)
    run(data, tmp_path / "there", model="chance", repetitions=1, cluster=cluster.address)
    assert answers(tmp_path / "there") == answers(tmp_path / "here")
    assert score(tmp_path / "there").results.metrics == score(tmp_path / "here").results.metrics


def test_stages_of_annotation_make_the_same_files_after_a_node_is_killed(
    cluster: LocalCluster, small_kitchen: Path, tmp_path: Path
) -> None:
    here = start_project(tmp_path / "here", small_kitchen, propagator="copy_nearest")
    for video_id in here.file.videos:
        masks = masks_of(small_kitchen, video_id, range(0, 150, 15))
        accept(here, masks, "anna")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    there = Project(tmp_path / "there", here.file)
    made = [outcome.made for outcome in run_stages(here)]
    with cluster.killing(after_a_second()) as killed:
        outcomes = list(run_stages(there, cluster=cluster.address))
        assert killed.is_set()
    assert [outcome.made for outcome in outcomes] == made
    assert any("tracks" in stages for stages in made)
    for video_id in here.file.videos:
        assert contents(there.video(video_id)) == contents(here.video(video_id))


def test_a_judge_on_a_cluster_gives_the_same_verdicts(
    cluster: LocalCluster, small_kitchen: Path, tmp_path: Path
) -> None:
    sampling = {"referring": {"limit": 6}}
    data = build(small_kitchen, tmp_path / "data", configs=["referring"], sampling=sampling, cache=False).folder
    run(data, tmp_path / "here", task=("referring",), model="chance", repetitions=1)
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    settings = {"verdicts_per_answer": 2, "max_new_tokens": 8, "device": "cpu"}
    here = judge(tmp_path / "here", "tiny", **settings)
    there = judge(tmp_path / "there", "tiny", cluster=cluster.address, **settings)
    verdicts = [{r.key: (r.status, r.text) for r in read_records(s.folder / "verdicts.jsonl")} for s in (here, there)]
    assert here.asked == there.asked > 0
    assert verdicts[0] == verdicts[1]


def test_an_example_that_kills_each_copy_fails_and_the_others_are_answered(
    cluster: LocalCluster, linked: Path, tmp_path: Path
) -> None:
    """Of four copies three are lost to one example; the node's GPUs are made up, so that all four are placed there."""
    poison = open_examples(linked, "barista", "relations").examples[200].example_id
    (tmp_path / "sitecustomize.py").write_text(POISONED.format(poison=poison))
    variables = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    node = cluster.add_node(num_cpus=4, num_gpus=4, env_vars=variables)
    try:
        settings = {"model": "chance", "device": "cuda", "limit": 400, "repetitions": 1}
        session = run(linked, tmp_path / "run", cluster=cluster.address, **settings)
    finally:
        cluster.remove(node)
    assert session.failed <= 2  # it, and no more than a copy had in hand beside it
    assert "3 copies of the model were lost" in session.first_failure
    assert session.asked + session.failed == 400
    assert run(linked, tmp_path / "run", model="chance", limit=400, repetitions=1).asked == session.failed


def test_a_run_that_lost_all_copies_ends_and_continues_at_the_next_start(
    cluster: LocalCluster, linked: Path, tmp_path: Path
) -> None:
    out, settings = tmp_path / "run", {"model": "chance", "repetitions": 1, "limit": 3_000}
    with (
        pytest.raises(ClusterError, match="all copies of the model were lost"),
        cluster.killing(lambda: lines(out) > 500, num_gpus=1),
    ):
        run(linked, out, device="cuda", cluster=cluster.address, **settings)
    before = lines(out)
    assert 500 < before < 3_000
    assert run(linked, out, **settings).asked == 3_000 - before


def test_a_node_that_lacks_a_path_or_has_another_version_is_named(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos/v1.mp4").touch()
    monkeypatch.chdir(tmp_path)
    # Of each process its own: workers begin elsewhere.
    with pytest.raises(ClusterError, match=r"node \S+ \(.*\) has no /proc/self/cwd/videos. Fix"):
        RayCluster(cluster.address, ["/proc/self/cwd/videos"])
    (tmp_path / "sitecustomize.py").write_text("import barista_bench; barista_bench.__version__ = '0'")
    node = cluster.add_node(env_vars={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    try:
        with pytest.raises(ClusterError, match=r"node \S+ \(.*\) has barista_bench 0, not "):
            RayCluster(cluster.address)
    finally:
        cluster.remove(node)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere.invalid:6379", "head", "ray://127.0.0.1:10001"])
def test_an_address_without_a_cluster_is_named(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray was asked, which waits for minutes"))
    with pytest.raises(ClusterError, match=f"no Ray cluster at {re.escape(address)} "):
        RayCluster(address)
