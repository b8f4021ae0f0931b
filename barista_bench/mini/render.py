"""Computes the poses of objects and hands, the camera and the order of drawing at each moment, and draws the picture.

The same drawing gives the pixels of the picture and the object of each pixel.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from barista_bench.media.encoding import Picture
from barista_bench.mini import drawing
from barista_bench.mini.drawing import FINE, REFERENCE_HEIGHT, turn
from barista_bench.mini.script import AIR, ROOM_BOTTOM, ROOM_TOP, ROOM_WIDTH, PropPlace, pick
from barista_bench.mini.stage import BEATS, HandContact, Leg, Timeline

HANDS_DEPTH = 3 * AIR
REACH = 22 * BEATS
"""Beats in which a hand moves between a thing and its resting place, just below the picture."""
_SWING = 20 * BEATS  # beats per swing of stirring or wiping
_MARKS = {"dirty": "stain", "hot": "steam"}
"""Maps a state to the sprite that shows it."""


@dataclass(frozen=True)
class Pose:
    """Position in 1/FINE kitchen units, painting depth, and angle in 64ths of a turn."""

    x: int
    y: int
    depth: int
    angle: int = 0


@dataclass(frozen=True)
class PlacedSprite:
    """One sprite to paint at (x, y), in 1/FINE units.

    `owner` is the object's key, or "" for a sprite that is no object. A sprite that is `aloft` casts no shadow.
    """

    owner: str
    painter: str
    colour: str
    variant: int
    x: int
    y: int
    depth: int
    angle: int = 0
    mirror: bool = False
    aloft: bool = False


class KitchenScene:
    """Shows the timeline through a camera. `view_width` is the width of the picture in kitchen units."""

    def __init__(self, timeline: Timeline, colours: dict[str, str], view_width: int, shake_seed: int) -> None:
        self._timeline = timeline
        self._colours = colours
        self._view = view_width
        self._shake = shake_seed
        self._contacts = {hand: sorted(c, key=lambda c: (c.start, c.end)) for hand, c in timeline.contacts.items()}
        self._starts = {key: [leg.start for leg in legs] for key, legs in timeline.legs.items()}
        self._path = self._camera_path()

    # -- camera

    def _camera_path(self) -> list[tuple[int, int]]:
        """Return the corner of the view at every tick, in 1/FINE units. The view follows the action smoothly."""
        path: list[tuple[int, int]] = []
        goals = self._timeline.focus
        x = y = vx = vy = 0
        for tick in range(self._timeline.length // BEATS + 1):
            current = bisect_right([beat for beat, _ in goals], (tick + 8) * BEATS) - 1
            pose = self.pose(goals[max(0, current)][1], tick * BEATS)
            goal_x, goal_y = self._clamped_corner(pose.x - self._view * FINE // 2, pose.y - 250 * FINE)
            if not path:
                x, y = goal_x, goal_y
            # A damped spring: the view does not jerk when its goal jumps.
            vx += ((goal_x - x) - 16 * vx) // 80
            vy += ((goal_y - y) - 16 * vy) // 80
            x, y = x + vx, y + vy
            path.append((x, y))
        return path

    def camera(self, beat: int) -> tuple[int, int]:
        """Return the top left corner of the view in 1/FINE kitchen units; it sways slightly, like a head."""
        tick, rest = divmod(beat, BEATS)
        (xa, ya), (xb, yb) = self._path[tick], self._path[min(tick + 1, len(self._path) - 1)]
        x, y = xa + (xb - xa) * rest // BEATS, ya + (yb - ya) * rest // BEATS
        x += _wave(beat, 73 * BEATS, self._shake) * 3 // 64 + _wave(beat, 29 * BEATS, self._shake) // 64
        y += _wave(beat, 59 * BEATS, self._shake + 9) * 2 // 64 + _wave(beat, 23 * BEATS, 3) // 96
        return self._clamped_corner(x, y)

    def _clamped_corner(self, x: int, y: int) -> tuple[int, int]:
        right, bottom = (ROOM_WIDTH - self._view) * FINE, (ROOM_BOTTOM - REFERENCE_HEIGHT) * FINE
        return min(max(x, 0), right), min(max(y, ROOM_TOP * FINE), bottom)

    # -- objects

    def pose(self, key: str, beat: int) -> Pose:
        legs = self._timeline.legs[key]
        index = max(0, bisect_right(self._starts[key], beat) - 1)
        leg = legs[index]
        pose = self._resolve(leg.at, beat)
        if beat < leg.end:
            return _pose_on_way(self._resolve(legs[index - 1].at, beat), pose, leg, beat)
        if leg.sway == (0, 0):
            return pose
        x = pose.x + leg.sway[0] * _wave(beat - leg.end, _SWING, 0)
        y = pose.y + leg.sway[1] * _wave(beat - leg.end, _SWING, _SWING // 4)
        return Pose(x, y, pose.depth, pose.angle)

    def _resolve(self, place: PropPlace, beat: int) -> Pose:
        x, y = place.x * FINE, place.y * FINE
        if not place.parent:
            return Pose(x, y, place.y * 10 + place.depth, place.angle)
        parent = self.pose(place.parent, beat)
        if parent.angle and not self._timeline.props[place.parent].steady:
            x, y = turn(x, y, parent.angle)
        return Pose(parent.x + x, parent.y + y, parent.depth + place.depth, parent.angle + place.angle)

    # -- hands

    def hand(self, hand: str, beat: int) -> tuple[int, int, int]:
        """Return the point (x, y in 1/FINE units) that the hand touches, and the pose in which the hand is drawn."""
        contacts = self._contacts[hand]
        index = bisect_right([c.start for c in contacts], beat) - 1
        last = contacts[index] if index >= 0 else None
        if last and beat < last.end:
            return (*self._grip(hand, last, beat), last.pose)
        coming = contacts[index + 1] if index + 1 < len(contacts) else None
        home = self._home(hand, beat)
        if last and coming and coming.start - last.end <= 2 * REACH:
            progress = (beat - last.end) * 1024 // (coming.start - last.end)
            x, y = _ease(self._grip(hand, last, last.end - 1), self._grip(hand, coming, coming.start), progress)
            return x, y, last.pose if progress < 256 else 0 if progress < 640 else coming.pose
        if coming and coming.start - beat < REACH:
            progress = 1024 - (coming.start - beat) * 1024 // REACH
            x, y = _ease(home, self._grip(hand, coming, coming.start), progress)
            return x, y, 0 if progress < 512 else coming.pose
        if last and beat - last.end < REACH:
            progress = (beat - last.end) * 1024 // REACH
            return (*_ease(self._grip(hand, last, last.end - 1), home, progress), last.pose if progress < 200 else 0)
        return (*home, 0)

    def _grip(self, hand: str, contact: HandContact, beat: int) -> tuple[int, int]:
        pose = self.pose(contact.thing, beat)
        x, y = contact.offset
        if hand == "left" and pose.angle == 0:
            x = -x
        prop = self._timeline.props[contact.thing]
        x, y = turn(x * FINE, y * FINE, 0 if prop.steady else pose.angle)
        return pose.x + x, pose.y + y

    def _home(self, hand: str, beat: int) -> tuple[int, int]:
        x, y = self.camera(beat)
        fraction = 64 if hand == "right" else 36
        return x + self._view * FINE * fraction // 100, y + (REFERENCE_HEIGHT + 40) * FINE

    # -- drawing

    def placed_sprites(self, beat: int) -> list[PlacedSprite]:
        """Return all sprites in the order of painting, farthest first."""
        sprites = []
        for key, prop in self._timeline.props.items():
            pose = self.pose(key, beat)
            fields = (key, prop.painter, self._colours[key], self._variant(key, prop.painter, beat))
            angle = 0 if prop.steady else pose.angle
            sprites.append(PlacedSprite(*fields, pose.x, pose.y, pose.depth, angle, aloft=pose.depth >= AIR))
        sprites += self._streams_and_steam(beat)
        for order, hand in enumerate(("left", "right")):
            x, y, pose_number = self.hand(hand, beat)
            depth, left = HANDS_DEPTH + 10 * order, hand == "left"
            sprites.append(PlacedSprite(hand, "hand", "skin", pose_number, x, y, depth, 0, left))
            sprites.append(PlacedSprite("", "sleeve", self._colours["sleeve"], 0, x, y, depth + 1, 0, left))
        return sorted(sprites, key=lambda sprite: sprite.depth)

    def _variant(self, key: str, painter: str, beat: int) -> int:
        if painter == "button":
            pressed = (c for hand in self._contacts.values() for c in hand if c.thing == key)
            return int(any(c.start <= beat < c.end for c in pressed))
        if painter == "surface":
            flows = [f for f in self._timeline.flows if f.content == key and f.start <= beat]
            if not flows:
                return 8
            start, end, full = flows[-1].start, flows[-1].end, flows[-1].full
            return min(full, 1 + (full - 1) * (beat - start) // (end - start))
        return 0

    def _streams_and_steam(self, beat: int) -> list[PlacedSprite]:
        sprites = []
        for flow in (flow for flow in self._timeline.flows if flow.start <= beat < flow.end):
            source, goal = self._resolve(PropPlace(*flow.spout), beat), self.pose(flow.content, beat)
            # The height has steps of two units, so that a swaying vessel does not need a new sprite for every frame.
            height = max(0, goal.y - source.y) // (2 * FINE) * 2
            colour = self._colours[flow.content]
            depth = max(goal.depth, source.depth) + 1 if source.depth > AIR else goal.depth + 1
            sprites.append(PlacedSprite(flow.content, "stream", colour, height, source.x, source.y, depth))
        for (key, state), spans in self._timeline.states.items():
            if state in _MARKS and any(start <= beat < end for start, end in spans):
                mark, phase = self._resolve(PropPlace(key, 0, -56, 21), beat), beat // (6 * BEATS) % 4
                sprites.append(PlacedSprite(key, _MARKS[state], "white", phase, mark.x, mark.y, mark.depth))
        steaming = [r for value in ("extracting", "rinsing") for r in self._timeline.states.get(("machine", value), ())]
        if any(start <= beat < end for start, end in steaming):
            tray = self._resolve(PropPlace("machine", 0, -60, 40), beat)
            sprites.append(PlacedSprite("", "steam", "white", beat // (6 * BEATS) % 4, tray.x, tray.y, tray.depth))
        return sprites


def _wave(beat: int, period: int, shift: int) -> int:
    """Return a smooth wave of `beat` between -FINE and FINE, without floating point."""
    phase = (beat + shift) % period * 4096 // period
    half = phase % 2048
    height = half * (2048 - half) * FINE // (1024 * 1024)
    return height if phase < 2048 else -height


def _ease(a: tuple[int, int], b: tuple[int, int], progress: int) -> tuple[int, int]:
    """Return a point between a and b; motion is slow at both ends. `progress` is the part of the way, 0 to 1024."""
    fraction = progress * progress * (3 * 1024 - 2 * progress) >> 20
    return a[0] + (b[0] - a[0]) * fraction // 1024, a[1] + (b[1] - a[1]) * fraction // 1024


def _pose_on_way(a: Pose, b: Pose, leg: Leg, beat: int) -> Pose:
    progress = (beat - leg.start) * 1024 // (leg.end - leg.start)
    x, y = _ease((a.x, a.y), (b.x, b.y), progress)
    angle, _ = _ease((a.angle, 0), (b.angle, 0), progress)
    y -= leg.lift * FINE * progress * (1024 - progress) * 4 >> 20
    depth = AIR + max(a.depth % AIR, b.depth % AIR) if leg.carried else b.depth
    return Pose(x, y, depth, angle)


@dataclass(frozen=True)
class _Layer:
    """A picture and its object map. `corner` is the position (x, y) of its first pixel in the room, in pixels."""

    picture: NDArray[np.uint8]
    owners: NDArray[np.uint8]
    corner: tuple[int, int]


def _common_start(a: Sequence[PlacedSprite], b: Sequence[PlacedSprite]) -> list[PlacedSprite]:
    """Return the sprites at the beginning that are equal in both lists."""
    return [x for x, _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))]


class Renderer:
    """Paints the frames of one video, of `width` x `height` pixels, over the video's room.

    Most things do not move between frames. So distant things that have not moved are cached as one painted layer.
    """

    def __init__(self, room: NDArray[np.uint8], width: int, height: int, owners: Sequence[str]) -> None:
        """`owners` are the keys of the objects.

        In an object map, the n-th object has the number n + 1; 0 is no object.
        """
        self._size = (height, width)
        self._numbers = {key: n for n, key in enumerate(owners, 1)}
        self._room = room
        self._origin = (0, drawing.to_pixels(ROOM_TOP * drawing.FINE, height))
        self._layer = _Layer(room.copy(), np.zeros(room.shape[:2], np.uint8, order="F"), self._origin)
        self._painted: list[PlacedSprite] = []
        self._last_things: list[PlacedSprite] = []

    def frame(self, things: Sequence[PlacedSprite], camera: tuple[int, int]) -> tuple[Picture, NDArray[np.uint8]]:
        """Return the picture, RGB (height, width, 3), and the object map (height, width) in Fortran order."""
        self._update_layer(_common_start(self._last_things, things))
        self._last_things = list(things)
        (height, width), (x0, y0) = self._size, self._origin
        left, top = (drawing.to_pixels(c, height) for c in camera)
        view = (slice(top - y0, top - y0 + height), slice(left - x0, left - x0 + width))
        layer = _Layer(self._layer.picture[view].copy(), self._layer.owners[view].copy(order="F"), (left, top))
        for thing in things[len(self._painted) :]:
            self._paint(layer, thing)
        return layer.picture, layer.owners

    def _update_layer(self, still_things: list[PlacedSprite]) -> None:
        if _common_start(self._painted, still_things) != self._painted:
            self._layer.picture[...] = self._room
            self._layer.owners[...] = 0
            self._painted = []
        for thing in still_things[len(self._painted) :]:
            self._paint(self._layer, thing)
        self._painted = still_things

    def _paint(self, layer: _Layer, thing: PlacedSprite) -> None:
        turn = thing.angle % drawing.ANGLES
        sprite = _sprite(thing.painter, thing.colour, thing.variant, turn, thing.mirror, thing.aloft, self._size[0])
        x = drawing.to_pixels(thing.x, self._size[0]) - layer.corner[0] + sprite.left
        y = drawing.to_pixels(thing.y, self._size[0]) - layer.corner[1] + sprite.top
        rows, columns = sprite.mask.shape
        x0, y0 = max(0, x), max(0, y)
        x1, y1 = min(layer.owners.shape[1], x + columns), min(layer.owners.shape[0], y + rows)
        if x0 >= x1 or y0 >= y1:
            return
        region = (slice(y0 - y, y1 - y), slice(x0 - x, x1 - x))
        target = layer.picture[y0:y1, x0:x1]
        # The values are at most 255 * 255 + 128, so 16 bits are enough. The shifts divide by 255 with rounding.
        mixed = target * sprite.clear[region]
        mixed += sprite.weighted[region]
        mixed += 128
        mixed += mixed >> 8
        mixed >>= 8
        target[...] = mixed
        np.copyto(layer.owners[y0:y1, x0:x1], self._numbers.get(thing.owner, 0), where=sprite.mask[region])


@lru_cache(maxsize=256)  # the videos of a kitchen share the hands and most things
def _sprite(
    painter: str, colour: str, variant: int, angle: int, is_mirrored: bool, is_aloft: bool, height: int
) -> drawing.Sprite:
    canvas = drawing.Canvas()
    drawing.paint(canvas, painter, colour, variant)
    if is_aloft:
        canvas = drawing.Canvas([shape for shape in canvas.shapes if shape.kind != "shadow"])
    return drawing.make_sprite(canvas.mirror() if is_mirrored else canvas, height, angle)


COUNTER_TOP, COUNTER_EDGE = 238, 420
WALLS: tuple[drawing.RGB, ...] = ((206, 218, 216), (222, 214, 200), (202, 212, 226), (220, 204, 196), (210, 220, 200))
WOODS: tuple[drawing.RGB, ...] = ((196, 154, 108), (172, 128, 92), (210, 180, 140), (150, 112, 84))


def paint_room(text: str, height: int) -> NDArray[np.uint8]:
    """Paint the complete room for a picture of `height` pixels; the result has the shape (rows, columns, 3).

    The text determines the colours and the grain.
    """
    wall, wood = pick(f"wall:{text}", WALLS), pick(f"wood:{text}", WOODS)
    salt = pick(f"salt:{text}", range(1, 1000))
    rows, columns = (n * height // drawing.REFERENCE_HEIGHT + 2 for n in (ROOM_BOTTOM - ROOM_TOP, ROOM_WIDTH))
    # Quarter units keep fine lines fine.
    y = (np.arange(rows) * drawing.REFERENCE_HEIGHT * 4 // height + ROOM_TOP * 4)[:, None]
    x = (np.arange(columns) * drawing.REFERENCE_HEIGHT * 4 // height)[None, :]
    shade = np.where(y < COUNTER_TOP * 4, _tiles(x, y, salt), _planks(x, y, salt))
    base = np.where((y < COUNTER_TOP * 4)[..., None], np.array(wall), np.array(wood))
    room = base * (256 + shade[..., None]) // 256
    room = np.where((y >= COUNTER_EDGE * 4)[..., None], np.array(drawing.dark(wood, 45)), room)
    rim = (y >= COUNTER_EDGE * 4 - 12) & (y < COUNTER_EDGE * 4)
    room = np.where(rim[..., None], np.array(drawing.light(wood, 30)), room)
    # The wall gets darker near the counter, where light does not reach.
    contact = np.clip(COUNTER_TOP * 4 - y, 0, 48)
    falloff = np.where(y < COUNTER_TOP * 4, 256 - (48 - contact), 256)
    shaded: NDArray[np.uint8] = np.clip(room * falloff[..., None] // 256, 0, 255).astype(np.uint8)
    return shaded


def _noise(x: NDArray[np.int64], y: NDArray[np.int64], salt: int) -> NDArray[np.int64]:
    """Return a number in [0, 256) for every cell (x, y)."""
    mixed = (x * 374761393 + y * 668265263 + salt * 2246822519) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 1274126177) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 16)) & 255


def _tiles(x: NDArray[np.int64], y: NDArray[np.int64], salt: int) -> NDArray[np.int64]:
    row = y // 136
    shifted = x + row % 2 * 110
    tone = _noise(shifted // 220, row, salt) % 14 - 7
    joint = (y % 136 < 6) | (shifted % 220 < 6)
    gleam = (y % 136 < 12) | (shifted % 220 < 12)
    return np.where(joint, -30, np.where(gleam, 14, tone))


def _planks(x: NDArray[np.int64], y: NDArray[np.int64], salt: int) -> NDArray[np.int64]:
    plank = (y - COUNTER_TOP * 4) // 184
    start = x + _noise(plank, plank * 0, salt) * 8
    tone = _noise(start // 1300, plank, salt + 1) % 24 - 12
    bow = (start // 90 % 8 - 4) ** 2 // 4
    grain = _noise(start // 900, (y + bow) // 10, salt + 2) % 20 - 10
    fine = _noise(start // 260, y // 4, salt + 3) % 10 - 5
    joint = ((y - COUNTER_TOP * 4) % 184 < 4) | (start % 1300 < 4)
    return np.where(joint, -52, tone + grain + fine)
