"""The pages that show scene graphs (list of videos, tables of a video, one frame, search) and the report of runs."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from barista_bench.api import load_results
from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.lexical import content_words
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import Example
from barista_bench.core.prompt import TextPart
from barista_bench.data.trace import explained_reference, trace
from barista_bench.errors import DataError
from barista_bench.reporting import write_report
from barista_bench.scene_graph.coverage import frame_ranges
from barista_bench.scene_graph.video_graph import HAND_RELATION, HANDS, Ranges, Segment, VideoGraph
from barista_bench.studio.footage import frame_seconds
from barista_bench.studio.given_answers import GivenAnswers
from barista_bench.studio.prompts_for_people import prompt_for_people
from barista_bench.studio.rating import runs_to_rate
from barista_bench.studio.workspace import GRAPH, BackgroundWork, Json, Routes, Workspace, whole_number

MAX_ROWS, MAX_NEAREST = 500, 5
"""Limits of rows in the search results of one video: matching rows, and nearest rows."""
FrameRange: TypeAlias = tuple[int, int]


class ExploreRoutes(Routes):
    """Requests about a release, and about the examples made from it."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._given = workspace, GivenAnswers(workspace)
        self.reads = {
            "/api/studio": lambda query: overview(workspace),
            "/api/video": lambda query: tables(workspace.graph(query["video"])),
            "/api/frame": lambda query: graph_on_frame(workspace.graph(query["video"]), whole_number(query, "frame")),
            "/api/search": lambda query: self._search(query["video"], query["text"]),
            "/api/moment": lambda query: self._questions_about(query["video"], whole_number(query, "frame")),
        }

    def _search(self, video_id: str, text: str) -> Json:
        """Return the results of `search`; if the video file exists, also the times of their ranges in seconds."""
        found = search(self._workspace.graph(video_id), text)
        frames = {frame for row in found["rows"] + found["nearest"] for span in row["ranges"] for frame in span}
        return {**found, "seconds": self._seconds_of(video_id, frames) if frames else {}}

    def _seconds_of(self, video_id: str, frames: Iterable[int]) -> dict[int, float]:
        """Return the times of frames; the frame after the last has the time of the last frame."""
        try:
            seconds = frame_seconds(self._workspace.video_path(GRAPH, video_id))
        except DataError:
            return {}
        return {frame: seconds[min(frame, len(seconds) - 1)] for frame in frames}

    def _questions_about(self, video_id: str, frame: int) -> Json:
        """Return the open datasets' questions about a frame, each with the answers of the open runs."""
        examples = trace(self._workspace.examples(), video_id, frame).here
        asked = [{**_show_question(traced.example), "answers": self._given.to(traced.example)} for traced in examples]
        return {"asked": asked}


def overview(workspace: Workspace) -> Json:
    """Return the open folders without reading a graph, since 185 graphs would take minutes."""
    release, project = workspace.release, workspace.project
    return {
        "person": workspace.person,
        "graphs": list(release.video_ids) if release else [],
        "projects": sorted(project.file.videos) if project else [],
        "problems": [str(problem) for problem in release.problems] if release else [],
        "datasets": len(workspace.datasets),
        "runs": len(workspace.runs),
        "rated": len(runs_to_rate(workspace)),
        "reviews": len(workspace.reviews),
        "compared": len(workspace.compared),
        "folder": str(workspace.folder) if workspace.folder else None,
    }


def display_names(categories: Mapping[str, str]) -> dict[str, str]:
    """Map object ids to categories; if a category has several objects, they are numbered in the given order."""
    counts = Counter(categories.values())
    numbers: Counter[str] = Counter()
    names = {}
    for object_id, category in categories.items():
        numbers[category] += 1
        names[object_id] = f"{category} {numbers[category]}" if counts[category] > 1 else category
    return names


def tables(graph: VideoGraph) -> Json:
    """Return a video's data except boxes and masks: objects with the ranges of their boxes, and rows of ranges.

    A row is {layer, text, objects, ranges}, with half-open ranges in frames. The ranges of a relation are the ranges
    where both objects have a box, as in `VideoGraph.relations`.
    """
    names = display_names({item.id: item.category for item in graph.objects})
    return {
        "objects": [
            {"id": item.id, "name": names[item.id], "ranges": frame_ranges(graph.frames_of(index))}
            for index, item in enumerate(graph.objects)
        ],
        "rows": [
            *_segment_rows("activity", graph.activities()),
            *_segment_rows("step", graph.steps()),
            *_statement_rows(graph, "relation", graph.relations_table, names),
            *_statement_rows(graph, "attribute", graph.attributes_table, names),
        ],
        "problems": [str(problem) for problem in graph.problems],
    }


def _segment_rows(layer: str, segments: list[Segment]) -> Iterator[Json]:
    for segment in segments:
        yield {"layer": layer, "text": segment.name, "objects": [], "ranges": [(segment.start, segment.end)]}


