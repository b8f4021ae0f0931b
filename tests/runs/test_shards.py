"""Whole videos dealt out over processes: complete, disjoint, balanced, and agreed without a word."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from barista_bench.errors import ConfigError
from barista_bench.runs.ask import runner
from barista_bench.runs.ask.shard import Shard
from barista_bench.runs.log.sample_log import SampleLog
from tests.one_run import run

VIDEOS = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 30), min_size=1, max_size=20)


@given(VIDEOS, st.integers(1, 6), st.randoms(use_true_random=False))
def test_every_video_belongs_to_one_process_whatever_the_order(videos: dict[str, int], world: int, rng: object) -> None:
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
def test_the_launcher_else_srun_says_which_process_this_is(environment: dict[str, str], shard: Shard) -> None:
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
