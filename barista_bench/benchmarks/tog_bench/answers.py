"""Read answers to T-STVG: a JSON object with the paper's four fields, in the many forms that models write.

The prompt asks for flat lists. Other supported forms are mappings from names, entries nested below an object, single
values instead of lists, clock times and numbers of shown frames. An unreadable part of an object is left out, and the
object is marked malformed. As in the metric, an unreadable interval invalidates all intervals of its object. Work and
memory are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from barista_bench.benchmarks.kinds.spans import MAX_INTERVALS, MAX_NESTED, first_given, is_span, read_spans, read_time
from barista_bench.benchmarks.name_matching import plain_name
from barista_bench.benchmarks.parsing import MAX_ANSWER, NOTHING_READ, cut_object, is_text, json_objects, strip_fence
from barista_bench.benchmarks.tog_bench.columns import AnsweredBox, AnsweredObject, AnsweredObjects
from barista_bench.benchmarks.tog_bench.release import MAX_OBJECTS
from barista_bench.core.boxes import BoxFormat, Xyxy, four_numbers, read_box
from barista_bench.core.example import ParseError, Prediction

NAMES = ("explicit_object", "implicit_object")
TEMPORAL, SPATIAL = "temporal_grounding", "spatial_tracking"
MAX_NAME = 200
MAX_BOXES = 20_000
"""Maximum number of boxes of one answer; further boxes are left out."""
MAX_COORDINATE = 1e6

_NOTHING = frozenset({"", "none", "null", "n/a", "na", "-", "nothing"})
_OBJECT_KEYS = ("object", "name", "category", "label", "object_name")
_TIME_KEYS = ("time", "timestamp", "t", "second", "seconds")
_FRAME_KEYS = ("frame", "frame_number", "frame_index", "frame_id", "image")
_BOX_KEYS = ("box", "bbox", "bounding_box", "bbox_2d", "box_2d", "boxes", "bboxes")
_TRACK_KEYS = ("boxes", "bboxes", "tracking", "track", "frames", "spatial_tracking")


@dataclass(frozen=True, slots=True)
class ShownFrames:
    """The context of a parser: the shown frames and the model's box format. Times are in seconds, sizes in pixels."""

    times: Sequence[float]
    width: int
    height: int
    box_format: BoxFormat


@dataclass(slots=True)
class ObjectDraft:
    """One object of an answer while the answer is read.

    `is_broken` means that an interval of the object is unreadable. `is_malformed` means that any part is unreadable.
    """

    name: str
    kind: str
    intervals: list[tuple[float, float]] = field(default_factory=list)
    boxes: list[AnsweredBox] = field(default_factory=list)
    is_broken: bool = False
    is_malformed: bool = False


def read_answer(text: str, frames: ShownFrames) -> Prediction | ParseError | None:
    """Return the objects in the last JSON object with a field that names objects; None without such a JSON object.

    `dropped` counts entries that belong to no object or are unreadable.
    """
    answer = text[:MAX_ANSWER].rpartition("</think>")[2]
    for body in dict.fromkeys((strip_fence(answer), answer)):
        candidates = [value for value in json_objects(body) if any(key in value for key in NAMES)]
        if candidates:
            return _Reader(frames).read(candidates[-1], 0)
    for name in (SPATIAL, TEMPORAL):  # of a truncated answer, the complete entries
        cut = cut_object(text, name)
        if cut and any(key in cut[1] for key in NAMES):
            return _Reader(frames).read({**cut[1], name: cut[0].entries}, cut[0].unfinished)
    return None


