"""Write a release folder of the size of BARISTA (arXiv 2605.12074, section 3.3), annotations only.

At scale 1: 185 videos, 469,201 frames, 3.6M masks, 4.3M attribute and 2.5M relation frame-rows, 2,424 activity segments
of 108 classes, 1,305 process steps of 13. Made up, but shaped like the real thing: the categories, predicates and
labels that the release is known to use, objects that come and go, outlines that wobble and drift from frame to frame.
Masks are built from column runs, never rasterised; a few thousand of them serve all objects. Deterministic by seed.
"""

import json
import uuid
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

VIDEOS, FRAMES, INSTANCES = 185, 469_201, 3_610_000
ATTRIBUTE_ROWS, RELATION_ROWS = 4_330_000, 2_480_000
SEGMENTS, STEPS, CLASSES, STEP_CLASSES = 2_424, 1_305, 108, 13

SIZES = ((1080, 1920), (1080, 1920), (720, 1280))
TRACKS, PHASES = 40, 64
PREPARATIONS = ("capsule", "capsule", "fully automatic", "portafilter")
DEVICES = ("smartphone", "Apple Vision Pro", "RayBan Meta 3")
CATEGORIES = (
    *("coffee machine", "left hand", "right hand", "coffee cup", "button", "lid", "capsule", "water tank", "milk"),
    *("portafilter", "steam wand", "pitcher", "saucer", "drawer", "tamper", "handle", "scale", "spoon", "towel"),
    *("coffee", "glass", "knob", "door", "container", "milk carton", "trash can", "bottle", "vessel", "tap", "jar"),
    *("box", "carafe", "clamp", "cleaning brush", "coffee mill", "dosing ring", "milk frother", "needle distributor"),
    *("parcel", "puck screen", "sugar", "sugar syrup", "switch", "tissue", "water", "unknown"),
)
COLOURS = ("black", "white", "silver", "red", "blue", "brown", "green", "transparent")
STATES = ("open", "close", "extracting", "rinsing")
HAND_ACTIONS = ("holds", "touches", "presses", "turns", "pulls", "pushes")
POSITIONS = ("part of", "under", "on", "inside", "contains", "attached to")
VERBS = ("Open", "Close", "Place", "Remove", "Press", "Turn", "Pour", "Fill", "Grasp", "Insert", "Wipe", "Move")

Flags = NDArray[np.bool_]


