"""Tasks whose questions come from a benchmark's own annotation files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from barista_bench.core.sampling import Sampling
from barista_bench.core.task import Example, SkippedExample, Task
from barista_bench.scene_graph import Problem


class Release(Protocol):
    """The annotation files of a benchmark, read and checked.

    `root` holds the annotations and `videos` the media, which need not all be there. `problems` lists what is wrong
    with the files.
    """

    root: Path
    videos: Path
    problems: Sequence[Problem]

    def video_path(self, video_id: str) -> Path:
        """The path of a video (a file, or a folder of frames), whether or not it exists.

        Raises:
            DataError: the name leads out of `videos`.
        """
        ...


class ReleaseTask(Task):
    """A task that takes its questions from a release.

    Examples name their split in `metadata["split"]`: `test` where a benchmark has only one.
    """

    breakdown_keys: ClassVar[tuple[str, ...]] = ("split",)

    @abstractmethod
    def examples(self, release: Release, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        """All examples in canonical order, with the frames that the sampling chooses.

        An example whose video is missing or damaged is yielded as a `SkippedExample`, so that it is counted.
        """
