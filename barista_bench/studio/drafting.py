"""The page for a domain file: proposes lines from the words of the open graphs, which a person completes.

Each line has counts and pictures. Another page lists the missing annotations that would allow `generate` to ask the
most questions.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from difflib import SequenceMatcher
from itertools import groupby

import msgspec

from barista_bench.errors import DataError
from barista_bench.files.reading import read_bounded
from barista_bench.files.writing import write_whole
from barista_bench.scene_graph.domain import MAX_BYTES, parse_domain
from barista_bench.scene_graph.domain_draft import DraftLine, draft_lines
from barista_bench.scene_graph.graph_words import GraphWords, Word, WordPlace, survey_words
from barista_bench.scene_graph.video_graph import VideoGraph
from barista_bench.studio.workspace import BackgroundWork, Json, Routes, Workspace, sent_as

DOMAIN_FILE = "domain.yaml"
_NOTE = "  # "
"""Text that comes before the source of a line."""


def _boxes(graph: VideoGraph, place: WordPlace) -> list[tuple[float, ...]]:
    """Return the boxes of a place's objects: (x, y, width, height), as fractions of the frame."""
    boxes, size = graph.boxes(place.frame), (graph.video.width, graph.video.height) * 2
    known = [boxes[item] for item in place.objects if item in boxes]
    return [tuple(round(side / whole, 4) for side, whole in zip(box, size, strict=True)) for box in known]


class FinishedDraft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The finished lines of a domain file, as the page sends them."""

    lines: tuple[str, ...]


class DraftRoutes(Routes):
    """Requests about the open release's domain file: the saved file, or lines proposed from the release's words."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._path = (workspace.folder or workspace.out) / DOMAIN_FILE
        self._lock = threading.Lock()
        self._work: BackgroundWork | None = None
        self._words = GraphWords()
        self._boxes: dict[WordPlace, list[tuple[float, ...]]] = {}
        self.reads = {"/api/draft": self._state, "/api/missing": self._missing_annotations}
        self.writes = {"/api/draft/keep": lambda body: self._keep_lines(sent_as(FinishedDraft, body))}

    def _state(self, query: Mapping[str, str]) -> Json:
        """Return the progress of reading, and the lines when reading is finished; the first call starts reading."""
        with self._lock:
            if self._work is None:
                self._work = BackgroundWork(self._survey, threading.Lock())
            work = self._work
        lines = self._lines() if work.state == "done" else []
        return {**work.progress, "path": str(self._path), "lines": lines}

    def _survey(self, work: BackgroundWork) -> None:
        if self._workspace.release is None:
            raise DataError("no release is open. Fix: name its folder when starting the studio")
        self._words = survey_words(self._workspace.release)
        places = sorted({place for places in self._words.places.values() for place in places})
        for video_id, rows in groupby(places, key=lambda place: place.video_id):
            graph = self._workspace.graph(video_id)
            self._boxes |= {place: _boxes(graph, place) for place in rows}

    def _lines(self) -> list[Json]:
        release = self._workspace.release
        proposed = draft_lines(self._words, release.root.resolve().name if release else "")
        if not self._path.is_file():
            return [self._line(text, word) for text, word in proposed]
        by_note: dict[str, list[DraftLine]] = defaultdict(list)
        for line in proposed:
            if line.word:
                by_note[self._words.note(*line.word)].append(line)
        content = read_bounded(self._path, MAX_BYTES, remedy="delete it").decode(errors="replace")
        lines = []
        for text, between, note in (line.rpartition(_NOTE) for line in content.splitlines()):
            if note in by_note:  # probably the original of the line that the person has changed
                likeness = {line: SequenceMatcher(None, line.text, text).ratio() for line in by_note[note]}
                lines.append(self._line(text, max(likeness, key=likeness.__getitem__).word))
            else:
                lines.append(self._line(f"{text}{between}{note}", None))
        return lines

    def _line(self, text: str, word: Word | None) -> Json:
        places = self._words.places[word] if word else ()
        return {
            "text": text,
            "note": self._words.note(*word) if word else "",
            "count": self._words.counts[word] if word else 0,
            "places": [{**place._asdict(), "boxes": self._boxes[place]} for place in places],
        }

    def _keep_lines(self, finished: FinishedDraft) -> Json:
        """Write the complete domain file.

        Raises ConfigError, without changing the file, if the lines are not a valid domain file.
        """
        content = "".join(f"{line}\n" for line in finished.lines).encode()
        parse_domain(content, DOMAIN_FILE)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, content)
        return {"path": str(self._path)}

    def _missing_annotations(self, query: Mapping[str, str]) -> Json:
        """Return a video's missing annotations, the most useful first.

        They come from a file that `generate` has written beside the open review files.
        """
        folders = dict.fromkeys(path.parent for path in self._workspace.reviews)
        if not folders:
            return {"is_known": False, "annotations": []}
        from barista_bench.generate.generator import MISSING_FILE, read_missing  # the import is slow

        missing_lists = [read_missing(folder) for folder in folders if (folder / MISSING_FILE).is_file()]
        rows = [row for missing in missing_lists for row in missing.annotations if row.video_id == query["video"]]
        annotations = [msgspec.to_builtins(row) for row in sorted(rows, key=lambda row: -row.items)]
        return {"is_known": bool(missing_lists), "annotations": annotations}
