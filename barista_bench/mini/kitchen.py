"""Plans, draws, annotates and writes the videos of the kitchen, in the layout of the release."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from barista_bench.cluster import map_in_processes
from barista_bench.errors import ConfigError
from barista_bench.files.owned_folders import KITCHEN, replacing_folder
from barista_bench.media.encoding import Picture, encode_video
from barista_bench.mini import script
from barista_bench.mini.drawing import REFERENCE_HEIGHT
from barista_bench.mini.render import KitchenScene, Renderer, paint_room
from barista_bench.mini.stage import BEATS, HUMAN_ACTIONS, BeatRange, Stage
from barista_bench.scene_graph.coverage import merged_spans
from barista_bench.scene_graph.masks import mask_boxes
from barista_bench.scene_graph.release import (
    ANNOTATION_FILE,
    VIDEO_FILE,
    ReleaseAnnotation,
    ReleaseAttribute,
    ReleaseCategory,
    ReleaseFile,
    ReleaseRange,
    ReleaseRelation,
    ReleaseSegment,
    ReleaseVideo,
    class_id,
    encode,
    rle_segmentation,
)
from barista_bench.scene_graph.shapes import masks_of_labels

FPS = 30
"""Default frames per second."""
SECONDS = (15.0, 30.0)
"""Default length of the shortest and of the longest video in seconds; a script's length stays between the two."""
TICKS_PER_SECOND = 40
"""Pace of a script that is neither stretched nor squeezed."""

KITCHEN_IDS = uuid.uuid5(uuid.NAMESPACE_DNS, "mini.barista-bench")
DEVICES = (
    ("smart glasses", "scripted glasses 1"),
    ("smartphone", "scripted phone 2"),
    ("smart glasses", "scripted headset 1"),
)
_SLEEVES = ("blue", "gray", "green", "purple", "black")


@dataclass(frozen=True)
class VideoPlan:
    """The plan of a video, which is small and can be pickled. `index` is the video's number in the kitchen, from 0.

    `order` names the blocks of the script, as in `script_of`.
    """

    index: int
    seed: int
    width: int
    height: int
    seconds: tuple[float, float] = SECONDS
    fps: int = FPS
    order: str = ""

    @property
    def preparation(self) -> str:
        return script.PREPARATIONS[self.index % len(script.PREPARATIONS)]

    @property
    def turn(self) -> int:
        """The number of this video among the videos of the same preparation, from 0."""
        return self.index // len(script.PREPARATIONS)

    @property
    def video_id(self) -> str:
        return f"mini_{self.preparation.replace(' ', '_')}_{self.turn + 1:02d}"

    @property
    def device(self) -> tuple[str, str]:
        return script.pick_in_turn(f"device:{self.seed}", DEVICES, self.turn)


