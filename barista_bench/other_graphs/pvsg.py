"""Reads PVSG: panoptic masks and relations over time for 400 videos (docs/other_graphs.md).

`pvsg.json` contains all annotations except masks. The masks are in `<part>/masks/<video>/NNNN.png`: the value of a
pixel is the number of an object, and 0 is background. Frame k is at second k / 5 of the video. The masks are panoptic:
a mask file shows all objects of the dataset's categories. Annotators stated only the relations that they found
important, so a missing relation may still hold.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from barista_bench.errors import DataError
from barista_bench.files.paths import confine
from barista_bench.files.reading import as_utf8, read_bounded
from barista_bench.files.text_out import most_frequent_reasons
from barista_bench.media.video import video_facts
from barista_bench.other_graphs.source import (
    OTHER_RELATION,
    GraphSource,
    GraphWriter,
    ImportedVideo,
    ImportTally,
    Name,
    OpenedSource,
    relation_words,
)
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.release import MALFORMED, FrameNumber, PixelCount, Terms, replace_non_finite, tidy_name
from barista_bench.scene_graph.shapes import masks_of_labels, read_labels

ANNOTATIONS = "pvsg.json"
MAX_BYTES = 2**30
"""Limit of bytes for `pvsg.json`."""
MAX_FRAMES = 200_000
"""Limit of frames for a video: eleven hours at 5 frames per second."""
_REMEDY = "fetch the release again"
_Number = Annotated[int, msgspec.Meta(ge=1, le=255)]
_Text = Annotated[str, msgspec.Meta(max_length=100_000)]


class _Meta(msgspec.Struct):
    height: PixelCount
    width: PixelCount
    fps: Annotated[float, msgspec.Meta(gt=0, le=1000)]
    num_frames: Annotated[int, msgspec.Meta(ge=1, le=MAX_FRAMES)]


class _Object(msgspec.Struct):
    object_id: _Number
    category: Name


class _Caption(msgspec.Struct):
    time: Name
    description: _Text


class _Question(msgspec.Struct):
    time: Name
    question: _Text
    answer: _Text


class _Video(msgspec.Struct):
    video_id: str
    meta: _Meta
    objects: Annotated[list[_Object], msgspec.Meta(max_length=255)]
    relations: list[msgspec.Raw] = []
    captions: list[_Caption] = []
    qa_pairs: list[_Question] = []
    summary: _Text = ""


_Relation = tuple[int, int, Name, list[tuple[FrameNumber, FrameNumber]]]


class _Names(msgspec.Struct):
    thing: list[Name]
    stuff: list[Name]


class _File(msgspec.Struct):
    objects: _Names
    split: dict[str, dict[str, list[str]]]
    data: list[msgspec.Raw]


class _Id(msgspec.Struct):
    video_id: str


class Pvsg(OpenedSource):
    """The folder with `pvsg.json`, or its parent (`data/pvsg.json`).

    The file is kept in memory as bytes. The part about a video is decoded when the video is read.
    """

    def __init__(self, folder: Path, domain: Domain) -> None:
        self._root = folder if (folder / ANNOTATIONS).is_file() else confine(folder, "data")
        self._words = relation_words(domain)
        path = confine(self._root, ANNOTATIONS)
        try:
            data = replace_non_finite(as_utf8(read_bounded(path, MAX_BYTES, remedy=_REMEDY), str(path)))
            file = msgspec.json.decode(data, type=_File)
        except MALFORMED as error:
            raise DataError(f"{path}: {error}. Fix: {_REMEDY}") from error
        self._tally, ids, self._raws = ImportTally(), list[str](), dict[str, msgspec.Raw]()
        for raw in file.data:
            try:
                ids.append(msgspec.json.decode(raw, type=_Id).video_id)
                self._raws[ids[-1]] = raw
            except MALFORMED:
                self._tally.lost[f"{ANNOTATIONS}: records of videos without a video_id"] += 1
        self._repeated = {name for name, times in Counter(ids).items() if times > 1}
        self._parts = {name: part for part, splits in file.split.items() for names in splits.values() for name in names}
        self._vocabulary = sorted({tidy_name(name) for name in (*file.objects.thing, *file.objects.stuff)})
        self.video_ids = sorted(self._raws)

    @property
    def tally(self) -> ImportTally:
        return self._tally

    def digest(self, video_id: str) -> str:
        return hashlib.sha256(self._raws[video_id]).hexdigest()

    def read(self, video_id: str) -> ImportedVideo:
        where = f"{ANNOTATIONS}: {video_id!r}"
        if video_id in self._repeated or video_id not in self._parts:
            problem = (
                "stands there twice" if video_id in self._repeated else "is in no split, which says where its masks are"
            )
            raise DataError(f"{where}: {problem}. Fix: {_REMEDY}")
        try:
            video = msgspec.json.decode(self._raws[video_id], type=_Video)
        except MALFORMED as error:
            raise DataError(f"{where}: {error}. Fix: correct that field") from error
        folder = confine(self._root, self._parts[video_id])
        writer = GraphWriter("pvsg", video_id, (video.meta.width, video.meta.height), ImportTally())
        pictures, frames, frame_count, fps = _pictures(folder, video_id, video.meta, writer.tally)
        categories: dict[int, str] = {}
        for item in video.objects:
            writer.tally.lost["objects whose number is listed twice"] += item.object_id in categories
            categories.setdefault(item.object_id, tidy_name(item.category))
        objects = {number: writer.add_object(str(number), name) for number, name in categories.items()}
        annotated_frames, complete_frames = _add_masks(confine(folder, "masks", video_id), frames, objects, writer)
        writer.complete = dict.fromkeys(self._vocabulary, complete_frames)
        self._add_relations(video, objects, frames, writer)
        release = writer.release(frame_count, fps, annotated_frames)
        notes = msgspec.to_builtins({"captions": video.captions, "questions": video.qa_pairs, "summary": video.summary})
        text_counts = {"captions, as notes": len(video.captions), "questions, as notes": len(video.qa_pairs)}
        writer.tally.taken.update(text_counts)
        return ImportedVideo(release, pictures, writer.tally, {name: text for name, text in notes.items() if text})

    def _add_relations(
        self, video: _Video, objects: Mapping[int, str], graph_frames: Mapping[int, int], writer: GraphWriter
    ) -> None:
        tally, last, numbers = writer.tally, video.meta.num_frames - 1, sorted(graph_frames)
        for raw in video.relations:
            try:
                first, second, predicate, spans = msgspec.json.decode(raw, type=_Relation)
            except MALFORMED:
                tally.lost["relations that are not [number, number, name, spans]"] += 1
                continue
            if first not in objects or second not in objects or first == second:
                tally.lost["relations of an object that is not listed, or with itself"] += 1
                continue
            if predicate not in self._words:
                tally.taken[f"relations kept as they are: {predicate}"] += 1
            words = self._words.get(predicate, (OTHER_RELATION, predicate))
            for start, end in spans:
                if start > min(end, last):
                    tally.lost["spans of relations that end before they begin, or begin after the video"] += 1
                    continue
                tally.left_out["ends of relations past the end of the video"] += end > last
                present = numbers[bisect_left(numbers, start) : bisect_right(numbers, end)]
                if not present:
                    tally.lost["spans of relations on frames whose picture is missing"] += 1
                    continue
                span = graph_frames[present[0]], graph_frames[present[-1]] + 1
                writer.add_relation(objects[first], objects[second], words, *span)


def _pictures(
    part_folder: Path, video_id: str, meta: _Meta, tally: ImportTally
) -> tuple[Path | list[Path], Mapping[int, int], int, float]:
    """Return the pictures, the picture frame of each annotated frame, the number of frames, and frames per second.

    Pictures come from the folder of frames if it exists. Otherwise they come from the video, as the frames nearest in
    time. If the folder lacks a picture, its frame is lost.
    """
    folder, count = confine(part_folder, "frames", video_id), meta.num_frames
    if folder.is_dir():
        first = _first_number(folder, count, tally)
        files = {number: confine(folder, f"{number + first:04d}.png") for number in range(count)}
        present = {number: path for number, path in files.items() if path.is_file()}
        if not present:
            names = f"0000.png to {count - 1:04d}.png"
            raise DataError(f"{folder}: has none of the {count} frames {names}. Fix: {_REMEDY}")
        tally.lost["frames whose picture is missing"] += count - len(present)
        graph_frames = {number: frame for frame, number in enumerate(present)}
        return list(present.values()), graph_frames, len(present), meta.fps
    path = confine(part_folder, "videos", f"{video_id}.mp4")
    if not path.is_file():
        raise DataError(f"{folder}: no such folder, nor {path.name} in {path.parent}. Fix: fetch either")
    facts = video_facts(path)
    if (facts.width, facts.height) != (meta.width, meta.height):
        size = f"{facts.width}x{facts.height}"
        raise DataError(f"{path}: is {size}, masks are {meta.width}x{meta.height}. Fix: give a folder of frames")
    times = np.arange(count) / meta.fps
    later = np.searchsorted(facts.seconds, times).clip(1, max(1, facts.frame_count - 1))
    later = np.minimum(later, facts.frame_count - 1)
    earlier = np.maximum(later - 1, 0)
    frames = np.where(times - facts.seconds[earlier] <= facts.seconds[later] - times, earlier, later)
    if count > 1 and (len(np.unique(frames)) < count or times[-1] > facts.duration + 1 / meta.fps):
        raise DataError(f"{path}: lacks frames for some of the {count} annotated ones. Fix: {_REMEDY}")
    return path, dict(enumerate(frames.tolist())), facts.frame_count, facts.fps


def _first_number(folder: Path, count: int, tally: ImportTally) -> int:
    """Return the number in the first frame's name: 1 if the names certainly count from 1, else 0."""
    counts_from_one = not (folder / "0000.png").exists() and (folder / f"{count:04d}.png").is_file()
    tally.guessed["folders whose names count from 1"] += counts_from_one
    return int(counts_from_one)


