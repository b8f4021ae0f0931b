"""PVSG: panoptic masks and relations over time of 400 videos (docs/other_graphs.md).

`pvsg.json` holds all annotations, `<part>/masks/<video>/NNNN.png` the masks: a pixel's value is an object's number, 0
is none. Frame k is second k / 5 of the video. The masks are panoptic: all of the dataset's own categories is marked on
every frame that has a file. Relations are what annotators found worth saying: that none is stated says nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.errors import DataError
from barista_bench.files.reading import confined, read_bounded
from barista_bench.media.video import video_facts
from barista_bench.other_graphs.source import (
    OTHER_RELATION,
    GraphSource,
    GraphWriter,
    ImportedVideo,
    Name,
    OpenedSource,
    Tally,
    relation_words,
    rles_of,
)
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.release import MALFORMED, FrameNumber, PixelCount
from barista_bench.scene_graph.terms import Terms

ANNOTATIONS = "pvsg.json"
MAX_BYTES = 2**30
"""Of `pvsg.json`."""
MAX_FRAMES = 200_000
"""Of a video: eleven hours at 5 a second."""
MAX_MASK_BYTES = 2**24
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
    """The folder that holds `pvsg.json`, or the one above it (`data/pvsg.json`).

    The file is held in memory as its bytes; a video's part is decoded when it is read.
    """

    def __init__(self, folder: Path, domain: Domain) -> None:
        self._root = folder if (folder / ANNOTATIONS).is_file() else confined(folder, "data")
        self._words = relation_words(domain)
        path = confined(self._root, ANNOTATIONS)
        try:
            file = msgspec.json.decode(read_bounded(path, MAX_BYTES, remedy=_REMEDY), type=_File)
            ids = [msgspec.json.decode(raw, type=_Id).video_id for raw in file.data]
        except MALFORMED as error:
            raise DataError(f"{path}: {error}. Remedy: {_REMEDY}") from error
        self._raws = dict(zip(ids, file.data, strict=True))
        self._repeated = {name for name, times in Counter(ids).items() if times > 1}
        self._parts = {name: part for part, splits in file.split.items() for names in splits.values() for name in names}
        self._vocabulary = sorted({*file.objects.thing, *file.objects.stuff})
        self.video_ids = sorted(self._raws)

    def digest(self, video_id: str) -> str:
        return hashlib.sha256(self._raws[video_id]).hexdigest()

    def read(self, video_id: str) -> ImportedVideo:
        where = f"{ANNOTATIONS}: {video_id!r}"
        if video_id in self._repeated or video_id not in self._parts:
            what = (
                "stands there twice" if video_id in self._repeated else "is in no split, which says where its masks are"
            )
            raise DataError(f"{where}: {what}. Remedy: {_REMEDY}")
        try:
            video = msgspec.json.decode(self._raws[video_id], type=_Video)
        except MALFORMED as error:
            raise DataError(f"{where}: {error}. Remedy: correct that field") from error
        part, tally = confined(self._root, self._parts[video_id]), Tally()
        pictures, index = _pictures(part, video_id, video.meta)
        writer = GraphWriter("pvsg", video_id, (video.meta.width, video.meta.height))
        objects = {item.object_id: writer.object(str(item.object_id), item.category) for item in video.objects}
        annotated, whole = _masks(part, video_id, video.meta, index, objects, writer, tally)
        writer.complete = dict.fromkeys(self._vocabulary, whole)
        self._relate(video, objects, index, writer, tally)
        fps, frame_count = video.meta.fps, len(pictures) if isinstance(pictures, list) else index.frame_count
        release = writer.release(frame_count, fps if isinstance(pictures, list) else index.fps, annotated, tally)
        return ImportedVideo(release, pictures, tally, _notes(video, tally))

    def _relate(
        self, video: _Video, objects: Mapping[int, str], index: _Index, writer: GraphWriter, tally: Tally
    ) -> None:
        last = video.meta.num_frames - 1
        for raw in video.relations:
            try:
                first, second, predicate, spans = msgspec.json.decode(raw, type=_Relation)
            except MALFORMED:
                tally.left_out["relations that are not [number, number, name, spans]"] += 1
                continue
            if first not in objects or second not in objects or first == second:
                tally.left_out["relations of an object that is not listed, or with itself"] += 1
                continue
            if predicate not in self._words:
                tally.taken[f"relations kept as they are: {predicate}"] += 1
            words = self._words.get(predicate, (OTHER_RELATION, predicate))
            for start, end in spans:
                if start > min(end, last):
                    tally.left_out["spans of relations that end before they begin, or begin after the video"] += 1
                    continue
                tally.left_out["ends of relations past the end of the video"] += end > last
                writer.relate(objects[first], objects[second], words, index[start], index[min(end, last)] + 1)


class _Index:
    """Annotated frame to frame of the pictures: the same in a folder of frames, the nearest in time in a video."""

    def __init__(self, frames: NDArray[np.int64], frame_count: int, fps: float) -> None:
        self._frames, self.frame_count, self.fps = frames, frame_count, fps

    def __getitem__(self, frame: int) -> int:
        return int(self._frames[frame])


def _pictures(part: Path, video_id: str, meta: _Meta) -> tuple[Path | list[Path], _Index]:
    """The frames' folder where there is one, else the video."""
    folder, count = confined(part, "frames", video_id), meta.num_frames
    if folder.is_dir():
        files = [confined(folder, f"{number:04d}.png") for number in range(count)]
        missing = [path for path in files if not path.is_file()]
        if missing:
            raise DataError(f"{missing[0]}: missing, with {len(missing) - 1} others. Remedy: {_REMEDY}")
        return files, _Index(np.arange(count), count, meta.fps)
    path = confined(part, "videos", f"{video_id}.mp4")
    if not path.is_file():
        raise DataError(f"{folder}: no such folder, nor {path.name} in {path.parent}. Remedy: fetch either")
    facts = video_facts(path)
    if (facts.width, facts.height) != (meta.width, meta.height):
        size = f"{facts.width}x{facts.height}"
        raise DataError(f"{path}: is {size}, masks are {meta.width}x{meta.height}. Remedy: give a folder of frames")
    times = np.arange(count) / meta.fps
    later = np.searchsorted(facts.seconds, times).clip(1, max(1, facts.frame_count - 1))
    later = np.minimum(later, facts.frame_count - 1)
    earlier = np.maximum(later - 1, 0)
    frames = np.where(times - facts.seconds[earlier] <= facts.seconds[later] - times, earlier, later)
    if count > 1 and (len(np.unique(frames)) < count or times[-1] > facts.duration + 1 / meta.fps):
        raise DataError(f"{path}: has no frame for each of the {count} annotated ones. Remedy: {_REMEDY}")
    return path, _Index(frames.astype(np.int64), facts.frame_count, facts.fps)