def identifier(*parts: object) -> str:
    """A UUID that depends only on its parts."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(map(str, parts))))


def make_tails(height: int, width: int, rng: np.random.Generator) -> list[list[str]]:
    """Render tails of annotation records (`"bbox": ..., "segmentation": ...}`) by track and phase."""
    tracks = []
    for _ in range(TRACKS):
        area = float(np.clip(np.exp(rng.normal(8.6, 1.7)), 150, 0.25 * height * width))
        stretch = float(np.exp(rng.normal(0, 0.4)))
        radii = np.sqrt(area / np.pi) * np.array([stretch, 1 / stretch])
        centre = rng.uniform((0.1 * width, 0.1 * height), (0.9 * width, 0.9 * height))
        reach, phase = rng.uniform(0.02, 0.15, 2) * width, rng.uniform(0, 2 * np.pi, 4)
        turns = np.linspace(0, 2 * np.pi, PHASES, endpoint=False)
        centres = [np.clip(centre + reach * np.sin(turn + phase[:2]), 4, (width - 5, height - 5)) for turn in turns]
        ellipses = [(*at, *radii, phase[2] + turn) for at, turn in zip(centres, turns, strict=True)]
        tracks.append([render(ellipse, height, width, rng) for ellipse in ellipses])
    return tracks


def render(ellipse: tuple[float, ...], height: int, width: int, rng: np.random.Generator) -> str:
    """Render a wobbly ellipse (centre x and y, half width, half height, phase), cut to the frame."""
    x, y, half_width, half_height, phase = ellipse
    columns = np.arange(max(0, int(x - half_width)), min(width, int(x + half_width) + 2))
    half = half_height * np.sqrt(np.clip(1 - ((columns - x) / half_width) ** 2, 0, None))
    wobble = min(4.0, half_height / 8) * (np.sin(columns * 0.11 + phase) + 0.6 * np.sin(columns * 0.037 + 2 * phase))
    jitter = rng.normal(0, 0.6, (2, len(columns)))
    top = np.clip(np.rint(y - half + wobble + jitter[0]), 0, height - 2).astype(np.int64)
    stop = np.maximum(np.clip(np.rint(y + half + wobble + jitter[1]), 1, height).astype(np.int64), top + 1)
    begin, end = columns * height + top, columns * height + stop
    edges = np.stack([begin, end], axis=1).ravel()
    # A run that reaches the bottom joins one that starts at the top of the next column.
    joined = np.flatnonzero(begin[1:] == end[:-1])
    edges = np.delete(edges, np.concatenate([2 * joined + 1, 2 * joined + 2]))
    counts = np.diff(np.concatenate([[0], edges, [height * width]]))
    encoded = coco_mask.frPyObjects({"size": [height, width], "counts": counts.tolist()}, height, width)
    box = [columns[0], top.min(), len(columns), stop.max() - top.min()]
    segmentation = {"counts": encoded["counts"].decode(), "size": [height, width]}
    return f'"bbox":{json.dumps([float(v) for v in box])},"segmentation":{json.dumps(segmentation)}}}'


def video_frames(index: int) -> int:
    """Frames of a video, from one to three minutes: they sum to the published count over 185 videos."""
    weights = 0.6 + 0.8 * (np.arange(VIDEOS) * 0.618034 % 1)
    edges = np.rint(np.cumsum(weights) / weights.sum() * FRAMES)
    return int(np.diff(edges, prepend=0)[index % VIDEOS])


def make_seen(count: int, frames: int, rng: np.random.Generator) -> Flags:
    """(objects, frames): objects come and go so that a frame shows as many as published on average."""
    fraction = INSTANCES / FRAMES / count
    shown = np.zeros((count, frames), dtype=bool)
    for row in shown:
        edge, on = 0, bool(rng.random() < fraction)
        while edge < frames:
            length = int(rng.exponential(600 * (fraction if on else 1 - fraction))) + 1
            row[edge : edge + length] = on
            edge, on = edge + length, not on
    return shown


def span(start: int, end: int) -> dict[str, int]:
    return {"image_id_start": int(start), "image_id_end": int(end)}


class VideoMaker:
    """One video's document. Hands and machine are always among its objects."""

    def __init__(self, index: int, tails: dict[tuple[int, int], list[list[str]]]) -> None:
        self.rng = np.random.default_rng((7, index))
        self.index, self.frames = index, video_frames(index)
        self.size = SIZES[index % len(SIZES)]
        self.tails = tails[self.size]
        count = int(self.rng.integers(11, 18))
        others = self.rng.integers(4, len(CATEGORIES), count - 4)
        self.categories = [CATEGORIES[k] for k in (0, 1, 2, 3, *others.tolist())]
        self.ids = [identifier("object", index, k) for k in range(count)]
        self.shown = make_seen(count, self.frames, self.rng)

    def attributes(self) -> list[dict[str, object]]:
        """A colour for most, a type for some, states that change; about 1.2 a mask."""
        rows = [self.attribute(0, "type", PREPARATIONS[self.index % len(PREPARATIONS)], [span(0, self.frames)])]
        wanted = ATTRIBUTE_ROWS / INSTANCES * self.shown.sum() - self.shown[0].sum()
        for kind, item in product(("color", "state", "color"), range(len(self.ids))):
            if wanted <= 0:
                break
            if kind == "state" and self.rng.random() < 0.6:
                continue
            wanted -= self.shown[item].sum()
            changes = np.sort(self.rng.integers(1, self.frames, 4)).tolist() if kind == "state" else []
            for start, end in pairwise([0, *changes, self.frames]):
                is_skin = kind == "color" and "hand" in self.categories[item]
                if start < end:
                    value = "skin" if is_skin else str(self.rng.choice(STATES if kind == "state" else COLOURS))
                    rows.append(self.attribute(item, kind, value, [span(start, end)]))
        return rows

    def attribute(self, item: int, kind: str, value: str, ranges: list[dict[str, int]]) -> dict[str, object]:
        return {"object_id": self.ids[item], "attribute_type": kind, "value": value, "image_ranges": ranges}

    def activities(self) -> list[tuple[int, int, int]]:
        """(start, end, class): mostly apart, some overlapping."""
        count = spread(SEGMENTS, self.index)
        edges = np.sort(self.rng.choice(self.frames - 1, 2 * count, replace=False))
        weights = 1 / (np.arange(CLASSES) + 8.0)
        classes = self.rng.choice(CLASSES, count, p=weights / weights.sum())
        classes[0] = self.index % CLASSES
        spans = [(int(a), int(b), int(c)) for (a, b), c in zip(edges.reshape(-1, 2), classes, strict=True)]
        if self.rng.random() < 0.3:
            start, end, kind = spans[-1]
            spans[-1] = (max(0, start - 200), end, kind)
        return spans

    def relations(self, activities: list[tuple[int, int, int]]) -> list[dict[str, object]]:
        """Hands act during activities; positions last, until a frame holds as many relations as published."""
        rows = []
        wanted = RELATION_ROWS / FRAMES * self.frames
        for start, end, _ in activities:
            for hand in (1, 2):
                target = int(self.rng.integers(3, len(self.ids)))
                action = str(self.rng.choice(HAND_ACTIONS, p=(0.5, 0.3, 0.08, 0.05, 0.04, 0.03)))
                rows.append(self.relation(hand, target, "human_actions", action, start, end))
                wanted -= (self.shown[hand, start:end] & self.shown[target, start:end]).sum()
        while wanted > 0:
            source, target = self.rng.choice(len(self.ids), 2, replace=False).tolist()
            start = int(self.rng.integers(0, self.frames - 20))
            end = min(self.frames, start + int(self.rng.integers(200, 2200)))
            both = (self.shown[source, start:end] & self.shown[target, start:end]).sum()
            if source not in (1, 2) and target not in (1, 2) and both:
                rows.append(self.relation(source, target, "position", str(self.rng.choice(POSITIONS)), start, end))
                wanted -= both
        return rows

    def relation(self, source: int, target: int, kind: str, value: str, start: int, end: int) -> dict[str, object]:
        return {
            "source_object_id": self.ids[source],
            "target_object_id": self.ids[target],
            "relation_type": kind,
            "value": value,
            "image_ranges": [span(start, end)],
        }

    def annotations(self) -> str:
        """Records in the order of frames, as JSON."""
        track = self.rng.integers(0, TRACKS, len(self.ids))
        pace = self.rng.integers(1, 5, len(self.ids))
        frames, items = (axis.tolist() for axis in np.nonzero(self.shown.T))
        tails = [self.tails[k] for k in track.tolist()]
        steps, ids = pace.tolist(), self.ids
        return ",".join(
            f'{{"image_id":{frame},"object_id":"{ids[k]}",{tails[k][frame // steps[k] % PHASES]}'
            for frame, k in zip(frames, items, strict=True)
        )

    def document(self) -> str:
        activities = self.activities()
        cuts = np.linspace(0, self.frames, spread(STEPS, self.index) + 1).astype(int).tolist()
        steps = self.rng.integers(0, STEP_CLASSES, len(cuts) - 1).tolist()
        names = sorted(set(self.categories))
        rest = {
            "categories": [{"id": identifier("category", name), "name": name} for name in names],
            "object_id_to_category_id": dict(
                zip(self.ids, (identifier("category", name) for name in self.categories), strict=True)
            ),
            "attributes": self.attributes(),
            "relations": self.relations(activities),
            "activities": [segment("activity", *item, activity_name(item[2])) for item in activities],
            "process_steps": [
                segment("step", *cut, kind, f"Step {kind}") for cut, kind in zip(pairwise(cuts), steps, strict=True)
            ],
        }
        metadata = {
            "width": self.size[1],
            "height": self.size[0],
            "frame_count": self.frames,
            "fps": 30.0,
            "length_in_ms": round(self.frames / 0.03),
            "recording_device_type": DEVICES[self.index % len(DEVICES)],
        }
        head = f'{{"video_metadata":[{json.dumps(metadata)}],"annotations":[{self.annotations()}],'
        return head + json.dumps(rest)[1:]


def segment(kind: str, start: int, end: int, index: int, name: str) -> dict[str, object]:
    return {"image_range": span(start, end), "activity_class_id": identifier(kind, index), "display_name": name}


def activity_name(index: int) -> str:
    return f"{VERBS[index % len(VERBS)]} {CATEGORIES[3 + index // len(VERBS)]}"


def spread(total: int, index: int) -> int:
    """A video's part of a count that sums to `total` over 185 videos."""
    part = index % VIDEOS
    return total * (part + 1) // VIDEOS - total * part // VIDEOS


def generate(out: Path, scale: float) -> None:
    """Write `round(185 * scale)` videos."""
    rng = np.random.default_rng(7)
    tails = {size: make_tails(*size, rng) for size in sorted(set(SIZES))}
    for index in range(round(VIDEOS * scale)):
        folder = out / f"video_{index:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "coco_annotation.json").write_bytes(VideoMaker(index, tails).document().encode())
