"""Plan the examples of a config: sample them from the release, join them with the split, and hash them. No frame is
read.

Two passes over a scene graph serve all tasks. The first pass finds candidates, which are light records of possible
examples, for caps, shuffling and cutting. The second pass makes only the sampled examples. Workers read and check the
videos and derive the examples. Results are in the order of videos, so the number of workers changes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

from tqdm import tqdm

from barista_bench.benchmarks import task_class
from barista_bench.cluster import RayCluster, worker_processes
from barista_bench.core.deriving import Candidate, GraphTask, Release, ReleaseTask, Vocabulary
from barista_bench.core.example import Example, FrameRef, SkippedExample
from barista_bench.core.options import Sampling
from barista_bench.core.task import Task
from barista_bench.data.frozen import content_hash, refuse_unusable
from barista_bench.errors import ConfigError, DataError, nearest_of
from barista_bench.files.text_out import most_frequent_reasons
from barista_bench.scene_graph import Layer, Problem, SceneGraph, VideoGraph


class NoExamples(DataError):
    """The release has no candidate for a task under this sampling."""


@dataclass(frozen=True, slots=True)
class PlannedSet:
    """A frozen set before its frames are added.

    Args:
        examples: examples in the order sampled; the metadata contain the split.
        skipped: candidates that cannot become examples, because of the data.
        candidates: number of candidates before shuffling and cutting.
        content_hash: SHA-256 of the frozen lines.
    """

    task: Task
    sampling: Sampling
    examples: tuple[Example, ...]
    skipped: tuple[SkippedExample, ...]
    candidates: int
    content_hash: str

    @staticmethod
    def part_of(example: Example) -> tuple[str, str]:
        """Return split and video of an example."""
        return str(example.metadata["split"]), example.video_id

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Return the units of work: sorted pairs of a split and a video with examples."""
        return tuple(sorted({self.part_of(example) for example in self.examples}))

    @property
    def video_ids(self) -> tuple[str, ...]:
        return tuple(sorted({frame.video_id for example in self.examples for frame in example.frames}))

    def counts(self, key: str) -> Counter[str]:
        """Count examples by a metadata key, e.g. `preparation` or `split`."""
        return Counter(str(example.metadata.get(key)) for example in self.examples)

    def labels(self) -> dict[str, int]:
        """Count examples by label, most frequent first."""
        return dict(Counter(example.label for example in self.examples).most_common())


@dataclass(frozen=True, slots=True)
class PlannedSets:
    """The frozen sets of several tasks, and the problems that sampling found in the release.

    Args:
        by_task: plans by task name, in the given order.
        empty: tasks for which the release has no example, with reasons.
        splits: maps each usable video id of a scene graph to its split.
        problems: faults of folders, files and records.
        lost_videos: ids of the videos of a scene graph that cannot be used.
    """

    by_task: dict[str, PlannedSet]
    empty: dict[str, NoExamples]
    splits: dict[str, str]
    problems: tuple[Problem, ...]
    lost_videos: tuple[str, ...] = ()


AnyGraphTask: TypeAlias = GraphTask[Any]
TasksByName = Mapping[str, tuple[AnyGraphTask, Sampling]]
"""The tasks by name, each with a sampling."""


@dataclass(frozen=True, slots=True)
class TaskSurvey:
    """The candidates of a video for one task, in canonical order."""

    vocabulary: Vocabulary
    candidates: tuple[Candidate, ...]
    skipped: tuple[SkippedExample, ...]


@dataclass(frozen=True, slots=True)
class VideoSurvey:
    """The candidates of one video: `tasks` by task name, and `lacking`, the sections without any record."""

    video_id: str
    preparation: str
    problems: tuple[Problem, ...]
    tasks: dict[str, TaskSurvey]
    lacking: frozenset[Layer]


@dataclass(frozen=True, slots=True)
class BuildJob:
    """The candidates of one video to build, by task name and position, and all videos' vocabularies by task name."""

    video_id: str
    candidates: dict[str, dict[int, Candidate]]
    vocabularies: dict[str, Vocabulary]


