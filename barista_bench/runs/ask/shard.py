"""Split the work of a run over processes. Each process gets whole videos, and all compute the same distribution."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from barista_bench.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `world` processes. `rank` counts from 0."""

    rank: int = 0
    world: int = 1

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Shard:
        """Return the shard that the launcher's environment variables define.

        Variables of `accelerate launch` and `torchrun` come first, then variables of `srun`. Without either there is
        one process.

        Raises:
            ConfigError: RANK and WORLD_SIZE (SLURM_PROCID and SLURM_NTASKS) are not valid numbers.
        """
        variables = os.environ if environment is None else environment
        rank_name, world_name = "RANK", "WORLD_SIZE"
        # A batch script runs once, since it is no Slurm step. It still has SLURM_PROCID 0 and the SLURM_NTASKS of its
        # job.
        if rank_name not in variables and world_name not in variables and "SLURM_STEP_ID" in variables:
            rank_name, world_name = "SLURM_PROCID", "SLURM_NTASKS"
        try:
            world = int(variables.get(world_name, "1"))
            rank = int(variables.get(rank_name, "0" if world == 1 else ""))
        except ValueError as error:
            raise ConfigError(
                f"{rank_name} or {world_name} is not a number, or is missing ({error}). Fix: set both, as "
                "accelerate, torchrun and srun do, or neither"
            ) from error
        if not 0 <= rank < world:
            raise ConfigError(f"{rank_name} {rank} is not below {world_name} {world}. Fix: unset both")
        return cls(rank, world)

    @classmethod
    def refuse_several(cls) -> None:
        """Raise ConfigError if there are several processes: the process that scores would not wait for the others."""
        if not cls.from_environment().is_alone:
            raise ConfigError(
                "each process would score before the others have finished. "
                "Fix: start `run` under accelerate, and `evaluate` alone afterwards: nothing is asked again"
            )

    @property
    def is_alone(self) -> bool:
        return self.world == 1

    @property
    def sharing_hint(self) -> str:
        """Return the likely cause of a log lock held by another process. It ends the remedy of the error message."""
        if self.is_alone:
            return ", or give processes that share one run RANK and WORLD_SIZE, as torchrun does"
        return (
            f", or start each process with a RANK of its own: this one has RANK {self.rank} of WORLD_SIZE {self.world}"
        )

    def device(self, wanted: str) -> str:
        """Return the model's device.

        With several processes, it is the GPU that the launcher assigned to this process.
        """
        if wanted != "auto" or self.is_alone:
            return wanted
        import torch

        if not torch.cuda.is_available():
            return "cpu"
        local_rank = os.environ.get("LOCAL_RANK")
        if local_rank is None:  # srun may bind one GPU to each process and hide all other GPUs
            local_rank = os.environ.get("SLURM_LOCALID", "0") if torch.cuda.device_count() > 1 else "0"
        return f"cuda:{local_rank}"

    def file(self, folder: Path, name: str) -> Path:
        """Return the path of this process's file in a run folder.

        `samples` and `steps` are logs. `sessions` has one line per start.
        """
        return folder / (f"{name}.jsonl" if self.is_alone else f"{name}-{self.rank}.jsonl")

    def launch(self, *parts: str, environment: Mapping[str, str] | None = None) -> str:
        """Return the name that all processes of one launch share. It holds the launcher's name and the tasks.

        A process with another number of processes or other tasks belongs to another launch.
        """
        variables = os.environ if environment is None else environment
        names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "SLURM_STEP_ID")
        launcher = [variables.get(name, "") for name in names]
        return json.dumps([self.world, *launcher, *parts, "" if self.world > 1 else os.getpid()])

    def videos(self, video_ids: Iterable[str]) -> frozenset[str]:
        """Return the videos of this process.

        Args:
            video_ids: one entry per example. Videos with the most examples are assigned first, each to the process with
                the fewest examples so far. Answered examples count as well. So all processes agree, even if they start
                at different times and find different logs.
        """
        counts = Counter(video_ids)
        loads = [0] * self.world
        own_videos = set()
        for video_id, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            lightest = loads.index(min(loads))
            loads[lightest] += count
            if lightest == self.rank:
                own_videos.add(video_id)
        return frozenset(own_videos)
