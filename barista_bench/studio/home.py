"""The home page: each video with how far it is and what comes next, and the opened folders with their counts."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from barista_bench.data.manifest import read_manifest
from barista_bench.files.reading import read_json_lines
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.results import RESULTS_FILE
from barista_bench.studio.posters import seconds_of
from barista_bench.studio.workspace import GRAPH, OPENABLE, PROJECT, FoundFolder, Json, View, Workspace, find_folders

_MOST_REVIEWED = 2**20
MASK_SECONDS = 5.6
DOUBT_SECONDS = 1.35 + 0.28 + 1.1
"""To look at a frame, and a key or a click."""
_OBJECTS = 5
"""On a keyframe, as long as none of the video is annotated."""
_FEWEST = 20
"""Masks below which the seconds of a project say little."""


class _Reviewed(msgspec.Struct):
    verdict: str = ""


class Pace(NamedTuple):
    """Seconds a mask takes, over `masks` of the project's decisions; 0 masks: by the model."""

    mask_seconds: float
    masks: int

    @classmethod
    def of(cls, cards: Iterable[Json]) -> Pace:
        """The pace over the videos whose decisions say how long they took."""
        timed = [(card["logged_seconds"], card["masks"]) for card in cards if card.get("logged_seconds")]
        masks = sum(count for _, count in timed)
        return cls(sum(seconds for seconds, _ in timed) / masks, masks) if masks >= _FEWEST else cls(MASK_SECONDS, 0)


def time_left(card: Json, pace: Pace, length: float | None) -> Json | None:
    """Seconds that what is next on a video will take a person: an estimate, and the masks that the pace rests on.

    Where decisions say how long they took (`seconds`), masks take what they took in this project. The studio does not
    count the seconds of people at work; without such a record the keystroke-level model's figures stand in
    (tests/studio/test_real_clip_in_browser.py: 123 s for 22 masks on the five keyframes of a real clip, contacts and
    statements among it). None where a person has nothing to do.
    """
    if card["next"] == "contacts" and length:
        return {"seconds": length, "masks": 0, "of": "length"}  # it is watched once
    if card["next"] == "keyframes":
        on_each = card["masks"] / card["annotated"] if card["annotated"] else _OBJECTS
        masks = (card["asked"] - card["done"]) * on_each
        return {"seconds": masks * pace.mask_seconds, "masks": pace.masks, "of": "masks"}
    if card["next"] == "doubtful":
        return {"seconds": card["doubtful"] * DOUBT_SECONDS, "masks": 0, "of": "frames"}
    return None


class Home(View):
    """Cards are made anew for the videos alone of which a file has changed since."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._cards: dict[str, tuple[object, Json]] = {}
        self._lock = threading.Lock()
        # A card asks for the length of a release's video when it is scrolled to, as each header is a file to open.
        self.reads = {
            "/api/home": self._home,
            "/api/length": lambda query: {"seconds": seconds_of(workspace.video_path(query["kind"], query["video"]))},
        }

    def _home(self, query: Mapping[str, str]) -> Json:
        with self._lock:
            release = self._workspace.release
            cards = list(self._project_cards())
            ready: Json = {"kind": GRAPH, "seconds": None, "next": "look", "by": []}
            cards += [{**ready, "id": video_id} for video_id in (release.video_ids if release else ())]
            found_folders = find_folders(self._workspace.folder) if self._workspace.folder else []
            reports = [path for kind, path in found_folders if kind == "report"]
            closed = [*self._closed_folders(found_folders)]
            return {"cards": cards, "folders": [*self._folders()], "closed": closed, "reports": reports}

    def _project_cards(self) -> Iterator[Json]:
        project, person = self._workspace.project, self._workspace.person
        if project is None:
            return
        from barista_bench.studio import video_progress  # needs what annotating is installed with

        lengths = {}
        for video_id, source in sorted(project.file.videos.items()):
            folder = project.folder / video_id
            stamp, cached = video_progress.stamp_of(folder, person), self._cards.get(video_id)
            if cached is None or cached[0] != stamp:
                cached = self._cards[video_id] = stamp, video_progress.progress_of(folder, person)
            lengths[video_id] = source.frames / source.fps if source.fps else None
        cards = {video_id: self._cards[video_id][1] for video_id in lengths}
        pace = Pace.of(cards.values())
        for video_id, card in cards.items():
            left = time_left(card, pace, lengths[video_id])
            yield {"kind": PROJECT, "id": video_id, "seconds": lengths[video_id], "left": left, **card}

    def _folders(self) -> Iterator[Json]:
        """The folders that are open, with counts of the nouns named; the first of them is always shown."""
        workspace = self._workspace
        if workspace.project:
            file = workspace.project.file
            yield _folder(
                "project", workspace.project.folder, {"video": len(file.videos), "lost video": len(file.lost)}
            )
        if workspace.release:
            release = workspace.release
            yield _folder("release", release.root, {"video": len(release.video_ids), "problem": len(release.problems)})
        for path in workspace.datasets:
            # The other configs are tables of the graph, whose rows ask nothing.
            sets = [config for config in read_manifest(path).get("configs", []) if config.get("content_hash")]
            questions = sum(sum(config["rows"].values()) for config in sets)
            yield _folder("dataset", path, {"set": len(sets), "question": questions})
        if runs := workspace.runs:
            models = {read_run(run).identity.model.name for run in runs}
            scored = sum((run / RESULTS_FILE).is_file() for run in runs)
            common_folder = Path(os.path.commonpath(runs)) if len(runs) > 1 else runs[0]
            yield _folder("runs", common_folder, {"run": len(runs), "scored run": scored, "model": len(models)})
        for path in workspace.reviews:
            lines = read_json_lines(path, _MOST_REVIEWED, _decode_reviewed, what="no item", remedy="generate it again")
            verdicts = [bool(row.verdict) for _, row in lines]
            yield _folder("review", path, {"item": len(verdicts), "decided item": sum(verdicts)})

    def _closed_folders(self, found_folders: Sequence[FoundFolder]) -> Iterator[Json]:
        """Folders and files in the studio's folder that can be opened and are not."""
        workspace = self._workspace
        open_paths = [path.resolve() for path in (*workspace.paths, *workspace.datasets, *workspace.reviews)]
        for kind, name in found_folders:
            path = (workspace.folder or Path()) / name
            if kind in OPENABLE and not any(path.is_relative_to(other) for other in open_paths):
                yield {"kind": kind, "path": name}


_decode_reviewed = msgspec.json.Decoder(_Reviewed).decode


def _folder(kind: str, path: Path, counts: dict[str, int]) -> Json:
    return {"kind": kind, "path": str(path), "name": path.name, "counts": counts}
