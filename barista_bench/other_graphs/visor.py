"""Reads VISOR: sparse masks of hands and of the things that they use in EPIC-KITCHENS (docs/other_graphs.md).

If the video exists, the frames of a graph are all frames of the video; otherwise they are the annotated pictures, one
after the other. The annotation has no identities over time, so identities are guessed: entities with the same name in
one subsequence are one object. If a picture has a name several times, the overlap of masks decides which entity is
which object. A hand is one object throughout the video. An annotated contact of a hand becomes a relation. Other
contacts of the hand are unknown, except where the annotation says that the hand touches nothing. The values
"inconclusive" and "none of the above" give no information. If a name is "exhaustive" on a picture, all visible
instances of the name are marked there.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from PIL import Image
from scipy.optimize import linear_sum_assignment

from barista_bench.errors import DataError
from barista_bench.files.paths import confine, valid_video_id
from barista_bench.files.reading import as_utf8, read_bounded
from barista_bench.files.text_out import without_numbers
from barista_bench.media.video import video_facts
from barista_bench.other_graphs.source import GraphSource, GraphWriter, ImportedVideo, ImportTally, Name, OpenedSource
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.masks import mask_ious
from barista_bench.scene_graph.release import MALFORMED, Terms, replace_non_finite
from barista_bench.scene_graph.shapes import Rle, mask_of_polygons

RELEASE = "GroundTruth-SparseAnnotations"
MAPPING = "frame_mapping.json"
SIZE = (1920, 1080)
"""Width and height of the pictures on which the polygons are drawn."""
MAX_BYTES = 2**29
"""Limit of bytes for the annotations of a video, and for the mapping of frames."""
_REMEDY = "fetch the release again"
_SPLITS = ("train", "val")
_NUMBER = re.compile(r"frame_0*(\d{1,9})\.(?:jpg|png)\Z")
_HANDS = ("left hand", "right hand")
_FREE = ("hand-not-in-contact", "glove-not-in-contact")
_UNKNOWN = ("inconclusive", "none-of-the-above")
_NEW_RATE, _OLD_RATE = 50.0, 59.94
"""Frames per second of the EPIC-KITCHENS-100 videos with three-digit numbers, and of the earlier videos."""
Polygon = list[tuple[float, float]]


class _Picture(msgspec.Struct):
    name: Name
    subsequence: Name
    video: Name
    image_path: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class _Entity(msgspec.Struct):
    id: Name
    name: Name
    segments: Annotated[list[Polygon], msgspec.Meta(max_length=10_000)]
    exhaustive: str = "inconclusive"
    in_contact_object: str | None = None
    on_which_hand: list[str] | str = []

    @property
    def plain_name(self) -> str:
        """The name for comparison, in one case and with uniform white space."""
        return " ".join(self.name.split()).lower()

    @property
    def hands(self) -> list[str]:
        """The hands that wear this glove."""
        sides = [self.on_which_hand] if isinstance(self.on_which_hand, str) else self.on_which_hand
        return [side for side in sides if side in _HANDS]


class _RawFrame(msgspec.Struct):
    image: _Picture
    annotations: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=1000)]


class _Frame(NamedTuple):
    """The usable entities of a picture, and True if the picture has no other entities."""

    image: _Picture
    annotations: list[_Entity]
    is_whole: bool


_Mapping = dict[str, dict[str, int | str] | int | str]


class _File(msgspec.Struct):
    video_annotations: list[msgspec.Raw]


class _AnnotatedPicture(NamedTuple):
    """An annotated picture: its number, file and entities."""

    number: int
    path: Path
    frame: _Frame


class Visor(OpenedSource):
    """The folder `GroundTruth-SparseAnnotations`, or its parent."""

    def __init__(self, folder: Path, domain: Domain) -> None:
        self._root = confine(folder, RELEASE) if (folder / RELEASE).is_dir() else folder
        self._touch_label = (
            domain.contact_type,
            next((v for v, words in domain.contacts.items() if words.do == "touch"), "touches"),
        )
        self._glove_label = domain.place_type, "on"
        self._files: dict[str, tuple[str, Path]] = {}
        for split in _SPLITS:
            annotations = confine(self._root, "annotations", split)
            for path in sorted(annotations.glob("*.json")) if annotations.is_dir() else ():
                self._files[path.stem] = split, confine(annotations, path.name)
        if not self._files:
            raise DataError(f"{self._root}: no annotations/train or val with JSON files in it. Fix: {_REMEDY}")
        self.video_ids = sorted(self._files)

    def digest(self, video_id: str) -> str:
        return hashlib.sha256(read_bounded(self._files[video_id][1], MAX_BYTES, remedy=_REMEDY)).hexdigest()

    def read(self, video_id: str) -> ImportedVideo:
        split, path = self._files[video_id]
        data, tally = read_bounded(path, MAX_BYTES, remedy=_REMEDY), ImportTally()
        try:
            content = replace_non_finite(as_utf8(data, str(path)))
            raws = msgspec.json.decode(content, type=_File).video_annotations
        except MALFORMED as error:
            raise DataError(f"{path}: {error}. Fix: {_REMEDY}") from error
        annotated_pictures = self._annotated_pictures(video_id, split, raws, tally)
        if not annotated_pictures:
            reasons = "; ".join(+tally.lost) or "it lists none"
            raise DataError(f"{path}: no annotated picture can be used ({reasons}). Fix: {_REMEDY}")
        pictures, index, frame_count, fps = self._timeline(video_id, annotated_pictures, tally)
        size = _picture_size(annotated_pictures[0].path) if isinstance(pictures, list) else SIZE
        writer = GraphWriter("visor", video_id, size, tally)
        self._add_pictures(dict(zip(index, annotated_pictures, strict=True)), writer)
        return ImportedVideo(writer.release(frame_count, fps, index), pictures, tally)

    def _annotated_pictures(
        self, video_id: str, split: str, raws: Sequence[msgspec.Raw], tally: ImportTally
    ) -> list[_AnnotatedPicture]:
        by_number: dict[int, _AnnotatedPicture] = {}
        for raw in raws:
            try:
                raw_frame = msgspec.json.decode(raw, type=_RawFrame)
            except MALFORMED as error:
                tally.lost[f"pictures whose record is wrong: {str(error).partition(' - at ')[0]}"] += 1
                continue
            frame = _entities_of(raw_frame, tally)
            number = _NUMBER.search(frame.image.name)
            if number is None or frame.image.video != video_id or not valid_video_id(frame.image.name):
                tally.lost["pictures without a frame number, or of another video"] += 1
            elif int(number[1]) in by_number:
                tally.lost["pictures that stand there twice"] += 1
            else:
                path = self._picture(video_id, split, frame.image.name)
                by_number[int(number[1])] = _AnnotatedPicture(int(number[1]), path, frame)
        if self._video(video_id) is None:
            missing = [number for number, picture in by_number.items() if not picture.path.is_file()]
            tally.lost["pictures whose file is missing"] += len(missing)
            by_number = {number: picture for number, picture in by_number.items() if number not in missing}
        return [by_number[number] for number in sorted(by_number)]

    def _picture(self, video_id: str, split: str, name: str) -> Path:
        """Find a picture: `rgb_frames/<split>/<participant>/<video>/<name>`, or without some of these folders."""
        participant = video_id.partition("_")[0]
        folders = [(split, participant, video_id), (split, video_id), (participant, video_id), (video_id,)]
        paths = [confine(self._root, "rgb_frames", *folder, name) for folder in folders]
        return next((path for path in paths if path.is_file()), paths[0])

    def _video(self, video_id: str) -> Path | None:
        paths = [confine(self._root, "videos", f"{video_id}.{suffix}") for suffix in ("mp4", "MP4")]
        has_mapping = (self._root / MAPPING).is_file()
        return next((path for path in paths if has_mapping and path.is_file()), None)

    def _timeline(
        self, video_id: str, pictures: Sequence[_AnnotatedPicture], tally: ImportTally
    ) -> tuple[Path | list[Path], list[int], int, float | None]:
        """Return the pictures, the frame of each annotated picture, the number of frames, and frames per second."""
        video = self._video(video_id)
        if video is None:
            rate = _NEW_RATE if re.search(r"_\d{3}\Z", video_id) else _OLD_RATE
            seconds = (pictures[-1].number - pictures[0].number) / rate
            fps = (len(pictures) - 1) / seconds if seconds else None
            tally.guessed["frame rates: the mean of pictures that are not evenly apart"] += fps is not None
            return [picture.path for picture in pictures], list(range(len(pictures))), len(pictures), fps
        facts, mapping = video_facts(video), self._mapping(video_id)
        # The mapping counts frames from 1.
        frames = [mapping.get(picture.frame.image.name, 0) - 1 for picture in pictures]
        if not all(a < b for a, b in zip([-1, *frames], [*frames, facts.frame_count], strict=True)):
            raise DataError(f"{video}: {MAPPING} lacks a frame for a picture, or has another order. Fix: {_REMEDY}")
        if (facts.width, facts.height) != SIZE:
            raise DataError(f"{video}: is {facts.width}x{facts.height}, masks are {SIZE[0]}x{SIZE[1]}. Fix: {_REMEDY}")
        return video, frames, facts.frame_count, facts.fps

    def _mapping(self, video_id: str) -> dict[str, int]:
        """Map pictures `<video>/<picture>` to frames of the video, counted from 1; a frame is a number or a name."""
        path = confine(self._root, MAPPING)
        try:
            rows = msgspec.json.decode(read_bounded(path, MAX_BYTES, remedy=_REMEDY), type=_Mapping)
        except MALFORMED as error:
            raise DataError(f"{path}: {error}. Fix: {_REMEDY}") from error
        nested_rows = rows.get(video_id)
        flat_rows = {name.partition("/")[2]: frame for name, frame in rows.items() if name.startswith(f"{video_id}/")}
        numbers: dict[str, int] = {}
        for name, frame in (nested_rows if isinstance(nested_rows, dict) else flat_rows).items():
            number = _NUMBER.search(frame) if isinstance(frame, str) else None
            numbers[name] = int(number[1]) if number else frame if isinstance(frame, int) else 0
        return numbers

    def _add_pictures(self, by_frame: Mapping[int, _AnnotatedPicture], writer: GraphWriter) -> None:
        keys = _object_keys(by_frame, writer.size)
        names_on = {
            frame_index: Counter(e.plain_name for e in picture.frame.annotations)
            for frame_index, picture in by_frame.items()
        }
        for frame_index, (_, _, frame) in by_frame.items():
            ids: dict[str, str] = {}
            for entity in frame.annotations:
                if entity.id in ids:
                    writer.tally.lost["things whose id is on a picture twice"] += 1
                else:
                    ids[entity.id] = writer.add_object(keys[frame_index, entity.id], entity.plain_name)
            masked_ids = _add_masks(frame_index, frame.annotations, ids, writer)
            for name in names_on[frame_index]:
                namesakes = [entity for entity in frame.annotations if entity.plain_name == name]
                if frame.is_whole and all(
                    entity.exhaustive == "y" and ids.get(entity.id) in masked_ids for entity in namesakes
                ):
                    writer.complete.setdefault(name, []).append(frame_index)
            self._add_contacts(frame_index, frame.annotations, ids, writer)
        guess = "identities of things: by name and place in one subsequence; hands, in the video"
        writer.tally.guessed[guess] += len(set(keys.values()))

    def _add_contacts(
        self, frame_index: int, entities: Sequence[_Entity], ids: Mapping[str, str], writer: GraphWriter
    ) -> None:
        gloved_hands = {side for entity in entities for side in entity.hands}
        hands = {entity.plain_name: ids[entity.id] for entity in entities if entity.plain_name in _HANDS}
        for entity in entities:
            for side in entity.hands:
                if side in hands:
                    writer.add_relation(ids[entity.id], hands[side], self._glove_label, frame_index, frame_index + 1)
            contact = entity.in_contact_object
            if contact in ids and contact != entity.id:
                writer.add_relation(ids[entity.id], ids[str(contact)], self._touch_label, frame_index, frame_index + 1)
            elif contact in _FREE:
                # A hand without contact may wear a glove that has a contact.
                if entity.plain_name not in gloved_hands:
                    writer.idle.setdefault(ids[entity.id], []).append(frame_index)
            elif contact in _UNKNOWN:
                writer.tally.left_out["contacts that are inconclusive, or with nothing that is named"] += 1
            elif contact is not None:
                writer.tally.lost["contacts with what is not on the picture"] += 1


def _entities_of(frame: _RawFrame, tally: ImportTally) -> _Frame:
    """Return the usable entities of a picture; all others count as lost."""
    entities: list[_Entity] = []
    for raw in frame.annotations:
        try:
            entities.append(msgspec.json.decode(raw, type=_Entity))
        except MALFORMED as error:
            tally.lost[f"things whose record is wrong: {str(error).partition(' - at ')[0]}"] += 1
    return _Frame(frame.image, entities, len(entities) == len(frame.annotations))


def _object_keys(by_frame: Mapping[int, _AnnotatedPicture], size: tuple[int, int]) -> dict[tuple[int, str], str]:
    """Guess the object of each entity (frame, id), and return the object's key.

    A name is one object in a subsequence, and a hand is one object in the video. If a picture has a name several times,
    the mask of each entity is compared with the mask of each object on the last picture that shows the object. The
    entity is the object with the largest overlap; without overlap, it is a new object.
    """
    keys: dict[tuple[int, str], str] = {}
    namesakes: dict[str, dict[int, list[_Entity]]] = defaultdict(dict)
    for frame_index, picture in sorted(by_frame.items()):
        for entity in picture.frame.annotations:
            name = entity.plain_name
            group = name if name in _HANDS else f"{picture.frame.image.subsequence}/{name}"
            if keys.setdefault((frame_index, entity.id), group) == group:
                namesakes[group].setdefault(frame_index, []).append(entity)
    for group, entities_at in namesakes.items():
        if max(map(len, entities_at.values())) > 1:
            keys |= _matched_keys(group, entities_at, size)
    return keys


def _matched_keys(
    group: str, entities_at: Mapping[int, Sequence[_Entity]], size: tuple[int, int]
) -> dict[tuple[int, str], str]:
    keys: dict[tuple[int, str], str] = {}
    last_masks: dict[str, Rle] = {}
    for frame_index, entities in entities_at.items():
        readable = [(entity, mask) for entity in entities if isinstance(mask := _mask(entity, size), Rle)]
        objects, masks = list(last_masks), [mask for _, mask in readable]
        overlaps = mask_ious(masks, [last_masks[name] for name in objects])
        best = {int(row): int(column) for row, column in zip(*linear_sum_assignment(-overlaps), strict=True)}
        for row, (entity, mask) in enumerate(readable):
            is_same = row in best and overlaps[row, best[row]] > 0
            key = objects[best[row]] if is_same else f"{group}/{len(last_masks) + 1}"
            keys[frame_index, entity.id] = key
            last_masks[key] = mask
    return keys


def _mask(entity: _Entity, size: tuple[int, int]) -> Rle | str:
    """Return the entity's mask, or the reason why it has no mask. A polygon inside another polygon is a hole."""
    across, down = size[0] / SIZE[0], size[1] / SIZE[1]
    polygons = [[number for x, y in piece for number in (x * across, y * down)] for piece in entity.segments]
    return mask_of_polygons(polygons, size[1], size[0], even_odd=True)


