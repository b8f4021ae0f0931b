"""Run folders of machines that share nothing, joined: scored as if one machine had run all of it."""

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from barista_bench.core.status import Status
from barista_bench.data.dataset import open_examples
from barista_bench.errors import ConfigError
from barista_bench.runs.ask import runner
from barista_bench.runs.ask.shard import Shard
from barista_bench.runs.described import AIDS_FILE
from barista_bench.runs.log.inputs import INPUTS_FILE, merge_inputs, read_inputs
from barista_bench.runs.log.sample_log import LOG_FILE, SampleLog, SampleRecord, read_records, seal
from barista_bench.runs.log_reader import run_records
from barista_bench.runs.merging import merge
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.scoring import score
from tests.one_run import run
from tests.runs.made_logs import write_lines


def records_of(folder: Path) -> list[SampleRecord]:
    """The records that count."""
    with run_records(folder, read_run(folder)) as reader:
        return list(reader)


def shared_run(
    dataset: Path, roots: Sequence[Path | None], parent: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Path]:
    """The folders of as many machines as there are roots, each with its fraction of one run."""
    folders = [parent / f"machine{rank}" for rank in range(len(roots))]
    for rank, (root, folder) in enumerate(zip(roots, folders, strict=True)):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(len(roots)))
        run(dataset, folder, model="chance", root=root)
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    return folders