@dataclass(frozen=True, slots=True)
class VideoReader:
    """Derives the tasks' data from one video after another. Each worker has a copy, which reads the release itself."""

    graph: SceneGraph
    tasks: TasksByName

    def survey(self, video_id: str) -> VideoSurvey | Problem:
        """Return one video's candidates for every task, or the problem that makes the video unusable.

        Raises:
            DataError: the graph is strict, and the file has an error.
        """
        for video in self.graph.videos([video_id]):
            surveys = {}
            for name, (task, sampling) in self.tasks.items():
                items = list(task.candidates(video, sampling)) if sampling.is_selected(video) else []
                if video.coverage.is_partial:
                    items = [_answerable_candidate(task, video, item, sampling) for item in items]
                surveys[name] = TaskSurvey(
                    task.vocabulary(video, sampling),
                    tuple(item for item in items if isinstance(item, Candidate)),
                    tuple(item for item in items if isinstance(item, SkippedExample)),
                )
            return VideoSurvey(video_id, video.preparation, video.problems, surveys, video.empty_layers)
        return self.graph.failed[video_id]

    def build(self, job: BuildJob) -> dict[str, dict[int, Example]]:
        """Return the examples of a video's candidates, by task name and position."""
        video = self.graph[job.video_id]
        built = {}
        for name, candidates in job.candidates.items():
            task, sampling = self.tasks[name]
            examples = map(task.stamp, task.build(video, list(candidates.values()), job.vocabularies[name], sampling))
            built[name] = dict(zip(candidates, examples, strict=True))
        return built


def _answerable_candidate(
    task: AnyGraphTask, video: VideoGraph, item: Candidate | SkippedExample, sampling: Sampling
) -> Candidate | SkippedExample:
    """Return the candidate if the graph can answer it, or else the reason why not."""
    if isinstance(item, SkippedExample) or (reason := task.incompleteness(video, item, sampling)) is None:
        return item
    return SkippedExample(FrameRef(video.video_id, item.frame), reason)


@dataclass(frozen=True, slots=True)
class _Sample:
    """The sample of one task: positions in `selected`, in sampled order."""

    task: AnyGraphTask
    sampling: Sampling
    selected: list[Candidate]
    order: list[int]
    vocabulary: Vocabulary
    skipped: tuple[SkippedExample, ...]


def plan_tasks(
    graph: SceneGraph,
    sampled_tasks: Sequence[tuple[AnyGraphTask, Sampling]],
    *,
    split: Callable[[Mapping[str, str], Sequence[frozenset[str]]], Mapping[str, str]],
    num_proc: int = 1,
    cluster: RayCluster | None = None,
    progress: bool = False,
) -> PlannedSets:
    """Sample the frozen sets of several tasks.

    Args:
        sampled_tasks: the tasks without repeats, each with its sampling.
        split: returns the split of each video id. It gets the preparation type of each video id and, for each task, the
            videos with candidates.
        num_proc: number of processes that read videos. It changes only the duration.
        cluster: a cluster that reads videos in place of processes.
        progress: show a progress bar for each of the two passes.

    Raises:
        DataError: a sampling names an unknown video, no video can be used, or the graph is strict and a file has an
            error.
        ConfigError: `num_proc` is less than 1.
    """
    if num_proc < 1:
        raise ConfigError(f"num_proc is {num_proc}. Fix: give --num-proc 1 or more")
    by_name = {task.name: (task, sampling) for task, sampling in sampled_tasks}
    for _, sampling in sampled_tasks:
        sampling.refuse_unknown_videos(graph)
    reader = VideoReader(graph, by_name)
    map_videos: Callable[..., Iterable[Any]] = cluster.map if cluster else map
    with ExitStack() as stack:
        if num_proc > 1:
            map_videos = stack.enter_context(worker_processes(num_proc))
        surveys = _read_surveys(graph, map_videos(reader.survey, graph.video_ids), progress)
        if not surveys:
            first = next(iter(graph.failed.values()))
            raise DataError(f"{graph.root}: none of its {len(graph)} videos can be used. First: {first}")
        videos = [frozenset(s.video_id for s in surveys if s.tasks[name].candidates) for name in by_name]
        splits = dict(split({survey.video_id: survey.preparation for survey in surveys}, videos))
        samples = {name: _sample_of(task, sampling, surveys, splits) for name, (task, sampling) in by_name.items()}
        lacking = frozenset.intersection(*(survey.lacking for survey in surveys))
        problems = (*graph.problems, *(problem for survey in surveys for problem in survey.problems))
        del surveys
        examples_by_task: dict[str, dict[int, Example]] = {name: {} for name in samples}
        jobs = _jobs(samples)
        outcomes = map_videos(reader.build, jobs)
        for outcome in tqdm(outcomes, "making examples", len(jobs), unit="video", disable=not progress):
            for name, examples in outcome.items():
                examples_by_task[name].update(examples)
    plans = {name: _plan(sample, examples_by_task[name], splits) for name, sample in samples.items() if sample.selected}
    empty = {
        name: _no_examples(str(graph.root), sample.task, sample.sampling, sample.skipped, lacking)
        for name, sample in samples.items()
        if not sample.selected
    }
    return PlannedSets(plans, empty, splits, problems, tuple(graph.failed))