def _add_masks(frame_index: int, entities: Sequence[_Entity], ids: Mapping[str, str], writer: GraphWriter) -> set[str]:
    masks: dict[str, Rle] = {}
    for entity in entities:
        mask = _mask(entity, writer.size)
        if isinstance(mask, Rle):
            masks[ids[entity.id]] = mask
        else:
            writer.tally.lost[f"masks: {without_numbers(mask)}"] += 1
    return writer.add_masks(frame_index, masks)


def _picture_size(path: Path) -> tuple[int, int]:
    """Return the size of the pictures: the size on which polygons are drawn, or a smaller size with the same shape."""
    try:
        with Image.open(path, formats=("JPEG", "PNG")) as image:
            size = image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: the picture is damaged ({error}). Fix: {_REMEDY}") from error
    if abs(size[0] * SIZE[1] - size[1] * SIZE[0]) > SIZE[0] or size[0] > SIZE[0]:
        raise DataError(f"{path}: is {size[0]}x{size[1]}, no smaller picture of {SIZE[0]}x{SIZE[1]}. Fix: {_REMEDY}")
    return size


SOURCE = GraphSource(
    name="visor",
    terms=Terms(
        title="VISOR",
        licence="cc-by-nc-4.0",
        licence_note="Annotations and pictures: CC BY-NC 4.0.",
        citation="""@inproceedings{visor2022,
  title = {EPIC-KITCHENS VISOR Benchmark: VIdeo Segmentations and Object Relations},
  author = {Darkhalil, Ahmad and Shan, Dandan and Zhu, Bin and Ma, Jian and Kar, Amlan and Higgins, Richard and Fidler,
    Sanja and Fouhey, David and Damen, Dima},
  booktitle = {NeurIPS, Datasets and Benchmarks},
  year = {2022}
}""",
        homepage="https://epic-kitchens.github.io/VISOR/",
    ),
    open=Visor,
)
