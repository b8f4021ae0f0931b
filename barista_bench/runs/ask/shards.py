"""Which process asks what: whole videos, dealt out the same way in every process, without a word between them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barista_bench.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Shard:
    """Process `rank` (from 0) of `world`."""

    rank: int = 0
    world: int = 1

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Shard:
        """What `accelerate launch` and `torchrun` say; one process where they say nothing.

        Raises:
            ConfigError: RANK and WORLD_SIZE are no such numbers.
        """
        variables = os.environ if environment is None else environment
        try:
            shard = cls(int(variables.get("RANK", "0")), int(variables.get("WORLD_SIZE", "1")))
        except ValueError as error:
            raise ConfigError(f"RANK or WORLD_SIZE is no number ({error}). Remedy: start with accelerate") from error
        if not 0 <= shard.rank < shard.world:
            raise ConfigError(f"RANK {shard.rank} is not below WORLD_SIZE {shard.world}. Remedy: unset both")
        return shard

    @classmethod
    def refuse_several(cls) -> None:
        """Raise ConfigError in a process of several: whoever scores at the end would not wait for the others."""
        if not cls.from_environment().alone:
            raise ConfigError(
                "each process would score what the others have yet to ask. "
                "Remedy: start `run` under accelerate, and `evaluate` alone afterwards: nothing is asked again"
            )

    @property
    def alone(self) -> bool:
        return self.world == 1

    def launch(self, *parts: str, environment: Mapping[str, str] | None = None) -> str:
        """What all processes of one launch call themselves: what the launcher says of it, and what is run.

        Processes that deal out other work, since they are more or fewer or run other tasks, are another launch.
        """
        variables = os.environ if environment is None else environment
        launcher = [variables.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")]
        return json.dumps([self.world, *launcher, *parts, "" if self.world > 1 else os.getpid()])

    def videos(self, video_ids: Iterable[str]) -> frozenset[str]:
        """The videos of this process.

        Args:
            video_ids: one entry an example. Videos with most examples are dealt out first, each to the process with
                the fewest examples so far. All examples count, answered or not, so that processes that start at
                different moments, with more or less in the log, agree.
        """
        counts = Counter(video_ids)
        loads = [0] * self.world
        mine = set()
        for video_id, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            lightest = loads.index(min(loads))
            loads[lightest] += count
            if lightest == self.rank:
                mine.add(video_id)
        return frozenset(mine)
