"""The home page shows each video with its progress and next step, and the opened folders with their counts."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from barista_bench.data.manifest import read_manifest
from barista_bench.files.reading import read_json_lines
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.results import RESULTS_FILE
from barista_bench.studio.posters import seconds_of
from barista_bench.studio.workspace import GRAPH, OPENABLE, PROJECT, FoundFolder, Json, Routes, Workspace, find_folders

_MOST_REVIEWED = 2**20


class _Reviewed(msgspec.Struct):
    verdict: str = ""


class HomeRoutes(Routes):
    """Requests of the home page. A video's card is made again only if one of its files has changed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._cards: dict[str, tuple[object, Json]] = {}
        self._lock = threading.Lock()
        # A card requests its video's length when it becomes visible, since a file must be opened for each header.
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
        from barista_bench.studio import video_progress  # this import needs the dependencies of annotation

        for video_id, source in sorted(project.file.videos.items()):
            folder = project.folder / video_id
            stamp, cached = video_progress.stamp_of(folder, person), self._cards.get(video_id)
            if cached is None or cached[0] != stamp:
                cached = self._cards[video_id] = stamp, video_progress.progress_of(folder, person)
            seconds = source.frames / source.fps if source.fps else None
            yield {"kind": PROJECT, "id": video_id, "seconds": seconds, **cached[1]}

    def _folders(self) -> Iterator[Json]:
        """Yield the open folders with counts of the given nouns; the count of the first noun is always shown."""
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
            # All other configs are tables of the graph, without questions.
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
        workspace = self._workspace
        open_paths = [path.resolve() for path in (*workspace.paths, *workspace.datasets, *workspace.reviews)]
        for kind, name in found_folders:
            path = (workspace.folder or Path()) / name
            if kind in OPENABLE and not any(path.is_relative_to(other) for other in open_paths):
                yield {"kind": kind, "path": name}


_decode_reviewed = msgspec.json.Decoder(_Reviewed).decode


def _folder(kind: str, path: Path, counts: dict[str, int]) -> Json:
    return {"kind": kind, "path": str(path), "name": path.name, "counts": counts}
