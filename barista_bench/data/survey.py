"""What a release has for several tasks: each video is read once for all of them, on one process or several.

Workers read, check and derive; only light candidates, and in a second pass the examples drawn, come back. Results stand
in the order of videos whatever worker made them, so that the number of processes changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain

from barista_bench.core.deriving import Candidate, GraphTask, Sampling, Vocabulary
from barista_bench.core.task import Example, SkippedExample
from barista_bench.core.worker_processes import worker_processes
from barista_bench.errors import ConfigError
from barista_bench.scene_graph import Problem, SceneGraph, VideoValidation, validate_video

SampledTasks = Mapping[str, tuple[GraphTask, Sampling]]
"""By task name: the task, and how it is sampled."""


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


@dataclass(frozen=True, slots=True)
class VideoReader:
    """Derives from one video after the other what the tasks want."""

    graph: SceneGraph
    tasks: SampledTasks
    check_masks: bool

    def survey(self, video_id: str) -> VideoSurvey | Problem:
        """One video's candidates for every task; the problem where the video cannot be used at all.

        Raises:
            DataError: the graph is strict, and there is an error in the file.
        """
        for video in self.graph.videos([video_id]):
            validation = validate_video(video, self.graph.video_path(video_id)) if self.check_masks else None
            surveys = {}
            for name, (task, sampling) in self.tasks.items():
                items = list(task.candidates(video, sampling)) if sampling.selects(video) else []
                surveys[name] = TaskSurvey(
                    task.vocabulary(video, sampling),
                    tuple(item for item in items if isinstance(item, Candidate)),
                    tuple(item for item in items if isinstance(item, SkippedExample)),
                )
            return VideoSurvey(video_id, video.preparation, video.problems, surveys, validation)
        return self.graph.failed[video_id]

    def build(self, job: BuildJob) -> dict[str, list[Example]]:
        """The examples of a video's candidates, by task name, in their order."""
        video = self.graph[job.video_id]
        built = {}
        for name, candidates in job.candidates.items():
            task, sampling = self.tasks[name]
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


SurveyPass = Callable[[Sequence[str]], Iterator[VideoSurvey | Problem]]
BuildPass = Callable[[Sequence[BuildJob]], Iterator[dict[str, list[Example]]]]


@contextmanager
def video_passes(
    graph: SceneGraph, tasks: SampledTasks, check_masks: bool, num_proc: int
) -> Iterator[tuple[SurveyPass, BuildPass]]:
    """`VideoReader.survey` and `.build` over many videos; workers of `num_proc` read the release themselves.

    Raises:
        ConfigError: `num_proc` is less than 1.
    """
    if num_proc < 1:
        raise ConfigError(f"num_proc is {num_proc}. Remedy: give 1 or more")
    if num_proc == 1:
        reader = VideoReader(graph, tasks, check_masks)
        yield partial(map, reader.survey), partial(map, reader.build)
        return
    with worker_processes(num_proc, _SurveyWorker.start, (str(graph.root), graph.strict, tasks, check_masks)) as pool:
        yield partial(pool.map, _SurveyWorker.survey), partial(pool.map, _SurveyWorker.build)


class _SurveyWorker:
    """What a worker process keeps between its jobs."""

    reader: VideoReader

    @classmethod
    def start(cls, root: str, strict: bool, tasks: SampledTasks, check_masks: bool) -> None:
        cls.reader = VideoReader(SceneGraph(root, strict=strict, cache_videos=1), tasks, check_masks)

    @classmethod
    def survey(cls, video_id: str) -> VideoSurvey | Problem:
        return cls.reader.survey(video_id)

    @classmethod
    def build(cls, job: BuildJob) -> dict[str, list[Example]]:
        return cls.reader.build(job)
