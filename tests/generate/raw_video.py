"""One annotation file read from disk without the package: presence frame by frame, and rows [start, end)."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray
from pycocotools import mask as coco
from scipy.ndimage import distance_transform_edt

GAP_S, MARGIN_S = 0.5, 0.1
SMALLEST, UNCOVERED, APART = 0.0004, 0.4, 0.01
"""What docstrings promise: seconds of a hole that is no event, and around a moment; fractions of the frame, of the
median area, and of the frame's width."""
SIDES = ("left", "right")
DOMAIN: dict[str, Any] = yaml.safe_load(
    resources.files("barista_bench.scene_graph").joinpath("domain.yaml").read_text(encoding="utf-8")
)


class Row(NamedTuple):
    """`label` for the frames [start, end)."""

    label: str
    start: int
    end: int


class RawVideo:
    """Reads `coco_annotation.json` with `json`; masks with pycocotools."""

    def __init__(self, path: Path) -> None:
        document = json.loads(path.read_bytes())
        facts = document["video_metadata"][0]
        self.fps, self.count = float(facts["fps"]), int(facts["frame_count"])
        self.width, self.height = int(facts["width"]), int(facts["height"])
        self.gap, self.margin = (max(1, round(seconds * self.fps)) for seconds in (GAP_S, MARGIN_S))
        names = {row["id"]: row["name"] for row in document["categories"]}
        self.category = {key: names[value].lower() for key, value in document["object_id_to_category_id"].items()}
        self.marks: dict[str, dict[int, dict[str, Any]]] = {key: {} for key in self.category}
        for row in document["annotations"]:
            self.marks[row["object_id"]][row["image_id"]] = row
        self.values: dict[tuple[str, str], list[Row]] = {}
        for row in document.get("attributes", []):
            self.values.setdefault((row["object_id"], row["attribute_type"]), []).extend(self._rows(row, row["value"]))
        self.contacts: dict[tuple[str, str], list[Row]] = {}
        self.places: dict[tuple[str, str], list[Row]] = {}
        for row in document.get("relations", []):
            pair = row["source_object_id"], row["target_object_id"]
            kinds = {DOMAIN["contact_type"]: self.contacts, DOMAIN["place_type"]: self.places}
            if row["relation_type"] in kinds:
                kinds[row["relation_type"]].setdefault(pair, []).extend(self._rows(row, row["value"]))
        self.contacts = {pair: self._without_gaps(rows) for pair, rows in self.contacts.items()}
        self.actions = self._segments(document.get("activities", []))
        self.steps = self._segments(document.get("process_steps", []))
        self._masks: dict[tuple[str, int], NDArray[np.bool_]] = {}
        self._gaps: dict[tuple[str, str, int], float] = {}

    def _rows(self, row: Mapping[str, Any], label: str) -> Iterator[Row]:
        for span in row["image_ranges"]:
            yield Row(label, span["image_id_start"], min(span["image_id_end"], self.count))

    def _without_gaps(self, rows: Iterable[Row]) -> list[Row]:
        """Rows; two rows with one label become one if less than half a second is between them."""
        joined: list[Row] = []
        for row in sorted(rows):
            if joined and joined[-1].label == row.label and row.start - joined[-1].end <= self.gap:
                joined[-1] = joined[-1]._replace(end=max(row.end, joined[-1].end))
            else:
                joined.append(row)
        return joined

    def _segments(self, rows: Iterable[Mapping[str, Any]]) -> list[Row]:
        segments = [
            Row(r["display_name"].strip(), r["image_range"]["image_id_start"], r["image_range"]["image_id_end"])
            for r in rows
        ]
        return sorted((row._replace(end=min(row.end, self.count)) for row in segments), key=lambda row: row[1:])

    # Names

    @cached_property
    def hands(self) -> dict[str, list[str]]:
        return {side: [key for key, name in self.category.items() if name in DOMAIN["hands"][side]] for side in SIDES}

    def hand(self, side: str) -> str:
        """The only object that is this hand."""
        (hand,) = self.hands[side]
        return hand

    @cached_property
    def is_hand(self) -> set[str]:
        return {hand for hands in self.hands.values() for hand in hands}

    def labels(self, item: str) -> set[str]:
        """All names of an object: its category, its types, with or without its colours. Types of machines (portafilter)
        are not names."""
        is_named = self.category[item] != DOMAIN["stratum"][0]
        types = {row.label.lower() for row in self.values.get((item, "type"), ()) if is_named}
        colours = {row.label.lower() for row in self.values.get((item, "color"), ())}
        plain = {self.category[item], *types}
        plain |= {DOMAIN["names"][name] for name in plain if name in DOMAIN["names"]}
        return plain | {f"{colour} {name}" for colour in colours for name in plain}

    # Visible things

    def on(self, item: str, frame: int) -> bool:
        return frame in self.marks[item]

    def area(self, item: str, frame: int) -> float:
        mark = self.marks[item][frame]
        segmentation = mark.get("segmentation")
        if not isinstance(segmentation, dict):
            return float(mark["bbox"][2] * mark["bbox"][3])
        return float(coco.area({"counts": segmentation["counts"], "size": self._size(segmentation)}))

    @staticmethod
    def _size(segmentation: Mapping[str, Any]) -> list[int]:
        size = segmentation["size"]
        return list(json.loads(size)) if isinstance(size, str) else list(size)

    @cached_property
    def _median(self) -> dict[str, float]:
        return {
            item: float(np.median([self.area(item, frame) for frame in marks]))
            for item, marks in self.marks.items()
            if marks
        }

    def seen(self, item: str, frame: int) -> bool:
        """Easy to see: large enough in the frame, and as much of it visible as usual, less the tolerance."""
        if not self.on(item, frame):
            return False
        area = self.area(item, frame)
        return area >= SMALLEST * self.width * self.height and area >= UNCOVERED * self._median[item]

    def gone(self, item: str, frame: int) -> bool:
        """Nowhere near the frame: no short hole in its annotation."""
        return not any(frame - self.gap <= at <= frame + self.gap for at in self.marks[item])

    def mask(self, item: str, frame: int) -> NDArray[np.bool_]:
        key = item, frame
        if key not in self._masks:
            if len(self._masks) > 200:
                self._masks.clear()
            segmentation = self.marks[item][frame]["segmentation"]
            coded = {"counts": segmentation["counts"], "size": self._size(segmentation)}
            self._masks[key] = np.asarray(coco.decode(coded), dtype=bool)
        return self._masks[key]

    def apart(self, first: str, second: str, frame: int) -> bool:
        """Both annotated, and no pixel of one within a hundredth of the frame's width of a pixel of the other."""
        is_seen = self.on(first, frame) and self.on(second, frame)
        return is_seen and self.distance(first, second, frame) > APART * self.width * 0.99

    def meet(self, first: str, second: str, frame: int) -> bool:
        """Both annotated, and some pixels of them within two hundredths: `apart` may use squares around them."""
        is_seen = self.on(first, frame) and self.on(second, frame)
        return is_seen and self.distance(first, second, frame) < 2 * APART * self.width

    def distance(self, first: str, second: str, frame: int) -> float:
        """Pixels between the masks of two objects on a frame; infinite where one mask is empty."""
        key = min(first, second), max(first, second), frame
        if key not in self._gaps:
            first_mask, other = self.mask(first, frame), self.mask(second, frame)
            is_empty = not first_mask.any() or not other.any()
            self._gaps[key] = np.inf if is_empty else float(distance_transform_edt(~first_mask)[other].min())
        return self._gaps[key]

    # Rows in time

    def whole(self, rows: Iterable[Row], frame: int, *items: str) -> bool:
        """Whether rows cover [frame - margin, frame + margin] of the video, except for gaps that are not events."""
        return all(self.covered(rows, at, *items) for at in self.around(frame))

    def around(self, frame: int) -> tuple[int, int, int]:
        return max(0, frame - self.margin), frame, min(self.count - 1, frame + self.margin)

    def covered(self, rows: Iterable[Row], frame: int, *items: str) -> bool:
        """Whether a frame has a row, or a row on either side of a gap that is short or lacks annotations of one of
        `items`."""
        known = list(rows)
        if any(row.start <= frame < row.end for row in known):
            return True
        before = max((row.end for row in known if row.end <= frame), default=None)
        after = min((row.start for row in known if row.start > frame), default=None)
        if before is None or after is None:
            return False
        hidden = any(not any(before <= at < after for at in self.marks[item]) for item in items)
        return after - before <= self.gap or hidden

    def near(self, rows: Iterable[Row], start: int, end: int) -> bool:
        """Whether a row overlaps [start - margin, end + margin)."""
        return any(row.start < end + self.margin and row.end > start - self.margin for row in rows)

    def touching(self, side: str, item: str) -> list[Row]:
        return [row for hand in self.hands[side] for row in self.contacts.get((hand, item), ())]

    def is_part(self, first: str, second: str) -> bool:
        """Whether one object is ever a part of the other."""
        rows = [*self.places.get((first, second), ()), *self.places.get((second, first), ())]
        return any(DOMAIN["places"].get(row.label, {}).get("is_part") for row in rows)
