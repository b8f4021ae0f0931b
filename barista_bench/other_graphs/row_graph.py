"""Builds a scene graph from the rows of one video; every row is used, or counted as lost with a reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from os.path import splitext
from pathlib import Path
from typing import Any

import numpy as np

from barista_bench.media.video.frame_folder import folder_size, frame_files
from barista_bench.media.video.readers import VideoFacts, video_facts
from barista_bench.other_graphs.rows import (
    OBJECTS,
    AttributeRow,
    Moment,
    ObjectRow,
    PredicateRow,
    Rows,
    SegmentRow,
    Span,
    VideoRows,
    XywhBox,
    path_below,
)
from barista_bench.other_graphs.source import OTHER_RELATION, GraphWriter, ImportedVideo, ranges_of, relation_words
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.release import MAX_TEXT, Layer, tidy_name
from barista_bench.scene_graph.shapes import Rle

OTHER_ATTRIBUTE = "attribute"
"""Type for an attribute value that is not in the domain file."""
_TOLERANCE = 0.001
"""Maximum difference in seconds between a rounded time and the time of its frame."""


class MomentTimeline:
    """Converts moments to frames.

    Args:
        pictures: paths of the frames in order; empty if the video is a file.
    """

    def __init__(self, facts: VideoFacts, pictures: Sequence[Path]) -> None:
        self._facts = facts
        self._names = {path.stem: frame for frame, path in enumerate(pictures)}
        self._names |= {path.name: frame for frame, path in enumerate(pictures)}

    def frame(self, moment: Moment) -> int | str:
        """Return the frame at a moment, or the reason why no frame is there."""
        count = self._facts.frame_count
        if isinstance(moment, int):
            return (
                moment if 0 <= moment < count else f"frame {moment}, counted from 0, is not among the video's {count}"
            )
        if isinstance(moment, str):
            frame = self._names.get(moment, self._names.get(splitext(moment)[0]))
            return f"no picture of the video is named {moment!r}" if frame is None else frame
        if not self._facts.has_times:
            return "the pictures of a folder have no times: give `fps` in the map"
        seconds = self._facts.seconds
        if not -_TOLERANCE <= moment < seconds[-1] + 1 / (self._facts.fps or 1):
            return f"{moment} s is not in the video"
        return int(np.abs(seconds - moment).argmin())

    def span(self, span: Span) -> tuple[int, int, bool] | str:
        """Return a span's frames [start, end), and True if the video's end cut it; or why it has no frames."""
        start = self.frame(span.start)
        if isinstance(start, str):
            return start
        count = self._facts.frame_count
        if isinstance(span.start, float) and isinstance(span.end, float):
            seconds = self._facts.seconds
            if span.end < span.start:
                return "it ends before it begins"
            start, end = (int(np.searchsorted(seconds, moment - _TOLERANCE)) for moment in (span.start, span.end))
            start = min(start, count - 1)
            is_cut = bool(span.end > seconds[-1] + 1.5 / (self._facts.fps or 1))
            return start, max(end, start + 1), is_cut
        if isinstance(span.end, int):
            end = span.end + span.includes_end
        else:
            last = self.frame(span.end)
            if isinstance(last, str):
                return last
            end = last + span.includes_end
        return (start, min(end, count), end > count) if end > start else "it ends before it begins"


class RowGraph:
    """Builds the graph of a video.

    Args:
        fps: frames per second of a folder of pictures, if known.
        complete: sections with complete annotation. A section with a lost record does not count as complete.

    Raises:
        DataError: the video is missing or cannot be read.
    """

    def __init__(
        self, video_id: str, rows: Rows, domain: Domain, *, fps: float | None, complete: Collection[str]
    ) -> None:
        self._video, self._rows, self._complete, self._domain = rows.videos[video_id], rows, complete, domain
        self._pictures, facts, names = _pictures(rows.source, self._video, fps)
        self._facts, self._timeline = facts, MomentTimeline(facts, names)
        self._writer = GraphWriter("table", video_id, (facts.width, facts.height), self._video.tally)
        self._ids: dict[str, str] = {}
        self._seen: dict[str, set[int]] = defaultdict(set)
        """Maps the key of an object to the frames on which the object is annotated."""
        self._words = relation_words(domain)
        self._types = {value: kind for kind, words in domain.attributes.items() for value in words.values}

    def video(self) -> ImportedVideo:
        """Return the graph, with the lost records as notes."""
        annotated = self._add_objects()
        sections: tuple[tuple[Layer, Sequence[Any], Callable[[Any], str | None]], ...] = (
            ("attributes", self._video.attributes, self._add_attribute),
            ("relations", self._video.relations, self._add_relation),
            ("activities", self._video.segments, self._add_segment),
        )
        for layer, records, add in sections:
            for row in records:
                if problem := add(row):
                    self._video.lose(row.place, problem, section=getattr(row, "layer", layer))
        self._state_coverage(annotated)
        rate = self._facts.fps or None
        release = self._writer.release(self._facts.frame_count, rate, annotated)
        notes = {"lost": self._video.named} if self._video.named else {}
        return ImportedVideo(release, self._pictures, self._video.tally, notes)

    def _add_objects(self) -> list[int]:
        annotated = {
            frame for moment in self._video.annotated if isinstance(frame := self._timeline.frame(moment), int)
        }
        masks: dict[int, dict[str, Rle]] = defaultdict(dict)
        places: dict[tuple[int, str], ObjectRow] = {}
        for row in self._video.objects:
            frame = self._timeline.frame(row.moment)
            drawn = frame if isinstance(frame, str) else self._draw_row(row, frame)
            if isinstance(frame, str) or isinstance(drawn, str):
                self._video.lose(row.place, str(drawn), moment=None if isinstance(frame, str) else row.moment)
                continue
            object_id = self._ids.setdefault(row.key, self._writer.add_object(row.key, tidy_name(row.category)))
            self._seen[row.key].add(frame)
            if isinstance(drawn, Rle):
                masks[frame][object_id] = drawn
                places[frame, object_id] = row
            else:
                self._writer.add_box(frame, object_id, drawn)
        for frame, drawn_masks in masks.items():
            for object_id in drawn_masks.keys() - self._writer.add_masks(frame, drawn_masks):
                row = places[frame, object_id]
                self._seen[row.key].discard(frame)
                self._video.lose(row.place, "the mask has no pixel on the frame", moment=row.moment)
        return sorted(annotated.union(*self._seen.values()))

    def _draw_row(self, row: ObjectRow, frame: int) -> Rle | XywhBox | str:
        category = tidy_name(row.category)
        if problem := _name_problem("id", row.key) or _name_problem("category", category):
            return problem
        known = self._writer.objects.get(self._ids.get(row.key, ""))
        if known is not None and known != category:
            return f"object {row.key!r} is {known!r} on another frame"
        if frame in self._seen[row.key]:
            return "its object has another shape on the frame"
        width, height = self._writer.size
        if row.size is not None and row.size != (width, height):
            return f"it was drawn on {row.size[0]}x{row.size[1]} px, frames are {width}x{height}"
        try:
            return row.shape(height, width)
        except (ValueError, TypeError, OverflowError):
            return "a number of its shape is missing or wrong"

    def _spans(self, span: Span | None, *keys: str) -> list[tuple[int, int]] | str:
        """Return the frames of a span; without a span, return the frames on which all given objects are annotated."""
        for key in keys:
            if key not in self._ids:
                return f"object {key!r} is not in the video"
        if span is None:
            frames = set.intersection(*(self._seen[key] for key in keys))
            ranges = [(run.image_id_start, run.image_id_end) for run in ranges_of(frames)]
            return ranges or "it gives no time, and its objects are on no frame together"
        found = self._timeline.span(span)
        if isinstance(found, str):
            return found
        start, end, is_cut = found
        self._video.tally.left_out["ends past the end of the video"] += is_cut
        return [(start, end)]

    def _add_attribute(self, row: AttributeRow) -> str | None:
        value = tidy_name(row.value)
        kind = tidy_name(row.type or self._types.get(value, OTHER_ATTRIBUTE))
        problem = _name_problem("type", kind) or _name_problem("value", value)
        spans = problem or self._spans(row.span, row.object)
        if isinstance(spans, str):
            return spans
        for start, end in spans:
            self._writer.add_attribute(self._ids[row.object], kind, value, start, end)
        return None

    def _add_relation(self, row: PredicateRow) -> str | None:
        predicate = tidy_name(row.predicate)
        if row.subject == row.object:
            return "its subject is its object"
        if predicate not in self._words and row.type is None:
            self._video.tally.taken[f"relations kept as they are: {predicate[:MAX_TEXT]}"] += 1
        words = self._words.get(predicate, (OTHER_RELATION, predicate))
        if row.type is not None:
            words = tidy_name(row.type), words[1] if words[0] == tidy_name(row.type) else predicate
        problem = _name_problem("predicate", predicate) or _name_problem("type", words[0])
        spans = problem or self._spans(row.span, row.subject, row.object)
        if isinstance(spans, str):
            return spans
        for start, end in spans:
            self._writer.add_relation(self._ids[row.subject], self._ids[row.object], words, start, end)
        return None

    def _add_segment(self, row: SegmentRow) -> str | None:
        name = tidy_name(row.name)
        spans = _name_problem("name", name) or self._spans(row.span)
        if isinstance(spans, str):
            return spans
        self._writer.add_segment("activities" if row.layer == "activities" else "process_steps", name, *spans[0])
        return None

    def _state_coverage(self, annotated: Sequence[int]) -> None:
        """Record which sections are complete: the sections listed in the map, except where a record was lost."""
        if OBJECTS in self._complete:
            lost = {self._timeline.frame(moment) for moment in self._video.incomplete if moment is not None}
            is_lost = None in self._video.incomplete or OBJECTS in self._rows.lossy
            frames = [] if is_lost else [frame for frame in annotated if frame not in lost]
            self._writer.complete = dict.fromkeys(sorted(self._rows.vocabulary), frames)
            guess = "frames on which all of the source's categories is annotated, as the map says"
            self._video.tally.guessed[guess] += len(frames)
        for layer in ("attributes", "relations", "activities", "process_steps"):
            if layer in self._complete and layer not in self._video.lossy | self._rows.lossy:
                self._writer.layers[layer] = [(0, self._facts.frame_count)]


def _name_problem(what: str, name: str) -> str | None:
    if not name:
        return f"it has no {what}"
    return f"its {what} is longer than {MAX_TEXT} characters" if len(name) > MAX_TEXT else None


def _pictures(
    source: Path, video: VideoRows, fps: float | None
) -> tuple[Path | list[Path], VideoFacts, Sequence[Path]]:
    """Return the path that the importer links or copies, facts about it, and a folder's pictures by frame."""
    path = path_below(source, video.path)
    if not path.is_dir():
        return path, video_facts(path), ()
    if video.only is None:
        files = list(frame_files(path))
        return files, video_facts(path, fps=fps), files
    picture = path_below(path, video.only)
    width, height = folder_size((picture,))
    return [picture], VideoFacts(str(picture), 1, 0.0, width, height, np.array([np.nan])), [picture]
