"""Imports another dataset as a folder of scene graphs.

Each video is written completely or not at all, so a later call can continue an interrupted import.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from tqdm import tqdm

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.owned_folders import refuse_inside, replacing_folder
from barista_bench.files.paths import confine, valid_video_id
from barista_bench.files.reading import read_bounded
from barista_bench.files.writing import place_file, write_whole
from barista_bench.media.video import open_reader
from barista_bench.other_graphs.source import ImportTally, OpenedSource, graph_source
from barista_bench.scene_graph.domain import load_domain
from barista_bench.scene_graph.release import (
    ANNOTATION_FILE,
    MALFORMED,
    VIDEO_FILE,
    Terms,
    encode,
    read_terms,
    write_terms,
)

RECORD_FILE = "import.json"
NOTES_FILE = "notes.json"
MAX_RECORD = 2**20
"""Limit of bytes for the record of a video."""


class ImportRecord(msgspec.Struct, frozen=True):
    """`import.json` in a video's folder: the SHA-256 of annotations and domain file, and the counts of the import."""

    digest: str
    counts: dict[str, dict[str, int]]

    @property
    def tally(self) -> ImportTally:
        return ImportTally(*(Counter(self.counts.get(name)) for name in ImportTally.__struct_fields__))


@dataclass
class ImportReport:
    """The result of an import: written videos, videos that already existed, counts, and lost videos with reasons."""

    videos: int = 0
    resumed: int = 0
    tally: ImportTally = field(default_factory=ImportTally)
    lost: dict[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Return True if no video and no record was lost."""
        return not self.lost and not +self.tally.lost

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report; larger counts come first."""
        yield f"{self.videos} videos, {self.resumed} of them imported before, {len(self.lost)} lost"
        for name in ImportTally.__struct_fields__:
            for label, count in getattr(self.tally, name).most_common():
                if count:
                    yield f"{name.replace('_', ' ')}: {count} {label}"
        for video_id, reason in self.lost.items():
            yield f"lost: {video_id}: {reason}"


def import_graphs(
    name: str,
    source: Path,
    out: Path,
    *,
    domain: Path | None = None,
    videos: Sequence[str] = (),
    map: str | None = None,
    progress: bool = False,
) -> ImportReport:
    """Write the videos of a dataset as graphs in the release layout, with `terms.yaml` beside them.

    Pictures are linked if the disk supports links, else copied. Videos that are already in `out` are skipped, so that a
    call continues an interrupted import.

    Args:
        name: name of a reader in `barista_bench.graph_sources`.
        source: the dataset's folder.
        out: a new folder, or the folder of an earlier call with the same arguments.
        domain: file with the vocabulary of the predicates; None for coffee making.
        videos: ids of the videos to import; all videos if empty.
        map: for the reader `table`, the name of a tool or the path of a map.

    Raises:
        ConfigError: the reader or a video is unknown, or `out` contains other files.
        DataError: the dataset cannot be read, or none of its videos can be used.
    """
    reader = graph_source(name)
    if not source.is_dir():
        raise DataError(f"{source}: no such folder. Fix: give the path of the dataset's folder")
    refuse_inside(out, source)
    loaded_domain = load_domain(domain)
    if map is None:
        dataset = reader.open(source, loaded_domain)
    elif reader.open_mapped:
        dataset = reader.open_mapped(source, loaded_domain, map)
    else:
        raise ConfigError(f"--map: {name} has a fixed layout. Fix: leave --map out, or give --from table")
    if unknown := sorted(set(videos).difference(dataset.video_ids)):
        raise ConfigError(f"videos: {source} has no {unknown[0]!r}. Fix: choose among its {len(dataset.video_ids)}")
    _prepare_root(out, dataset.terms or reader.terms)
    report = ImportReport()
    report.tally.update(dataset.tally)
    for video_id in tqdm(sorted(videos) or dataset.video_ids, "importing", unit="video", disable=not progress):
        try:
            if not valid_video_id(video_id):
                raise DataError(f"{video_id!r}: is not a usable name. Fix: rename the video")
            folder = confine(out, video_id)
            digest = hashlib.sha256(dataset.digest(video_id).encode() + msgspec.json.encode(loaded_domain)).hexdigest()
            record = _earlier_record(folder, digest)
            report.resumed += record is not None
            tally = record.tally if record else _write_video(dataset, video_id, folder, digest)
        except DataError as error:
            report.lost[video_id] = str(error)
            continue
        report.videos += 1
        report.tally.update(tally)
    if not report.videos:
        reasons = [*report.lost.values(), *report.tally.lost, *report.tally.left_out, "there is none"]
        remedy = "" if ". Fix: " in reasons[0] else ". Fix: export the annotations again"
        raise DataError(f"{source}: no video can be used: {reasons[0]}{remedy}")
    return report


def _prepare_root(out: Path, terms: Terms) -> None:
    if out.is_dir() and any(out.iterdir()) and read_terms(out) != terms:
        raise ConfigError(f"{out}: contains other files. Fix: choose a new folder")
    out.mkdir(parents=True, exist_ok=True)
    write_terms(out, terms)


def _earlier_record(folder: Path, digest: str) -> ImportRecord | None:
    """Return the record of an existing video, if the video was made from the same annotations."""
    path, remedy = folder / RECORD_FILE, "remove the folder, and import again"
    if not folder.exists():
        return None
    try:
        record = msgspec.json.decode(read_bounded(path, MAX_RECORD, remedy=remedy), type=ImportRecord)
    except MALFORMED as error:
        raise DataError(f"{path}: {error}. Fix: {remedy}") from error
    if record.digest != digest:
        raise DataError(f"{folder}: was imported from other annotations, or by another domain file. Fix: {remedy}")
    return record


def _write_video(dataset: OpenedSource, video_id: str, folder: Path, digest: str) -> ImportTally:
    video = dataset.read(video_id)
    metadata = video.release.video_metadata[0]
    with replacing_folder(folder) as new_folder:
        _place_pictures(video.pictures, new_folder / VIDEO_FILE)
        with open_reader(new_folder / VIDEO_FILE) as pictures:
            if (len(pictures), pictures.size) != (metadata.frame_count, (metadata.width, metadata.height)):
                actual = f"{len(pictures)} frames of {pictures.size}"
                expected = f"{metadata.frame_count} of {(metadata.width, metadata.height)}"
                raise DataError(f"{folder.name}: its pictures are {actual}, not {expected}. Fix: fetch them again")
        write_whole(new_folder / ANNOTATION_FILE, encode(video.release))
        if video.notes:
            write_whole(new_folder / NOTES_FILE, msgspec.json.format(msgspec.json.encode(video.notes), indent=1))
        record = ImportRecord(digest, msgspec.to_builtins(video.tally))
        write_whole(new_folder / RECORD_FILE, msgspec.json.encode(record))
    return video.tally


def _place_pictures(pictures: Path | Sequence[Path], target: Path) -> None:
    """Link or copy a video, or link or copy the pictures of all frames into a folder, in the order of the frames."""
    if isinstance(pictures, Path):
        place_file(pictures.resolve(), target)
        return
    target.mkdir()
    for number, path in enumerate(pictures):
        place_file(path.resolve(), target / f"{number:06d}{os.path.splitext(path.name)[1].lower()}")
