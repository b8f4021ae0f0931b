"""What a release has for several tasks: each video is read once for all of them, on one process or several.

Workers read, check and derive; only light candidates, and in a second pass the examples drawn, come back. Results stand
in the order of videos whatever worker made them, so that the number of processes changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import ClassVar, TypeVar

from barista_bench.core.graph_task import Candidate, GraphTask, Vocabulary
from barista_bench.core.task import Example, Sampling, SkippedExample
from barista_bench.core.worker_processes import worker_processes
from barista_bench.errors import ConfigError
from barista_bench.scene_graph import Problem, SceneGraph, VideoValidation, validate_video

Wanted = Mapping[str, tuple[GraphTask, Sampling]]
"""By task name: the task, and how it is sampled."""
JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Shared:
    """What all jobs of a pass read."""

    graph: SceneGraph
    wanted: Wanted
    check_masks: bool = False


@dataclass(frozen=True, slots=True)
class TaskSurvey:
    """What videos have for one task, in canonical order."""

    vocabulary: Vocabulary = ()
    candidates: tuple[Candidate, ...] = ()
    skipped: tuple[SkippedExample, ...] = ()


@dataclass(frozen=True, slots=True)
class VideoSurvey:
    """What one video has; `tasks` by task name, `validation` where masks were to be checked."""

    video_id: str
    preparation: str
    problems: tuple[Problem, ...]
    tasks: dict[str, TaskSurvey]
    validation: VideoValidation | None


@dataclass(frozen=True, slots=True)
class BuildJob:
    """Candidates of one video to build, and the vocabularies of all videos, by task name."""

    video_id: str
    candidates: dict[str, list[Candidate]]
    vocabularies: dict[str, Vocabulary]


def survey_video(shared: Shared, video_id: str) -> VideoSurvey | Problem:
    """One video's candidates for every task; the problem where the video cannot be used at all.

    Raises:
        DataError: the graph is strict, and there is an error in the file.
    """
    for video in shared.graph.videos([video_id]):
        validation = validate_video(video, shared.graph.video_path(video_id)) if shared.check_masks else None
        tasks = {}
        for name, (task, sampling) in shared.wanted.items():
            found = list(task.candidates(video, sampling)) if sampling.selects(video) else []
            tasks[name] = TaskSurvey(
                task.vocabulary(video, sampling),
                tuple(item for item in found if isinstance(item, Candidate)),
                tuple(item for item in found if isinstance(item, SkippedExample)),
            )
        return VideoSurvey(video_id, video.preparation, video.problems, tasks, validation)
    return shared.graph.failed[video_id]


def build_video(shared: Shared, job: BuildJob) -> dict[str, list[Example]]:
    """The examples of a video's candidates, by task name, in their order."""
    video = shared.graph[job.video_id]
    built = {}
    for name, candidates in job.candidates.items():
        task, sampling = shared.wanted[name]
        built[name] = list(task.build(video, candidates, job.vocabularies[name], sampling))
    return built


def joined(surveys: Iterable[TaskSurvey]) -> TaskSurvey:
    """The surveys of several videos, in the order given, as one."""
    parts = list(surveys)
    return TaskSurvey(
        tuple(dict.fromkeys(chain.from_iterable(part.vocabulary for part in parts))),
        tuple(chain.from_iterable(part.candidates for part in parts)),
        tuple(chain.from_iterable(part.skipped for part in parts)),
    )


class VideoPool:
    """Runs functions over videos in this process, or in `num_proc` others that read the release themselves.

    Raises:
        ConfigError: `num_proc` is less than 1.
    """

    def __init__(self, shared: Shared, num_proc: int = 1) -> None:
        if num_proc < 1:
            raise ConfigError(f"num_proc is {num_proc}. Remedy: give 1 or more")
        self._shared, self._executor, self._processes = shared, None, ExitStack()
        if num_proc > 1:
            graph = shared.graph
            settings = (str(graph.root), graph.strict, shared.wanted, shared.check_masks)
            self._executor = self._processes.enter_context(worker_processes(num_proc, _Worker.start, settings))

    def __enter__(self) -> VideoPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._processes.__exit__(kind, error, trace)

    def map(self, function: Callable[[Shared, JobT], ResultT], jobs: Sequence[JobT]) -> Iterator[ResultT]:
        """Results in the order of the jobs."""
        if self._executor is None:
            return (function(self._shared, job) for job in jobs)
        return self._executor.map(_in_worker, [function] * len(jobs), jobs)


class _Worker:
    """What a worker process keeps between its jobs."""

    shared: ClassVar[Shared]

    @classmethod
    def start(cls, root: str, strict: bool, wanted: Wanted, check_masks: bool) -> None:
        cls.shared = Shared(SceneGraph(root, strict=strict, cache_videos=1), wanted, check_masks)


def _in_worker(function: Callable[[Shared, JobT], ResultT], job: JobT) -> ResultT:
    return function(_Worker.shared, job)