def plan_release(
    release: Release, sampled_tasks: Sequence[tuple[Task, Sampling]], *, progress: bool = False
) -> PlannedSets:
    """Sample the sets of tasks whose questions come from annotation files, as `plan_tasks` does for a scene graph.

    Raises:
        ConfigError: a task is derived from a scene graph, an example names no split, or a sampling needs a graph.
        DataError: a sampling names a video that no task has, or an example cannot be written.
    """
    plans: dict[str, PlannedSet] = {}
    empty: dict[str, NoExamples] = {}
    unmatched = {name for _, sampling in sampled_tasks for name in sampling.videos or ()}
    for task, sampling in sampled_tasks:
        name = f"{task.benchmark}/{task.name}"
        for setting in ("preparations", "frame_range"):
            if getattr(sampling, setting) is not None:
                raise ConfigError(f"{name} is not sampled by {setting}. Fix: leave it out")
        if not isinstance(task, ReleaseTask):
            raise ConfigError(f"{name} needs a scene graph. Fix: build it from one")
        items = list(tqdm(task.examples(release, sampling), task.name, unit="example", disable=not progress))
        unmatched -= {_video_id(item) for item in items}
        if sampling.videos is not None:
            items = [item for item in items if _video_id(item) in sampling.videos]
        skipped = tuple(item for item in items if isinstance(item, SkippedExample))
        examples = [
            task.stamp(item)
            for item in items
            if isinstance(item, Example) and (not sampling.splits or item.metadata.get("split") in sampling.splits)
        ]
        if any("split" not in example.metadata for example in examples):
            raise ConfigError(f"{name}: an example names no split. Fix: correct the task")
        refuse_unusable(examples, f"{release.root}: {name}")
        sampled = tuple(sampling.sample(examples))
        if sampled:
            plans[task.name] = PlannedSet(task, sampling, sampled, skipped, len(examples), content_hash(sampled))
        else:
            empty[task.name] = _no_examples(str(release.root), task, sampling, skipped)
    if unmatched:
        raise DataError(f"{release.root}: no question about video {min(unmatched)!r}. Fix: choose one of its videos")
    return PlannedSets(plans, empty, {}, tuple(release.problems))


def plan_task(graph: SceneGraph, task: AnyGraphTask, sampling: Sampling, splits: Mapping[str, str]) -> PlannedSet:
    """Sample one task's frozen set. Raises NoExamples if no candidate fits the sampling."""
    plans = plan_tasks(graph, [(task, sampling)], split=lambda *_: splits)
    if plans.empty:
        raise plans.empty[task.name]
    return plans.by_task[task.name]


def _video_id(item: Example | SkippedExample) -> str:
    return item.frame.video_id if isinstance(item, SkippedExample) else item.video_id


def _read_surveys(graph: SceneGraph, outcomes: Iterable[VideoSurvey | Problem], progress: bool) -> list[VideoSurvey]:
    surveys = []
    bar = tqdm(outcomes, "reading videos", len(graph), unit="video", disable=not progress)
    for video_id, outcome in zip(graph.video_ids, bar, strict=True):
        if isinstance(outcome, Problem):
            graph.failed[video_id] = outcome
        else:
            surveys.append(outcome)
    return surveys


def _sample_of(
    task: AnyGraphTask, sampling: Sampling, surveys: Sequence[VideoSurvey], splits: Mapping[str, str]
) -> _Sample:
    """Sample a task's candidates in the selected splits, after caps over all videos."""
    vocabulary = tuple(dict.fromkeys(chain.from_iterable(s.tasks[task.name].vocabulary for s in surveys)))
    task_surveys = [s.tasks[task.name] for s in surveys if not sampling.splits or splits[s.video_id] in sampling.splits]
    candidates = tuple(chain.from_iterable(survey.candidates for survey in task_surveys))
    selection = list(task.select(candidates, vocabulary, sampling))
    selected = [item for item in selection if isinstance(item, Candidate)]
    skipped_by_caps = (item for item in selection if isinstance(item, SkippedExample))
    skipped = (*chain.from_iterable(survey.skipped for survey in task_surveys), *skipped_by_caps)
    return _Sample(task, sampling, selected, sampling.sample(range(len(selected))), vocabulary, skipped)


