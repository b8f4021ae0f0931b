"""Whole videos dealt out over processes: complete, disjoint, balanced, and agreed without a word."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barista_bench.errors import ConfigError
from barista_bench.runs.ask.config import Shard

VIDEOS = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 30), min_size=1, max_size=20)


@given(VIDEOS, st.integers(1, 6), st.randoms(use_true_random=False))
def test_every_video_belongs_to_one_process_whatever_the_order(videos: dict[str, int], world: int, rng: object) -> None:
    entries = [video for video, count in videos.items() for _ in range(count)]
    shares = []
    for rank in range(world):
        rng.shuffle(entries)
        shares.append(Shard(rank, world).videos(entries))
    assert Counter(video for share in shares for video in share) == dict.fromkeys(videos, 1)


@given(VIDEOS, st.integers(1, 6))
def test_no_process_has_more_than_its_share_and_one_video(videos: dict[str, int], world: int) -> None:
    entries = [video for video, count in videos.items() for _ in range(count)]
    loads = [sum(videos[video] for video in Shard(rank, world).videos(entries)) for rank in range(world)]
    assert max(loads) <= sum(videos.values()) / world + max(videos.values())


def test_the_launcher_says_which_process_this_is() -> None:
    assert Shard.from_environment({}) == Shard(0, 1)
    assert Shard.from_environment({"RANK": "2", "WORLD_SIZE": "4"}) == Shard(2, 4)


@pytest.mark.parametrize("environment", [{"RANK": "one"}, {"RANK": "4", "WORLD_SIZE": "4"}, {"RANK": "1"}])
def test_a_rank_that_makes_no_sense_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="RANK"):
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