class KitchenVideo:
    """A planned video: the timeline, and frames that are drawn on demand."""

    def __init__(self, plan: VideoPlan) -> None:
        self.plan = plan
        self._text = f"{plan.seed}:{plan.video_id}"
        self.blocks = script.script_of(plan.preparation, plan.turn, plan.seed, plan.order)
        self.timeline = Stage(plan.preparation, self._homes()).play(self.blocks)
        shortest, longest = (round(s * plan.fps) for s in plan.seconds)
        self.frame_count = min(max(self.timeline.length * plan.fps // (BEATS * TICKS_PER_SECOND), shortest), longest)
        self.colours = self._colours()
        self.keys = (*self.timeline.props, *script.HAND_CATEGORIES)
        """All objects, in the order of their numbers in the object map: the first object has the number 1."""
        self.ids = {key: str(uuid.uuid5(KITCHEN_IDS, f"object:{self._text}:{key}")) for key in self.keys}

    def _homes(self) -> dict[str, script.PropPlace]:
        homes = {}
        for key, prop in script.props_of(self.plan.preparation).items():
            if not prop.home.parent and key not in ("machine", "store", "mill"):
                x = prop.home.x + script.seeded_number(f"x:{self._text}:{key}", 25) - 12
                y = prop.home.y + script.seeded_number(f"y:{self._text}:{key}", 9) - 4
                homes[key] = script.PropPlace("", x, y, prop.home.depth)
        return homes

    def _colours(self) -> dict[str, str]:
        """Return colour names by object.

        The value "=other" means the colour of the object `other`, so that two things look the same.
        """
        plan = self.plan
        sleeve = script.pick_in_turn(f"sleeve:{plan.seed}", _SLEEVES, plan.index)
        colours = {"sleeve": sleeve, **dict.fromkeys(script.HAND_CATEGORIES, "skin")}
        for key, prop in self.timeline.props.items():
            options = prop.colours[:1] if plan.order else prop.colours  # then cups look the same
            colour = script.pick_in_turn(f"colour:{plan.seed}:{plan.preparation}:{key}", options, plan.turn)
            colours[key] = colours[colour[1:]] if colour.startswith("=") else colour
        return colours

    def beat(self, frame: int) -> int:
        """Return the moment that a frame shows."""
        return frame * self.timeline.length // self.frame_count

    def frames_of(self, beats: BeatRange) -> BeatRange:
        """Return the frames [start, end) whose moments lie in the beats [start, end)."""
        start, end = (-(-b * self.frame_count // self.timeline.length) for b in beats)
        return min(start, self.frame_count), min(end, self.frame_count)

    def frames(self) -> Iterator[tuple[Picture, NDArray[np.uint8]]]:
        """Yield the picture and the object map of every frame, as `Renderer.frame` returns them."""
        width, height = self.plan.width, self.plan.height
        view = -(-width * REFERENCE_HEIGHT // height)
        scene = KitchenScene(self.timeline, self.colours, view, script.pick(f"shake:{self._text}", range(4000)))
        renderer = Renderer(paint_room(self._text, height), width, height, self.keys)
        for frame in range(self.frame_count):
            beat = self.beat(frame)
            yield renderer.frame(scene.placed_sprites(beat), scene.camera(beat))


def _annotations(frame: int, owners: NDArray[np.uint8], ids: Sequence[str]) -> Iterator[ReleaseAnnotation]:
    """Yield boxes and masks of the objects on a frame; every object has at least one pixel in the map `owners`."""
    masks = masks_of_labels(owners)
    boxes = mask_boxes([mask.counts for mask in masks.values()], *owners.shape)
    for (owner, mask), box in zip(masks.items(), boxes.tolist(), strict=True):
        yield ReleaseAnnotation(frame, ids[owner - 1], tuple(box), rle_segmentation(mask.size, mask.counts))


def graph_outline(video: KitchenVideo) -> ReleaseFile:
    """Return a video's graph without boxes and masks; no frame is drawn for this."""
    categories = {key: prop.category for key, prop in video.timeline.props.items()} | script.HAND_CATEGORIES
    plan, frames = video.plan, video.frame_count
    return ReleaseFile(
        video_metadata=[
            ReleaseVideo(plan.width, plan.height, frames, float(plan.fps), frames * 1000 / plan.fps, *plan.device)
        ],
        categories=[ReleaseCategory(class_id("category", name), name) for name in sorted(set(categories.values()))],
        object_id_to_category_id={video.ids[key]: class_id("category", name) for key, name in categories.items()},
        annotations=[],
        attributes=_attributes(video),
        relations=_relations(video),
        activities=_segments(video, "activity", video.timeline.activities),
        process_steps=_segments(video, "step", video.timeline.steps),
    )


def _attributes(video: KitchenVideo) -> list[ReleaseAttribute]:
    whole_video = [ReleaseRange(0, video.frame_count)]
    attributes = []
    for key in video.keys:
        attributes.append(ReleaseAttribute(video.ids[key], "color", video.colours[key], whole_video))
        if key in video.timeline.props and (kind := video.timeline.props[key].type):
            attributes.append(ReleaseAttribute(video.ids[key], "type", kind, whole_video))
    for (key, value), beats in video.timeline.states.items():
        if ranges := _ranges(video, beats):
            attributes.append(ReleaseAttribute(video.ids[key], "state", value, ranges))
    return attributes


def _relations(video: KitchenVideo) -> list[ReleaseRelation]:
    hands = {name: key for key, name in script.HAND_CATEGORIES.items()}
    relations = []
    for (source, value, target), beats in video.timeline.relations.items():
        if ranges := _ranges(video, beats):
            kind = "human_actions" if value in HUMAN_ACTIONS else "position"
            source_id, target_id = video.ids[hands.get(source, source)], video.ids[target]
            relations.append(ReleaseRelation(source_id, target_id, kind, value, ranges))
    return relations


def _ranges(video: KitchenVideo, beats: list[BeatRange]) -> list[ReleaseRange]:
    return [ReleaseRange(*span) for span in merged_spans(ReleaseRange(*video.frames_of(b)) for b in beats)]


def _segments(
    video: KitchenVideo, kind: Literal["activity", "step"], segments: list[tuple[BeatRange, str]]
) -> list[ReleaseSegment]:
    rows = [(*video.frames_of(beats), name) for beats, name in segments]
    return [
        ReleaseSegment(ReleaseRange(start, end), class_id(kind, name), name) for start, end, name in rows if start < end
    ]


def plan_kitchen(
    *,
    videos: int = 9,
    seed: int = 0,
    width: int = 640,
    height: int = 360,
    seconds: tuple[float, float] = SECONDS,
    fps: int = FPS,
    effects: bool = False,
) -> list[VideoPlan]:
    """Plan the videos of a kitchen; the preparations take turns. Nothing is drawn or written.

    With `effects`, each preparation has one further video with the script `script.EFFECTS`.
    """
    if videos < 1:
        raise ConfigError(f"videos={videos}: a kitchen without a video. Fix: give at least 1")
    if width % 2 or height % 2 or width < 64 or height < 64 or width > 2 * height:
        raise ConfigError(
            f"{width}x{height} px cannot be drawn. Fix: give even sizes of at least 64, at most twice as wide as high"
        )
    if not 0.5 <= seconds[0] <= seconds[1]:
        raise ConfigError(f"seconds={seconds}: no range of lengths. Fix: give 0.5 <= shortest <= longest")
    if fps < 2:
        raise ConfigError(f"fps={fps}: too few to see the hands' actions. Fix: give at least 2 frames a second")
    plans = [VideoPlan(n, seed, width, height, seconds, fps) for n in range(videos + 3 * effects)]
    return [replace(plan, order=script.EFFECTS[plan.preparation]) if plan.index >= videos else plan for plan in plans]


def write_kitchen(
    out: str | Path,
    *,
    videos: int = 9,
    seed: int = 0,
    width: int = 640,
    height: int = 360,
    num_proc: int = 2,
    seconds: tuple[float, float] = SECONDS,
    fps: int = FPS,
    effects: bool = False,
    progress: bool = False,
) -> list[Path]:
    """Render a scripted coffee kitchen into the folder `out` and return its video folders, sorted.

    The same arguments give the same annotation bytes for any `num_proc` (number of worker processes). `seconds` limits
    the lengths of the videos: scripts are stretched or squeezed to fit. With lower `fps` (frames per second), the same
    events take fewer frames. `effects` adds videos, as in `plan_kitchen`. The folder appears only when it is complete.

    Raises:
        ConfigError: a number cannot be used, or `out` is not a folder that may be replaced: see `replacing_folder`.
    """
    plans = plan_kitchen(
        videos=videos, seed=seed, width=width, height=height, seconds=seconds, fps=fps, effects=effects
    )
    with replacing_folder(Path(out), KITCHEN) as folder:
        folders = map_in_processes(partial(write_video, root=folder), plans, num_proc)
        for _ in tqdm(folders, total=len(plans), desc="mini kitchen", unit="video", disable=not progress):
            pass
    return sorted(Path(out) / plan.video_id for plan in plans)


def write_video(plan: VideoPlan, root: Path) -> Path:
    """Render one video and its annotation into `<root>/<video_id>`."""
    video = KitchenVideo(plan)
    release, ids = graph_outline(video), list(video.ids.values())
    folder = root / plan.video_id
    folder.mkdir()

    def pictures() -> Iterator[Picture]:
        for frame, (picture, owners) in enumerate(video.frames()):
            release.annotations.extend(_annotations(frame, owners, ids))
            yield picture

    encode_video(folder / VIDEO_FILE, pictures(), size=(plan.width, plan.height), fps=plan.fps)
    (folder / ANNOTATION_FILE).write_bytes(encode(release))
    return folder