def test_machines_with_other_videos_each_make_one_run(
    linked_dataset: Path, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(linked_dataset, tmp_path / "alone", model="chance")
    video_ids = [example.video_id for example in open_examples(linked_dataset, "barista", "relations").examples]
    roots = [tmp_path / "disk0", tmp_path / "disk1"]
    for rank, root in enumerate(roots):
        for video_id in Shard(rank, 2).videos(video_ids):
            shutil.copytree(small_release / video_id, root / video_id)
    folders = shared_run(linked_dataset, roots, tmp_path, monkeypatch)
    merge(folders, tmp_path / "merged")
    assert {record.status for record in records_of(tmp_path / "merged")} == {Status.OK}
    assert len(records_of(tmp_path / "merged")) == 72
    score(tmp_path / "merged", root=small_release), score(tmp_path / "alone")
    merged, alone = ((tmp_path / name / "scores.jsonl").read_bytes() for name in ("merged", "alone"))
    assert merged == alone
    assert run(linked_dataset, tmp_path / "merged", model="chance", root=small_release).asked == 0


def test_a_merged_run_knows_the_place_of_its_data(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folders = shared_run(dataset, [None, None], tmp_path / "deep/down", monkeypatch)
    merge(folders, tmp_path / "merged")
    assert "was run with" not in caplog.text  # all machines had the same packages
    assert score(tmp_path / "merged").results.coverage.is_complete


def test_a_merged_run_keeps_the_texts_sent_to_the_model(dataset: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        run(dataset, tmp_path / name, model="oracle", limit=3, repetitions=1)
    (tmp_path / "second" / AIDS_FILE).write_text("{}\n")
    merge([tmp_path / "first", tmp_path / "second"], tmp_path / "merged")
    assert (tmp_path / "merged" / AIDS_FILE).read_text() == "{}\n"


def test_of_two_records_of_a_sample_a_finished_one_counts_and_of_finished_ones_the_first(
    dataset: Path, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        run(dataset, tmp_path / name, model="oracle", limit=3, repetitions=1)
    records = {r.example_id: r for r in read_records(tmp_path / "first" / LOG_FILE)}
    failing, kept, _ = records
    replaced = [
        msgspec.structs.replace(records[failing], status=Status.INFRA_ERROR, text=None),
        msgspec.structs.replace(records[kept], text="of the first"),
    ]
    write_lines(tmp_path / "first" / LOG_FILE, replaced)
    done = merge([tmp_path / "first", tmp_path / "second"], tmp_path / "merged")
    assert (done.before, done.after) == (5, 3)
    texts = {record.example_id: record.text for record in records_of(tmp_path / "merged")}
    assert texts == {name: record.text for name, record in records.items()} | {kept: "of the first"}
    assert [path.name for path in (tmp_path / "merged").glob("samples*")] == [LOG_FILE]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": "oracle"}, "model.name 'oracle', but .*first with 'chance'"),
        ({"temperature": 0.0}, "generation.temperature 0.0"),
        ({"limit": 3}, "limit 3"),
        ({"repetitions": 2}, "repetitions 2"),
    ],
)
def test_runs_under_other_conditions_are_refused_and_the_difference_named(
    dataset: Path, tmp_path: Path, change: dict, named: str
) -> None:
    settings = {"model": "chance", "limit": 2, "repetitions": 1}
    run(dataset, tmp_path / "first", **settings)
    run(dataset, tmp_path / "second", **settings | change)
    with pytest.raises(ConfigError, match=f"second: was run with {named}"):
        merge([tmp_path / "first", tmp_path / "second"], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


@pytest.mark.full
def test_a_run_that_is_written_or_named_twice_is_refused(dataset: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        run(dataset, tmp_path / name, model="oracle", limit=2, repetitions=1)
    with pytest.raises(ConfigError, match="each named once"):
        merge([tmp_path / "first", tmp_path / "second/../first"], tmp_path / "merged")
    with SampleLog(tmp_path / "second" / LOG_FILE), pytest.raises(ConfigError, match="second: a run is writing here"):
        merge([tmp_path / "first", tmp_path / "second"], tmp_path / "merged")


def asked(folder: Path, **lines: tuple[str, bool]) -> Path:
    """A folder with the fingerprint of each example's question, and whether its media could be read."""
    folder.mkdir()
    rows = ({"example_id": name, "fingerprint": text, "readable": known} for name, (text, known) in lines.items())
    (folder / INPUTS_FILE).write_bytes(b"".join(seal(msgspec.json.encode(row)) for row in rows))
    return folder


def test_a_reading_on_one_machine_replaces_failures_on_others(tmp_path: Path) -> None:
    first = asked(tmp_path / "first", a=("unread", False), b=("seen", True))
    second = asked(tmp_path / "second", a=("seen", True), b=("unread", False), c=("new", False))
    merge_inputs([first, second], tmp_path)
    assert read_inputs(tmp_path) == {"a": "seen", "b": "seen", "c": "new"}
    with pytest.raises(ConfigError, match=r"third: b has other images than in .*first or one after it. Fix"):
        merge_inputs([first, second, asked(tmp_path / "third", b=("other", True))], tmp_path)


VIDEOS = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 30), min_size=1, max_size=20)


@given(VIDEOS, st.integers(1, 6), st.randoms(use_true_random=False))
def test_every_video_belongs_to_one_process_in_any_order(videos: dict[str, int], world: int, rng: object) -> None:
    entries = [video for video, count in videos.items() for _ in range(count)]
    fractions = []
    for rank in range(world):
        rng.shuffle(entries)
        fractions.append(Shard(rank, world).videos(entries))
    assert Counter(video for fraction in fractions for video in fraction) == dict.fromkeys(videos, 1)


@given(VIDEOS, st.integers(1, 6))
def test_no_process_has_more_than_its_share_and_one_video(videos: dict[str, int], world: int) -> None:
    entries = [video for video, count in videos.items() for _ in range(count)]
    loads = [sum(videos[video] for video in Shard(rank, world).videos(entries)) for rank in range(world)]
    assert max(loads) <= sum(videos.values()) / world + max(videos.values())


STEP = {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0"}


@pytest.mark.parametrize(
    ("environment", "shard"),
    [
        ({}, Shard(0, 1)),
        ({"RANK": "2", "WORLD_SIZE": "4"}, Shard(2, 4)),
        (STEP, Shard(3, 8)),
        (STEP | {"RANK": "1", "WORLD_SIZE": "2"}, Shard(1, 2)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, Shard(0, 1)),  # a batch script that starts no step does it all
    ],
)
def test_the_number_of_this_process_comes_from_the_launcher_or_from_srun(
    environment: dict[str, str], shard: Shard
) -> None:
    assert Shard.from_environment(environment) == shard


@pytest.mark.parametrize(
    "environment",
    [
        {"RANK": "one"},
        {"RANK": "4", "WORLD_SIZE": "4"},
        {"RANK": "1"},
        {"WORLD_SIZE": "2"},  # every process would be the first
        {"SLURM_STEP_ID": "0", "SLURM_PROCID": "2", "SLURM_NTASKS": "2"},
    ],
)
def test_a_rank_that_makes_no_sense_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"RANK|SLURM_PROCID"):
        Shard.from_environment(environment)


def test_processes_of_one_launch_call_themselves_the_same_and_others_do_not() -> None:
    environment = {"MASTER_ADDR": "a", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "x"}
    launched = Shard(0, 2).launch("relations", environment=environment)
    assert Shard(1, 2).launch("relations", environment=environment) == launched
    others = [
        Shard(0, 4).launch("relations", environment=environment),
        Shard(0, 2).launch("relations", "grounding", environment=environment),
        Shard(0, 2).launch("relations", environment=environment | {"MASTER_PORT": "2"}),
        Shard(0, 1).launch("relations", environment=environment),
    ]
    assert launched not in others


@pytest.mark.parametrize(
    ("environment", "log", "named"),
    [
        ({}, "samples.jsonl", "give processes that share one run RANK and WORLD_SIZE"),
        ({"RANK": "1", "WORLD_SIZE": "2"}, "samples-1.jsonl", "this one has RANK 1 of WORLD_SIZE 2"),
    ],
)
@pytest.mark.full
def test_a_log_in_use_is_refused_before_the_model_is_loaded(
    environment: dict[str, str], log: str, named: str, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(runner, "load_model", lambda *_: pytest.fail("the model was loaded"))
    with SampleLog(tmp_path / log), pytest.raises(ConfigError, match=named):
        run(dataset, tmp_path, model="chance")
