"""The work of a cluster's nodes, and refusals before it; neither needs Ray."""

import shutil
from pathlib import Path

import pytest

from barista_bench import __version__, errors
from barista_bench.annotate.decisions import accept
from barista_bench.annotate.project import start_project
from barista_bench.annotate.running import VideoJob, VideoOutcome, WrittenFile, run_job, run_video
from barista_bench.cluster import ClusterNode, RayCluster, _first_lack, cluster_of, files_state
from barista_bench.errors import ConfigError, DataError, ModelError
from barista_bench.models import Completion, Failure, GenerationConfig, Request
from barista_bench.runs.ask.cluster_model import ClusterModel, ModelCopy, needed_paths, placements
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_tasks
from tests.annotate.projects import contents
from tests.annotate.test_pipeline import masks_of
from tests.one_run import run

PLAIN, SMALL, LARGE = (ClusterNode(str(gpus), f"node{gpus}", 8, gpus) for gpus in (0, 1, 4))


@pytest.mark.parametrize(
    ("device", "nodes", "placed"),
    [
        ("auto", [PLAIN, SMALL, LARGE], [(SMALL, 8, 1)] + [(LARGE, 2, 1)] * 4),
        ("cuda", [PLAIN, LARGE], [(LARGE, 2, 1)] * 4),
        ("split", [PLAIN, SMALL, LARGE], [(SMALL, 8, 1), (LARGE, 8, 4)]),
        ("cpu", [PLAIN, LARGE], [(PLAIN, 8, 0), (LARGE, 8, 0)]),
        ("auto", [PLAIN], [(PLAIN, 8, 0)]),
    ],
)
def test_copies_of_a_model_are_placed_by_gpu_or_without_gpus_by_node(device: str, nodes: list, placed: list) -> None:
    assert placements(device, nodes) == placed


@pytest.mark.parametrize(
    ("device", "named"), [("cuda", "has no GPU"), ("split", "has no GPU"), ("cuda:1", "Ray chooses")]
)
def test_a_device_that_the_cluster_does_not_have_is_refused(device: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        placements(device, [PLAIN])


def test_a_cluster_runs_no_engine_of_another_environment_and_nothing_beside_processes() -> None:
    with pytest.raises(ConfigError, match="leave out one"):
        cluster_of("auto", 2, [])
    config = RunConfig(data="d", out="o", model="m", engine="vllm")
    with pytest.raises(ConfigError, match="does not run --engine vllm"):
        ClusterModel(config, "auto", [])


def test_a_node_lacks_a_folder_that_is_absent_or_holds_other_files(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/v1.mp4").write_bytes(b"video")
    states = {str(tmp_path / "there"): files_state(tmp_path / "here")}
    assert _first_lack(__version__, str(tmp_path), states) == f"has no {tmp_path / 'there'}"
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    assert _first_lack(__version__, str(tmp_path), states) == ""
    (tmp_path / "there/v1.mp4").write_bytes(b"cut")
    assert _first_lack(__version__, str(tmp_path), states) == f"has other files in {tmp_path / 'there'}"
    assert _first_lack("0", str(tmp_path), {}) == f"has barista_bench {__version__}, not 0"
    assert "has no folder /nowhere" in _first_lack(__version__, "/nowhere", {})


@pytest.mark.full
def test_one_process_of_several_gives_a_cluster_no_work(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="a cluster needs a single driver process"):
        run(dataset, tmp_path, model="chance", task="relations", cluster="auto")


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"--cluster needs ray. Fix: pip install '?barista_bench\[ray\]"):
        RayCluster("auto")


def copy_of(config: RunConfig) -> ModelCopy:
    return ModelCopy(config, [task.examples.content_hash for task in open_tasks(config)], str(Path.cwd()))


def requests_of(config: RunConfig) -> list[Request]:
    """Requests as the driver sends them: without images."""
    (opened,) = open_tasks(config)
    box_format = copy_of(config).load().box_format
    return [
        Request(example.example_id, opened.task.prompt(example, box_format), (), seeds=(1, 2))
        for example in opened.examples.examples
    ]


def test_a_copy_looks_at_its_own_frames_and_answers_every_request_for_each_seed(
    linked_dataset: Path, small_release: Path, tmp_path: Path
) -> None:
    shutil.copytree(small_release, tmp_path / "videos")
    config = RunConfig(
        data=str(linked_dataset), out=tmp_path, model="chance", task=("relations",), root=tmp_path / "videos"
    )
    copy = copy_of(config)
    copy.load()
    requests = requests_of(config)
    lost = open_tasks(config)[0].examples.examples[0].video_id
    (tmp_path / "videos" / lost / "video.mp4").unlink()
    answers = {answer.request_id: answer.completions for answer in copy.answer(requests, GenerationConfig())}
    assert answers.keys() == {request.request_id for request in requests}
    for name, completions in answers.items():
        kind = Failure if f":{lost}:" in name else Completion
        assert [type(completion) for completion in completions] == [kind, kind]


def test_a_copy_refuses_other_examples_than_the_drivers(dataset: Path, tmp_path: Path) -> None:
    config = RunConfig(data=str(dataset), out=tmp_path, model="chance", task=("relations",))
    with pytest.raises(DataError, match="holds other examples"):
        ModelCopy(config, ["0" * 64], str(Path.cwd())).load()


def test_nodes_need_the_named_files_and_the_videos_of_linked_examples(
    linked_dataset: Path, small_release: Path, tmp_path: Path
) -> None:
    config = RunConfig(data=str(linked_dataset), out=tmp_path / "run", model=f"text_only:{tmp_path}")
    tasks = [(task.task, task.examples) for task in open_tasks(config)]
    videos = {str(small_release / f"v{number}" / "video.mp4") for number in range(6)}
    assert {str(Path(path).resolve()) for path in needed_paths(config, tasks)} == {
        *videos,
        str(linked_dataset),
        str(tmp_path),
    }


@pytest.mark.full
def test_a_video_is_annotated_from_only_its_files_and_changed_files_come_back(
    small_kitchen: Path, tmp_path: Path
) -> None:
    project = start_project(tmp_path / "project", small_kitchen, propagator="copy_nearest")
    video_id = min(project.file.videos)
    accept(project, masks_of(small_kitchen, video_id, range(0, 150, 15)), "anna")
    job = VideoJob.of(project.folder, video_id)
    *made, outcome = run_job(job)
    assert outcome == run_video(project.folder, video_id)
    here = {f"{video_id}/{name}": data for name, data in contents(project.video(video_id)).items()}
    assert {file.name: file.content for file in made if isinstance(file, WrittenFile)} == {
        name: data for name, data in here.items() if job.files.get(name) != data
    }
    stale = f"{video_id}/tracks/9999.jsonl"
    *made, outcome = run_job(job._replace(files={**job.files, stale: b""}))
    assert isinstance(outcome, VideoOutcome)
    assert WrittenFile(stale, None) in made