def _jobs(samples: Mapping[str, _Sample]) -> list[BuildJob]:
    """Return the sampled candidates as one job per video."""
    by_video: dict[str, dict[str, dict[int, Candidate]]] = defaultdict(lambda: defaultdict(dict))
    for name, sample in samples.items():
        for position in sorted(sample.order):
            candidate = sample.selected[position]
            by_video[candidate.video_id][name][position] = candidate
    return [
        BuildJob(video_id, dict(by_task), {name: samples[name].vocabulary for name in by_task})
        for video_id, by_task in sorted(by_video.items())
    ]


def _plan(sample: _Sample, built: Mapping[int, Example], splits: Mapping[str, str]) -> PlannedSet:
    by_id: dict[str, Example] = {}
    repeated = []
    for example in (built[position] for position in sample.order):
        if example.example_id in by_id:
            reason = f"{example.example_id} already exists: an object is annotated twice on this frame"
            repeated.append(SkippedExample(example.frames[0], reason))
        else:
            split = splits[example.video_id]
            by_id[example.example_id] = replace(example, metadata={**example.metadata, "split": split})
    sampled, skipped = tuple(by_id.values()), (*sample.skipped, *repeated)
    return PlannedSet(sample.task, sample.sampling, sampled, skipped, len(sample.selected), content_hash(sampled))


def _unrecorded(task: AnyGraphTask, sampling: Sampling, lacking: Collection[Layer]) -> str:
    """Return, with a remedy, the needed sections that have no records; empty if a task and its sampling lack
    nothing.
    """
    closed = {name: layer for name, layer in task.switch_layers.items() if getattr(sampling, name, False)}
    closed = {name: layer for name, layer in closed.items() if layer in lacking}
    layers = dict.fromkeys([*closed.values(), *(layer for layer in task.layers if layer in lacking)])
    if not layers:
        return ""
    names = " and no ".join(layer.replace("_", " ") for layer in layers)
    flags = " and ".join(f"--sampling {task.name}.{name}=false" for name in closed)
    return f"the graphs record no {names}. Fix: {f'give {flags}, or ' if flags else ''}annotate them"


def _no_examples(
    root: str, task: Task, sampling: Sampling, skipped: Sequence[SkippedExample], lacking: Collection[Layer] = ()
) -> NoExamples:
    settings_text = ", ".join(f"{name}={value!r}" for name, value in sampling.differences(task.sampling).items())
    where = f"{root}: no example for {task.benchmark}/{task.name} with {settings_text or 'its own sampling'}"
    switches = [name for name in sampling.names() if getattr(sampling, name) is True]
    flags = " or ".join(f"--sampling {task.name}.{name}=false" for name in switches)
    remedy = f"loosen the sampling{f' ({flags})' if flags else ''}"
    if not skipped:
        unrecorded = _unrecorded(task, sampling, lacking) if isinstance(task, GraphTask) else ""
        reason = unrecorded or f"there is none to ask about. Fix: {remedy}, or check the release"
        return NoExamples(f"{where}: {reason}")
    reasons = most_frequent_reasons(Counter(item.reason for item in skipped))
    return NoExamples(f"{where}: {len(skipped)} were left out: {reasons}. Fix: correct these faults, or {remedy}")


def task_overrides(benchmark: str, name: str, tasks: Sequence[str], sampling: Mapping[str, Any]) -> dict[str, Any]:
    """Return the overrides of one task: values under the task's name, and general values that the task reads.

    Raises:
        ConfigError: a value's name is read by no chosen task.
    """
    read_names = {task: task_class(benchmark, task).sampling.names() for task in tasks}
    shared_values = {key: value for key, value in sampling.items() if key not in tasks}
    for key in shared_values:
        if not any(key in names for names in read_names.values()):
            readable = sorted(set().union(*read_names.values()))
            remedy = nearest_of(key, [*readable, *tasks])
            raise ConfigError(f"sampling has no parameter and no task {key!r}. Fix: {remedy}")
    overrides = sampling.get(name, {})
    if not isinstance(overrides, Mapping):
        raise ConfigError(f"sampling of {name} is {overrides!r}. Fix: give name and value, e.g. {name}.limit=50")
    return {**{key: value for key, value in shared_values.items() if key in read_names[name]}, **overrides}