def _statement_rows(graph: VideoGraph, layer: str, table: Ranges, names: Mapping[str, str]) -> Iterator[Json]:
    rows: dict[tuple[int, int, int], list[FrameRange]] = {}
    for position in range(len(table.start)):
        frames = graph.frames_with_boxes(table, position) if layer == "relation" else None
        ranges = [(int(table.start[position]), int(table.end[position]))] if frames is None else frame_ranges(frames)
        key = (int(table.source[position]), int(table.target[position]), int(table.label[position]))
        rows.setdefault(key, []).extend(ranges)
    for (source, target, label), ranges in rows.items():
        kind, value = table.labels[label]
        ends = [graph.objects[index] for index in (source, target) if index >= 0]
        parts = [names[ends[0].id], *((value, names[ends[1].id]) if len(ends) == 2 else (f"{kind}:", value))]
        is_contact = kind == HAND_RELATION and ends[0].category.casefold() in HANDS
        if ranges:
            yield {
                "layer": "contact" if is_contact else layer,
                "text": " ".join(parts),
                "objects": [item.id for item in ends],
                "ranges": sorted(ranges),
            }


def graph_on_frame(graph: VideoGraph, number: int) -> Json:
    """Return the graph on one frame: objects with boxes and masks, and the statements that hold on the frame.

    Boxes are [x, y, width, height] in pixels of the displayed frame. Masks are COCO run lengths; `problem` replaces a
    mask that cannot be used.
    """
    if number >= graph.frame_count:
        raise DataError(f"{graph.video_id}: no frame {number}. Fix: it has {graph.frame_count}, counted from 0")
    names = display_names({item.id: item.category for item in graph.objects})
    instances = graph.instances(number)
    boxed_objects = []
    for item, rle in zip(instances, graph.rles(instances), strict=True):
        mask = {"problem": str(rle)} if isinstance(rle, DataError) else {"counts": rle.counts, "size": rle.size}
        boxed_objects.append({"object": item.object.id, "name": names[item.object.id], "box": item.bbox, "mask": mask})
    return {
        "frame": number,
        "instances": boxed_objects,
        "relations": [
            {"source": r.source.id, "target": r.target.id, "type": r.type, "value": r.value}
            for r in graph.relations(number)
        ],
        "attributes": [{"object": a.object.id, "type": a.type, "value": a.value} for a in graph.attributes(number)],
        "activities": [segment.name for segment in graph.activities(number)],
        "steps": [segment.name for segment in graph.steps(number)],
    }


def search(graph: VideoGraph, text: str) -> Json:
    """Return the moments of a video that match a text, as rows of `tables`, best first.

    `more` is the number of rows that are left out. Words are compared without their endings ("hold", "holds"). The rows
    contain all words; rows with the words in the given order come first ("left hand holds pitcher"). If no row contains
    all words, `nearest` has the rows that contain most of them.
    """
    words = content_words(text)
    if not words:
        raise DataError("nothing to search for. Fix: type a statement, such as: left hand holds pitcher")
    scored = []
    for row in tables(graph)["rows"]:
        row_words = content_words(row["text"])
        words_left = iter(row_words)
        scored.append((len(set(words) & set(row_words)), all(word in words_left for word in words), row))
    scored.sort(key=lambda entry: entry[:2], reverse=True)
    rows = [row for shared, _, row in scored if shared == len(set(words))]
    nearest = [row for shared, _, row in scored if 0 < shared == scored[0][0]] if not rows else []
    return {"rows": rows[:MAX_ROWS], "more": max(0, len(rows) - MAX_ROWS), "nearest": nearest[:MAX_NEAREST]}


def _show_question(example: Example) -> Json:
    prompt = get_task(example.benchmark, example.task).prompt(example, DEFAULT_BOX_FORMAT)
    return {
        "task": example.task,
        "id": example.example_id,
        "label": example.label,
        "question": prompt_for_people("\n".join(part.text for part in prompt.parts if isinstance(part, TextPart))),
        "frames": [reference.frame_index for reference in example.frames],
        "reference": [row.text for row in explained_reference(example)],
    }


class ReportRoutes(Routes):
    """Requests about the report on all open runs, which the first request starts, and about its examples."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._folder = tempfile.TemporaryDirectory(prefix="barista_bench-studio-")  # deleted when the studio ends
        self._lock = threading.Lock()
        self._work: BackgroundWork | None = None
        self.page: Path | None = None
        self.reads = {"/api/report": self._report_state, "/api/example": self._example_frames}

    def _report_state(self, query: Mapping[str, str]) -> Json:
        """Return the progress of the report; the first call starts it."""
        runs = self._workspace.runs
        if not runs:
            raise DataError("no run is open. Fix: name run folders when starting the studio")
        with self._lock:
            if self._work is None:
                self._work = BackgroundWork(self._make_report, threading.Lock())
        return {"runs": len(runs), **self._work.progress}

    def _make_report(self, work: BackgroundWork) -> None:
        out = Path(self._folder.name) / "report"
        results = load_results(self._workspace.runs)
        self.page, _ = write_report((*results.runs, *results.stopped), out, studio=True)

    def _example_frames(self, query: Mapping[str, str]) -> Json:
        """Return the video and the frames of an example. Raises DataError for an unknown example."""
        example_id = query["id"]
        for examples in self._workspace.examples().values():
            for example in examples:
                if example.example_id == example_id:
                    frames = [reference.frame_index for reference in example.frames]
                    return {"video": example.video_id, "frames": frames}
        raise DataError(f"{example_id!r}: no such example is open. Fix: name its dataset when starting the studio")