def _add_masks(
    folder: Path, graph_frames: Mapping[int, int], objects: Mapping[int, str], writer: GraphWriter
) -> tuple[list[int], list[int]]:
    """Add the masks of all frames.

    Return the frames with masks, and the frames on which every mask belongs to a listed object.
    """
    annotated_frames, complete_frames = list[int](), list[int]()
    problems: Counter[str] = Counter()
    first = _first_number(folder, max(graph_frames) + 1, writer.tally)
    for number, frame in graph_frames.items():
        try:
            labels = read_labels(confine(folder, f"{number + first:04d}.png"))
            if labels.shape != writer.size[::-1]:
                raise ValueError(f"{labels.shape[1]}x{labels.shape[0]} px, not {writer.size[0]}x{writer.size[1]}")
        except ValueError as error:
            problems[str(error)] += 1
            continue
        rles = masks_of_labels(labels)
        unlisted = rles.keys() - objects.keys()
        writer.tally.lost["masks of a number that is not listed"] += len(unlisted)
        writer.add_masks(frame, {objects[label]: rle for label, rle in rles.items() if label in objects})
        annotated_frames.append(frame)
        if not unlisted:
            complete_frames.append(frame)
    if not annotated_frames:
        raise DataError(
            f"{folder}: no picture of masks can be used ({most_frequent_reasons(problems)}). Fix: {_REMEDY}"
        )
    writer.tally.lost.update({f"pictures of masks: {reason}": count for reason, count in problems.items()})
    return annotated_frames, complete_frames


SOURCE = GraphSource(
    name="pvsg",
    terms=Terms(
        title="PVSG",
        licence="other",
        licence_note="Annotations: MIT. Videos: the licences of VidOR, EPIC-KITCHENS (CC BY-NC 4.0) and Ego4D.",
        citation="""@inproceedings{pvsg2023,
  title = {Panoptic Video Scene Graph Generation},
  author = {Yang, Jingkang and Peng, Wenxuan and Li, Xiangtai and Guo, Zujin and Chen, Liangyu and Li, Bo and Ma, Zheng
    and Zhou, Kaiyang and Zhang, Wayne and Loy, Chen Change and Liu, Ziwei},
  booktitle = {CVPR},
  year = {2023}
}""",
        homepage="https://jingkang50.github.io/PVSG/",
    ),
    open=Pvsg,
)