def _masks(
    part: Path, video_id: str, meta: _Meta, index: _Index, objects: Mapping[int, str], writer: GraphWriter, tally: Tally
) -> tuple[list[int], list[int]]:
    """Adds the masks of all frames; the frames that have masks, and those whose masks are all of listed objects."""
    folder, annotated, whole = confined(part, "masks", video_id), list[int](), list[int]()
    for frame in range(meta.num_frames):
        try:
            labels = _labels(confined(folder, f"{frame:04d}.png"), (meta.width, meta.height))
        except DataError as error:
            tally.left_out[f"frames without masks: {str(error).partition(': ')[2]}"] += 1
            continue
        rles = rles_of(labels)
        unlisted = rles.keys() - objects.keys()
        tally.left_out["masks of a number that is not listed"] += len(unlisted)
        writer.masks(index[frame], {objects[number]: rle for number, rle in rles.items() if number in objects})
        annotated.append(index[frame])
        if not unlisted:
            whole.append(index[frame])
    if not annotated:
        raise DataError(f"{folder}: no frame has a mask that can be read. Remedy: {_REMEDY}")
    return annotated, whole


def _labels(path: Path, size: tuple[int, int]) -> NDArray[np.uint8]:
    """A palette PNG as its numbers, (height, width)."""
    try:
        if path.stat().st_size > MAX_MASK_BYTES:
            raise DataError(f"{path.name}: its PNG is larger than {MAX_MASK_BYTES // 2**20} MiB")
        with Image.open(path, formats=("PNG",)) as image:
            if image.mode not in ("P", "L") or image.size != size:
                raise DataError(f"{path.name}: its PNG has no palette, or another size")
            return np.asarray(image, dtype=np.uint8)
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{path.name}: its PNG is missing or damaged") from error


def _notes(video: _Video, tally: Tally) -> dict[str, Any]:
    notes = msgspec.to_builtins({"captions": video.captions, "questions": video.qa_pairs, "summary": video.summary})
    tally.taken.update({"captions, as notes": len(video.captions), "questions, as notes": len(video.qa_pairs)})
    return {name: value for name, value in notes.items() if value}


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
