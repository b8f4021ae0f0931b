"""Reads COCO files as rows: instances on pictures."""

from __future__ import annotations

from typing import Any

import msgspec

from barista_bench.other_graphs.drawing import box_shape, coco_shape
from barista_bench.other_graphs.rows import AttributeRow, Holder, ObjectRow, Rows, VideoRows
from barista_bench.scene_graph.release import MALFORMED

PATTERNS = ("*.json", "annotations/*.json")
_Id = int | str


class _Image(msgspec.Struct):
    id: _Id
    file_name: str
    width: int | None = None
    height: int | None = None


class _Category(msgspec.Struct):
    id: _Id
    name: str


class _Annotation(msgspec.Struct):
    id: _Id
    image_id: _Id
    category_id: _Id
    segmentation: msgspec.Raw = msgspec.Raw(b"null")
    bbox: tuple[float, float, float, float] | None = None
    iscrowd: int = 0
    track_id: _Id | None = None
    instance_id: _Id | None = None
    attributes: dict[str, Any] = {}

    @property
    def track(self) -> str | None:
        for track in (self.track_id, self.instance_id, self.attributes.get("track_id")):
            if isinstance(track, int | str):
                return str(track)
        return None


class _Image_Of(msgspec.Struct):
    image_id: _Id


class _File(msgspec.Struct):
    images: list[msgspec.Raw]
    annotations: list[msgspec.Raw]
    categories: list[msgspec.Raw]


def add_rows(rows: Rows, export: str | None) -> None:
    """Add the instances of all files. An annotation without a track is a separate object."""
    for path in rows.files(*([export] if export else PATTERNS)):
        if content := rows.content(path, _File):
            _PictureFile(rows, rows.place(path)).add(content)


class _PictureFile:
    def __init__(self, rows: Rows, place: str) -> None:
        self._rows, self._place = rows, place
        self._pictures: dict[_Id, tuple[VideoRows, str, tuple[int, int] | None]] = {}

    def add(self, content: _File) -> None:
        rows, place = self._rows, self._place
        names = {one.id: one.name for _, one in rows.records(content.categories, _Category, f"{place}: categories")}
        rows.vocabulary |= {name for name in names.values() if name}
        for where, image in rows.records(content.images, _Image, f"{place}: images"):
            found = rows.find(image.file_name)
            if found is None:
                rows.lose(where, "not exactly one picture below the source is named so")
                continue
            video, name = rows.picture(found)
            size = (image.width, image.height) if image.width and image.height else None
            self._pictures[image.id] = video, name, size
            video.annotated.append(name)
        for where, record in rows.records(content.annotations, _Annotation, f"{place}: annotations", self._holder):
            self._add(where, record, names)

    def _holder(self, raw: msgspec.Raw) -> Holder:
        try:
            video, name, _ = self._pictures[msgspec.json.decode(raw, type=_Image_Of).image_id]
        except (*MALFORMED, KeyError):
            return None, None
        return video, name

    def _add(self, where: str, record: _Annotation, names: dict[_Id, str]) -> None:
        if record.image_id not in self._pictures:
            self._rows.lose(where, "its image is not in the file, or its picture is missing")
            return
        video, moment, size = self._pictures[record.image_id]
        segmentation = record.segmentation if bytes(record.segmentation) not in (b"[]", b"null") else None
        if record.iscrowd:
            video.tally.left_out["crowds: several things as one mask"] += 1
            video.incomplete.add(moment)
        elif record.category_id not in names:
            video.lose(where, "its category is not in the file", moment=moment)
        elif segmentation is None and record.bbox is None:
            video.lose(where, "it has neither segmentation nor bbox", moment=moment)
        else:
            shape = coco_shape(segmentation) if segmentation else box_shape(record.bbox or ())
            video.tally.guessed["identities: an annotation without a track is an object of its own"] += not record.track
            key = record.track or str(record.id)
            self._rows.add_object(video, ObjectRow(where, key, names[record.category_id], moment, shape, size))
            for kind, value in record.attributes.items():
                if isinstance(value, str) and value and kind != "track_id":
                    video.attributes.append(AttributeRow(where, key, value, kind, None))
