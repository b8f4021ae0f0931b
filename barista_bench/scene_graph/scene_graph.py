"""A data root as a sequence of video graphs, one video in memory at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from barista_bench.errors import DataError
from barista_bench.files.paths import confined, valid_video_id
from barista_bench.scene_graph.checks import check
from barista_bench.scene_graph.problems import Problem, ProblemLog
from barista_bench.scene_graph.reading import MAX_BYTES, read_release
from barista_bench.scene_graph.release import ANNOTATION_FILE, VIDEO_FILE
from barista_bench.scene_graph.video_graph import VideoGraph


class SceneGraph:
    """Every video graph under a data root, read lazily.

    A folder counts as a video when it holds `coco_annotation.json`; videos come in sorted order. A bad record is
    left out, a bad file costs its video; both are listed in `problems` of the video or of this object.

    Args:
        root: folder that holds one folder a video.
        strict: raise at the first error instead of leaving the record out.
        cache_videos: how many video graphs are kept once read.

    Raises:
        DataError: the root does not exist or holds no video.
    """

    def __init__(self, root: str | Path, *, strict: bool = False, cache_videos: int = 2) -> None:
        self.root = Path(root)
        self.strict = strict
        self._cache: OrderedDict[str, VideoGraph] = OrderedDict()
        self._cache_videos = cache_videos
        self.failed: dict[str, Problem] = {}
        """Videos that cannot be used, as far as they have been read, by id."""
        self.video_ids, self._root_problems = _find_videos(self.root)
        if strict and self._root_problems:
            raise DataError(str(self._root_problems[0]))

    def __getstate__(self) -> dict[str, object]:
        """Without cached graphs: another process reads what it needs itself."""
        return {**self.__dict__, "_cache": OrderedDict()}

    def __len__(self) -> int:
        return len(self.video_ids)

    def __contains__(self, video_id: object) -> bool:
        return video_id in self.video_ids

    def __iter__(self) -> Iterator[VideoGraph]:
        return self.videos()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with folders and whole files, as far as they have been read."""
        return (*self._root_problems, *self.failed.values())

    def __getitem__(self, video_id: str) -> VideoGraph:
        """The graph of one video.

        Raises:
            DataError: the video is unknown, or its annotation file is unusable as a whole.
        """
        if video_id not in self._cache:
            if video_id not in self.video_ids:
                raise DataError(f"{self.root}: no video {video_id!r}. Remedy: choose one of its {len(self)} videos")
            self._cache[video_id] = self._read(video_id)
            while len(self._cache) > self._cache_videos:
                self._cache.popitem(last=False)
        self._cache.move_to_end(video_id)
        return self._cache[video_id]

    def videos(self, video_ids: Iterable[str] | None = None, *, progress: bool = False) -> Iterator[VideoGraph]:
        """Usable video graphs, sorted by id; unusable ones are skipped and listed in `problems`."""
        chosen = self.video_ids if video_ids is None else tuple(sorted(set(video_ids)))
        for video_id in tqdm(chosen, desc="reading graphs", unit="video", disable=not progress):
            try:
                graph = self[video_id]
            except DataError as error:
                if self.strict or video_id not in self.video_ids:
                    raise
                self.failed[video_id] = _file_problem(video_id, error)
                continue
            yield graph

    def video_path(self, video_id: str) -> Path:
        """Where the video file of `video_id` must lie. Raises DataError for an id or link that leaves the root."""
        return confined(self.root, video_id, VIDEO_FILE)

    def relation_labels(self) -> tuple[tuple[str, str], ...]:
        """(relation type, value) pairs that hold on some frame of any video, sorted."""
        return tuple(sorted({label for graph in self for label in graph.held_labels()}))

    def _read(self, video_id: str) -> VideoGraph:
        log = ProblemLog(f"{video_id}/{ANNOTATION_FILE}")
        path = confined(self.root, video_id, ANNOTATION_FILE)
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise DataError(f"{log.file}: cannot be read ({error.strerror}). Remedy: fetch the file again") from error
        read = read_release(data, log)
        check(read, log)
        errors = [problem for problem in log if problem.severity == "error"]
        if self.strict and errors:
            raise DataError(str(errors[0]))
        return VideoGraph(video_id, read, tuple(log))


def _find_videos(root: Path) -> tuple[tuple[str, ...], list[Problem]]:
    if not root.is_dir():
        raise DataError(f"{root}: no such folder. Remedy: give the folder that holds one folder a video")
    video_ids, problems = [], []
    for entry in sorted(root.iterdir(), key=lambda path: path.name):
        if not entry.is_dir():
            continue
        try:
            if not valid_video_id(entry.name):
                raise DataError(f"{entry.name!r} is no usable video id. Remedy: rename the folder")
            annotation = confined(root, entry.name, ANNOTATION_FILE)
            confined(root, entry.name, VIDEO_FILE)
        except DataError as error:
            what = str(error).partition(". Remedy: ")[0]
            problems.append(Problem("error", repr(entry.name), "", f"{what}: left out", "rename it or copy it in"))
            continue
        if annotation.is_file():
            video_ids.append(entry.name)
        elif (entry / VIDEO_FILE).exists():
            what = f"the video has no {ANNOTATION_FILE}: left out"
            problems.append(Problem("error", f"{entry.name}/{ANNOTATION_FILE}", "", what, "fetch the annotation"))
    if not video_ids:
        detail = f" ({problems[0]})" if problems else ""
        raise DataError(
            f"{root}: no folder with a {ANNOTATION_FILE} in it{detail}. "
            "Remedy: give the folder that holds one folder a video"
        )
    return tuple(video_ids), problems


def _file_problem(video_id: str, error: DataError) -> Problem:
    what, _, remedy = str(error).partition(". Remedy: ")
    return Problem("error", video_id, "", f"{what}: the video is left out", remedy or "fetch the video again")