class _Reader:
    """Collects the objects of one answer."""

    def __init__(self, frames: ShownFrames) -> None:
        self.frames = frames
        self.objects: dict[str, ObjectDraft] = {}
        self.by_plain_name: dict[str, list[ObjectDraft]] = {}
        self.dropped = 0
        self.boxes = 0

    def read(self, answer: Mapping[str, object], broken_off: int) -> Prediction | ParseError:
        for key in NAMES:
            self._add_names(answer.get(key), key.partition("_")[0])
        for item in self.objects.values():  # computed once: each of many entries looks up its object several times
            self.by_plain_name.setdefault(plain_name(item.name), []).append(item)
        for owner, value in self._owned_entries(answer.get(TEMPORAL), is_span):
            self._add_intervals(owner, value)
        for owner, value in self._owned_entries(answer.get(SPATIAL), self._is_track):
            self._add_track(owner, value)
        if self.dropped and not self.objects:
            return NOTHING_READ
        objects = []
        for item in self.objects.values():
            intervals = [] if item.is_broken else [list(interval) for interval in item.intervals]
            is_malformed = item.is_malformed or item.is_broken
            objects.append(AnsweredObject(item.name, item.kind, intervals, item.boxes, is_malformed))
        return Prediction(AnsweredObjects(objects).write(), self.dropped + broken_off)

    def _add_names(self, value: object, kind: str) -> None:
        """Add the names in one field: a text with commas between names, or a list. Each name counts once."""
        for item in value if isinstance(value, list) else [value]:
            text = first_given(item, _OBJECT_KEYS) if isinstance(item, Mapping) else item
            if text is None:
                self.dropped += isinstance(item, Mapping)
                continue
            if not is_text(text):
                self.dropped += 1
                continue
            for part in text.replace(";", ",").split(","):
                self._add_object(" ".join(part.split())[:MAX_NAME], kind)

    def _add_object(self, name: str, kind: str) -> None:
        if name.casefold() in _NOTHING:
            return
        if name.casefold() in self.objects or len(self.objects) >= MAX_OBJECTS:
            self.dropped += 1
        else:
            self.objects[name.casefold()] = ObjectDraft(name, kind)

    def _owned_entries(self, value: object, is_entry: Callable[[object], bool]) -> Iterator[tuple[ObjectDraft, object]]:
        """Yield each entry of a field together with its object.

        Entries without a name belong to the only object. With several objects, entries belong to the objects in order,
        if there is one entry per object.
        """
        unnamed_entries: list[object] = []
        for name, entry in _entries(value, is_entry, self._object_named):
            owner = None if name is None else self._object_named(name)
            if owner is not None:
                yield owner, entry
            elif name is None:
                unnamed_entries.append(entry)
            else:
                self.dropped += 1
        objects = list(self.objects.values())
        if len(objects) == 1:
            yield from ((objects[0], entry) for entry in unnamed_entries)
        elif unnamed_entries and len(unnamed_entries) == len(objects):
            yield from zip(objects, unnamed_entries, strict=True)
        else:
            self.dropped += len(unnamed_entries)

    def _object_named(self, name: object) -> ObjectDraft | None:
        """Return the object with the same name, or else the only object with the same plain name."""
        if not is_text(name):
            return None
        text = " ".join(name.split())[:MAX_NAME]
        if text.casefold() in self.objects:
            return self.objects[text.casefold()]
        namesakes = self.by_plain_name.get(plain_name(text), ())
        return namesakes[0] if len(namesakes) == 1 else None

    def _add_intervals(self, owner: ObjectDraft, value: object) -> None:
        spans = read_spans(value, self.frames.times)
        if spans is None:
            owner.is_broken = True
            return
        room = MAX_INTERVALS - len(owner.intervals)
        owner.intervals += spans[:room]
        self.dropped += len(spans[room:])

    def _is_track(self, value: object) -> bool:
        """Return True if a value is one place and time, or a mapping of times, but not a mapping of names."""
        if not isinstance(value, Mapping):
            return False
        is_stamped = any(key in value for key in (*_TIME_KEYS, *_FRAME_KEYS))
        return is_stamped or all(self._time(key) is not None for key in value)

    def _add_track(self, owner: ObjectDraft, value: object) -> None:
        for time, numbers in self._timed_boxes(value):
            if self.boxes >= MAX_BOXES:
                self.dropped += 1
                continue
            self.boxes += 1
            box = _box(numbers, self.frames)
            if time is None or box is None:
                owner.is_malformed = True
            else:
                owner.boxes.append(AnsweredBox(round(time, 3), list(box)))

    def _timed_boxes(self, value: object, depth: int = 0) -> Iterator[tuple[float | None, object]]:
        """Yield (seconds, box value) for all parts of an entry. Seconds are None for parts without a time."""
        if depth > MAX_NESTED or not isinstance(value, list | Mapping):
            yield None, value
        elif isinstance(value, list):
            for item in value:
                yield from self._timed_boxes(item, depth + 1) if isinstance(item, Mapping) else ((None, item),)
        elif (time := self._stated_time(value)) is not None:
            yield from ((time, box) for box in _boxes_at_once(first_given(value, _BOX_KEYS)))
        elif (track := first_given(value, _TRACK_KEYS)) is not None:
            yield from self._timed_boxes(track, depth + 1)
        else:
            for key, item in value.items():
                if key not in _OBJECT_KEYS:
                    yield from ((self._time(key), box) for box in _boxes_at_once(item))

    def _stated_time(self, value: Mapping[str, object]) -> float | None:
        """Return the time that an entry states as seconds or as a frame's number."""
        stamp = first_given(value, _TIME_KEYS)
        return self._frame(first_given(value, _FRAME_KEYS)) if stamp is None else self._time(stamp)

    def _time(self, value: object) -> float | None:
        return read_time(value, self.frames.times)

    def _frame(self, value: object) -> float | None:
        """Return the time of the shown frame with this number."""
        return read_time(f"frame {value}", self.frames.times) if isinstance(value, int | str) else None


def _entries(
    value: object, is_entry: Callable[[object], bool], find_object: Callable[[object], object]
) -> Iterator[tuple[object, object]]:
    """Yield (name or None, entry) of a field: a list of entries, one entry, or a mapping from names."""
    if value is None:
        return
    if not isinstance(value, list) or is_entry(value):
        yield from _named_entries(value, is_entry, lambda name: True)
        return
    for item in value:
        yield from _named_entries(item, is_entry, find_object)


def _named_entries(
    value: object, is_entry: Callable[[object], bool], find_object: Callable[[object], object]
) -> Iterator[tuple[object, object]]:
    if not isinstance(value, Mapping):
        yield None, value
    elif (name := first_given(value, _OBJECT_KEYS)) is not None:
        yield name, value
    elif not is_entry(value) and value and all(find_object(key) for key in value):
        yield from value.items()
    else:
        yield None, value


def _boxes_at_once(value: object) -> list[object]:
    """Return the boxes at one time. A list of lists has several boxes; any other value is one box, and None is
    no box.
    """
    if value is None or value == []:
        return []
    is_list_of_boxes = isinstance(value, list) and all(isinstance(item, list) for item in value)
    return list(value) if is_list_of_boxes else [value]  # type: ignore[call-overload]


def _box(value: object, frames: ShownFrames) -> Xyxy | None:
    """Return [x0, y0, x1, y1] in pixels from a model's four numbers; None for other values and for boxes
    without area.
    """
    numbers = four_numbers(value, MAX_COORDINATE)
    if numbers is None:
        return None
    x0, y0, x1, y1 = read_box(numbers, frames.box_format, frames.width, frames.height)
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None
