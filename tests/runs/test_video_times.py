"""A run tells a model of videos when each frame was filmed, and is keyed by it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.frame_times import FrameTimes, parts_with_clips
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.errors import DataError
from barista_bench.media.video.readers import video_facts
from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.models.base import sees_videos, video_settings
from barista_bench.runs.ask import runner
from barista_bench.runs.log.inputs import asked_inputs, read_inputs
from tests.conftest import MadeOnce
from tests.one_run import run
from tests.video_samples import render

TIMED = ("temporal_vqa", "activity", "relations")


class Watcher:
    """Keeps its requests; sees videos or images, as its identity says."""

    box_format = BoxFormat()
    batch_size = 4

    def __init__(self, frames_as: str = "video", fps: float | None = None) -> None:
        self.identity = ModelIdentity("watcher", None, dict(video_settings(frames_as, fps)))  # type: ignore[arg-type]
        self.asked: dict[str, Request] = {}

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        for request in requests:
            self.asked.setdefault(request.request_id, request)  # later questions show no images here
            if sees_videos(self.identity):
                parts_with_clips(request.prompt, request.times, None)
        return [[Completion("Answer: a cup") for _ in request.seeds] for request in requests]


Watched = Callable[..., Watcher]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Watched:
    def watch(data: Path, *model: object, folder: str = "run", **settings: object) -> Watcher:
        watcher = Watcher(*model)  # type: ignore[arg-type]
        monkeypatch.setattr(runner, "load_model", lambda *_: watcher)
        run(data, tmp_path / folder, model="watcher", repetitions=1, **settings)
        return watcher

    return watch


@pytest.fixture(scope="module")
def sets(small_kitchen: Path, made_once: MadeOnce) -> dict[str, Path]:
    """Examples of the small kitchen, frozen and linked."""

    def make(frames: str) -> Callable[[Path], object]:
        return lambda out: build(
            small_kitchen, out, configs=list(TIMED), sampling={"limit": 4}, frames=frames, cache=False
        )

    return {frames: made_once(f"video_times_{frames}/barista", make(frames)) for frames in ("frozen", "linked")}


@pytest.mark.parametrize("task", ["temporal_vqa", "activity"])
def test_a_model_gets_the_time_of_each_frame_of_an_example(
    sets: dict[str, Path], watched: Watched, small_kitchen: Path, task: str
) -> None:
    asked = {frames: watched(data, task=task, folder=frames).asked for frames, data in sets.items()}
    examples = open_examples(sets["frozen"], "barista", task).examples
    assert examples
    for example in examples:
        facts = video_facts(small_kitchen / example.video_id / "video.mp4")
        indices = [frame.frame_index for frame in example.frames]
        for requests in asked.values():
            times = requests[example.example_id].times
            assert times == FrameTimes(facts.fps, tuple(indices), facts.frame_count)
            assert times.seconds == pytest.approx(facts.seconds[indices].tolist(), abs=1e-3)


def test_two_views_of_a_frame_are_of_one_moment(sets: dict[str, Path], watched: Watched) -> None:
    for request in watched(sets["frozen"], task="relations").asked.values():
        assert request.times is not None
        assert len(set(request.times.indices)) == 1
        assert len(request.times.indices) == len(request.images) == 2
        assert parts_with_clips(request.prompt, request.times, None) == list(request.prompt.joined_parts)


@pytest.mark.parametrize(("model", "told"), [(("video",), True), (("video", 2.0), True), (("images",), False)])
def test_times_come_with_requests_to_models_that_see_videos(
    sets: dict[str, Path], watched: Watched, model: tuple[object, ...], told: bool
) -> None:
    times = [request.times for request in watched(sets["frozen"], *model, task="activity").asked.values()]
    assert times
    assert all((each is not None) is told for each in times)


def test_times_are_part_of_the_request_and_frames_as_images_keep_their_fingerprints(
    sets: dict[str, Path], watched: Watched, tmp_path: Path
) -> None:
    examples, task = open_examples(sets["frozen"], "barista", "activity"), get_task("barista", "activity")
    plain, timed = (
        [each.fingerprint for each in asked_inputs(task, examples, DEFAULT_BOX_FORMAT, timed=timed)]
        for timed in (False, True)
    )
    assert not set(plain) & set(timed)
    written = {}
    for name, model in {"images": ("images",), "given": ("video", 2.0), "own": ("video",)}.items():
        watched(sets["frozen"], *model, task="activity", folder=name)
        written[name] = sorted(read_inputs(tmp_path / name).values())
    assert written["images"] == written["given"] == sorted(plain)
    assert written["own"] == sorted(timed)


def test_another_rate_of_the_same_frames_is_another_question(
    sets: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    examples, task = open_examples(sets["frozen"], "barista", "activity"), get_task("barista", "activity")
    before = asked_inputs(task, examples, DEFAULT_BOX_FORMAT, timed=True)
    for example in examples.examples:
        example.metadata["fps"] = 2 * float(str(example.metadata["fps"]))
    after = asked_inputs(task, examples, DEFAULT_BOX_FORMAT, timed=True)
    assert all(one.fingerprint != other.fingerprint for one, other in zip(before, after, strict=True))


@pytest.mark.full
def test_the_prompt_and_the_processor_have_the_same_times(
    generated: Callable[[str], Path], watched: Watched, tmp_path: Path
) -> None:
    data = build(
        generated("egocot"), tmp_path / "egocot", benchmark="egocot", sampling={"frames": 4}, cache=False
    ).folder
    asked = watched(data, benchmark="egocot", task="cot").asked
    assert asked
    for request in asked.values():
        named = request.inputs["times"]
        assert isinstance(named, list)
        assert request.times is not None
        assert request.times.seconds == pytest.approx(named, abs=0.5 / request.times.fps)
        assert request.times.seconds == pytest.approx(named, abs=1e-3)


@pytest.mark.full
def test_a_question_that_shows_some_of_its_frames_has_their_times(
    generated: Callable[[str], Path], tmp_path: Path
) -> None:
    data = build(generated("handyvqa"), tmp_path / "set", benchmark="handyvqa", configs=["rvos_objects"], cache=False)
    examples = open_examples(data.folder, "handyvqa", "rvos_objects")
    task = get_task("handyvqa", "rvos_objects", options={"mode": "frame_wise"})
    for index, example in enumerate(examples.examples):
        times, shown = examples.frame_times(index, task), example.inputs["frames"]
        assert isinstance(shown, list)
        assert times.indices == tuple(example.frames[place].frame_index for place in shown)


# Examples without times use the times of their media.

TICKS = [0, 20, 40, 60, 200, 220, 240, 300]  # of 1/600 s: a rate that varies


@pytest.fixture
def words(tmp_path: Path, registered: None) -> Path:
    """A release of two questions, about a video at 30 frames a second and one at a rate that varies."""
    root = tmp_path / "release"
    (root / "videos").mkdir(parents=True)
    render(root / "videos" / "steady.mp4", 9)
    render(root / "videos" / "varying.mp4", len(TICKS), ticks=TICKS)
    rows = [
        {"id": name, "video": f"videos/{name}.mp4", "split": "test", "words": ["cup", "lid"], "answer": "cup"}
        for name in ("steady", "varying")
    ]
    (root / "questions.json").write_text(json.dumps(rows))
    return root


@pytest.mark.parametrize("frames", ["frozen", "linked"])
def test_frame_times_come_from_the_media_if_the_example_has_none(
    words: Path, watched: Watched, tmp_path: Path, frames: str
) -> None:
    data = build(words, tmp_path / "words", benchmark="words", sampling={"frames": 4}, frames=frames, cache=False)
    asked = watched(data.folder, benchmark="words", task="choose", root=words if frames == "linked" else None).asked
    steady, varying = (asked[f"words:{name}"].times for name in ("steady", "varying"))
    assert steady is not None
    assert varying is not None
    shown = [example.frames for example in open_examples(data.folder, "words", "choose").examples]
    indices = {each[0].video_id: [frame.frame_index for frame in each] for each in shown}
    assert steady.fps == pytest.approx(30, rel=1e-5)
    assert list(steady.indices) == indices["videos/steady.mp4"]
    true = [TICKS[index] / 600 for index in indices["videos/varying.mp4"]]
    assert varying.seconds == pytest.approx(true, abs=0.5 / varying.fps)


def test_a_frozen_file_has_the_frame_times_of_the_built_set(words: Path, tmp_path: Path) -> None:
    data = build(words, tmp_path / "words", benchmark="words", sampling={"frames": 4}, frames="linked", cache=False)
    (frozen,) = data.folder.rglob("*.jsonl")
    examples = open_examples(frozen, "words", "choose", root=words)
    built = open_examples(data.folder, "words", "choose", root=words)
    times = [examples.frame_times(index, get_task("words", "choose")) for index in range(2)]
    assert None not in times
    assert times == [built.frame_times(index, get_task("words", "choose")) for index in range(2)]


def test_the_times_of_media_change_no_content_hash(words: Path, tmp_path: Path) -> None:
    """They are a column beside the example; a set built from copies at another rate holds the same examples."""
    settings = {"benchmark": "words", "sampling": {"frames": 4}, "frames": "linked", "cache": False}
    first = build(words, tmp_path / "first", **settings)
    render(words / "videos" / "varying.mp4", len(TICKS))
    second = build(words, tmp_path / "second", **settings)
    hashes = [open_examples(each.folder, "words", "choose", root=words).content_hash for each in (first, second)]
    assert hashes[0] == hashes[1]


def without_times(folder: Path, value: object = None, *, drop: bool = False) -> None:
    for file in folder.glob("choose/*.parquet"):
        table = pq.read_table(file, partitioning=None)
        place = table.column_names.index("frame_seconds")
        other = table.remove_column(place)
        pq.write_table(
            other if drop else other.add_column(place, "frame_seconds", pa.array([value] * len(table))), file
        )


@pytest.mark.parametrize("drop", [True, False])
def test_frames_of_unknown_times_cost_their_example_and_say_what_to_do(words: Path, tmp_path: Path, drop: bool) -> None:
    data = build(words, tmp_path / "words", benchmark="words", cache=False).folder
    without_times(data, drop=drop)
    examples = open_examples(data, "words", "choose")
    assert examples.frame_times(0, get_task("words", "choose")) is None
    request = Request("r", get_task("words", "choose").prompt(examples.examples[0], DEFAULT_BOX_FORMAT), (), times=None)
    with pytest.raises(ValueError, match=r"neither by the example nor by its media\. Fix: build the set again"):
        parts_with_clips(request.prompt, request.times, None)


@pytest.mark.parametrize("value", [3, ["x"], [-1.0, 2.0], [float("nan"), 1.0], [1.0], [1e300, 2.0], {"a": 1}])
def test_times_of_a_set_that_are_none_are_refused_by_name(words: Path, tmp_path: Path, value: object) -> None:
    data = build(words, tmp_path / "words", benchmark="words", cache=False).folder
    without_times(data, value)
    examples = open_examples(data, "words", "choose")
    with pytest.raises(DataError, match=r"words:\w+: frame_seconds are no times.*Fix: build the dataset again"):
        examples.frame_times(0, get_task("words", "choose"))


def test_a_folder_of_frames_has_no_times(words: Path, tmp_path: Path) -> None:
    from PIL import Image

    folder = words / "videos" / "steady_frames"
    folder.mkdir()
    for number in range(5):
        Image.new("RGB", (32, 24), (number, 0, 0)).save(folder / f"{number:03}.jpg")
    row = {"id": "f", "video": "videos/steady_frames", "split": "test", "words": ["cup", "lid"], "answer": "cup"}
    (words / "questions.json").write_text(json.dumps([row]))
    data = build(words, tmp_path / "words", benchmark="words", cache=False).folder
    assert open_examples(data, "words", "choose").frame_times(0, get_task("words", "choose")) is None
