"""Painters of the three coffee machines, the mill, their parts, and the hands.

Conventions as in `drawing`.
"""

from __future__ import annotations

from barista_bench.mini.drawing import COFFEE, GLASS, INK, STEEL, Painter
from barista_bench.mini.shapes import RGB, Canvas, dark, light, mix


def fully_automatic(c: Canvas, colour: RGB, _: int) -> None:
    """200 wide, 205 high; the spouts end at (0, -88), the tray is at (0, -8)."""
    c.shadow(0, 2, 108, 10)
    c.rect(-100, -205, 100, 2, colour, 12)
    c.shade(70).rect(64, -210, 104, 6, dark(colour, 60))
    c.shade(80).rect(-92, -200, -86, -8, light(colour, 80))
    c.shade().rect(-58, -132, 58, -8, (26, 26, 30), 8)
    c.shade(150).rect(-58, -132, 58, -112, (12, 12, 14))
    c.shade().rect(-24, -132, 24, -104, dark(STEEL, 35), 4)
    for x in (-9, 9):
        c.shade().rect(x - 5, -108, x + 5, -90, STEEL, 3)
    c.shade().rect(-88, -192, 22, -146, (24, 30, 38), 6)
    for y, w in ((-184, 60), (-174, 42), (-164, 52)):
        c.shade(220).rect(-80, y, -80 + w, y + 4, (110, 208, 226))
    c.shade().ring(2, -168, 12, 12, 3, (110, 208, 226))
    tray(c, 70)


def tray(c: Canvas, half: int) -> None:
    c.rect(-half, -14, half, 8, dark(STEEL, 20), 4)
    for x in range(-half + 10, half - 8, 12):
        c.shade(170).rect(x, -10, x + 6, -6, (50, 50, 54))
    c.shade(90).rect(-half, 2, half, 10, (40, 40, 44))


def capsule_machine(c: Canvas, colour: RGB, _: int) -> None:
    """120 wide, 190 high; the spout ends at (0, -84), the tray is at (0, -8)."""
    c.shadow(0, 2, 66, 8)
    c.rect(-40, -180, 40, 0, dark(colour, 35), 10)
    c.rect(-60, -190, 60, -112, colour, 24)
    c.shade(80).rect(30, -192, 64, -108, dark(colour, 60))
    c.shade(110).rect(-48, -180, -40, -122, light(colour, 70))
    c.poly([(-22, -112), (22, -112), (12, -90), (-12, -90)], STEEL)
    c.shade(150).poly([(-12, -112), (-6, -112), (-6, -90), (-8, -90)], light(STEEL, 80))
    c.bone(0, -92, 0, -86, 6, dark(STEEL, 30))
    tray(c, 52)


def portafilter_machine(c: Canvas, colour: RGB, _: int) -> None:
    """240 wide, 200 high; the group holds a portafilter at (-34, -108), the wand hangs at (96, -120)."""
    c.shadow(0, 2, 126, 10)
    c.rect(-112, -150, 112, 0, dark(colour, 40))
    c.shade(60).rect(-104, -120, 104, -10, dark(STEEL, 10))
    c.rect(-120, -196, 120, -126, colour, 8)
    c.shade(90).rect(-120, -140, 120, -124, dark(colour, 55))
    c.shade(120).rect(-116, -192, 116, -187, light(colour, 70))
    c.rect(-118, -206, 118, -194, STEEL, 4)
    c.rect(-64, -132, -4, -114, STEEL, 4)
    c.shade(140).rect(-54, -132, -44, -114, light(STEEL, 80))
    c.shade().oval(30, -160, 17, 17, STEEL)
    c.shade().oval(30, -160, 14, 14, (244, 244, 238))
    c.shade().bone(30, -160, 38, -169, 2, (200, 40, 40))
    c.rect(-118, -14, 118, 8, dark(STEEL, 20), 4)
    for x in range(-108, 108, 14):
        c.shade(170).rect(x, -10, x + 8, -6, (50, 50, 54))
    for x in (-104, 90):
        c.rect(x, 6, x + 14, 14, (36, 36, 40))


def coffee_mill(c: Canvas, colour: RGB, _: int) -> None:
    """80 wide, 170 high; grounds fall from (0, -70)."""
    c.shadow(0, 2, 44, 8)
    c.glass(190).poly([(-36, -172), (36, -172), (24, -128), (-24, -128)], GLASS)
    c.shade(235).poly([(-32, -156), (32, -156), (23, -128), (-23, -128)], COFFEE)
    c.rect(-32, -130, 32, -76, colour, 6)
    c.rect(-26, -80, 26, 0, dark(colour, 25))
    c.rect(-34, -8, 34, 6, colour, 4)
    c.rect(-9, -82, 9, -70, STEEL, 2)
    c.bone(-20, -44, 20, -44, 5, STEEL)
    c.shade(100).rect(-27, -126, -21, -80, light(colour, 70))


def button(c: Canvas, colour: RGB, pressed: int) -> None:
    """`pressed` 1 shows it pushed in and lit."""
    c.oval(0, 0, 9, 9, dark(STEEL, 40))
    c.oval(0, 0, 7, 7, mix(colour, (255, 250, 190), 55) if pressed else colour)
    c.shade(200).ring(0, 0, 4, 4, 1, INK if sum(colour) > 360 else (240, 240, 240))


def knob(c: Canvas, colour: RGB, _: int) -> None:
    c.oval(0, 0, 15, 15, dark(colour, 35))
    c.oval(0, 0, 12, 12, colour)
    c.bone(0, -2, 0, -11, 3, (250, 250, 245))


def steam_wand(c: Canvas, colour: RGB, _: int) -> None:
    """Origin at its joint; the tip is at (10, 72)."""
    c.oval(0, 0, 9, 9, dark(colour, 25))
    c.bone(0, 0, 10, 70, 7, colour, 6)
    c.shade(150).bone(-1, 4, 8, 68, 2, light(colour, 80))
    c.bone(10, 66, 10, 72, 8, dark(colour, 30))


def steam(c: Canvas, _: RGB, phase: int) -> None:
    """Vapour rising from the origin: see-through, in nobody's mask. `phase` 0..3."""
    for k in range(4):
        x = (-7, 5, -4, 8)[(k + phase) % 4]
        Canvas(c.shapes, "shadow", 52).oval(x, -8 - 11 * k - 3 * phase, 6 + 2 * k, 7, (255, 255, 255))


def water_tank(c: Canvas, colour: RGB, _: int) -> None:
    """44 wide, 130 high, see-through."""
    c.glass(200).rect(-22, -130, 22, 0, light(colour, 20), 6)
    c.shade(200).rect(-22, -134, 22, -122, dark(colour, 45), 3)
    c.shade(150).rect(-17, -118, -13, -8, (255, 255, 255))


def water(c: Canvas, colour: RGB, _: int) -> None:
    c.glass(215).rect(-19, -74, 19, -3, colour, 4)
    c.shade(160).oval(0, -73, 19, 3, light(colour, 60))


def hopper_lid(c: Canvas, colour: RGB, _: int) -> None:
    c.rect(-52, -12, 52, 0, colour, 4)
    c.shade(130).rect(-46, -10, 46, -8, light(colour, 60))
    c.rect(-10, -18, 10, -10, dark(colour, 20), 3)


def lever(c: Canvas, colour: RGB, _: int) -> None:
    """Origin at its joint, pointing left."""
    c.bone(0, 0, -66, 0, 9, colour, 13)
    c.shade(120).bone(-4, -2, -64, -3, 2, light(colour, 60))
    c.oval(0, 0, 9, 9, dark(colour, 30))


def capsule_store(c: Canvas, colour: RGB, _: int) -> None:
    """The box below the capsule machine: 184 wide, 38 high, with room for a drawer front below it."""
    c.shadow(0, 24, 98, 8)
    c.rect(-92, -40, 92, 0, colour, 4)
    c.shade(110).rect(-92, -40, 92, -32, light(colour, 30))
    c.shade(120).rect(-92, -4, 92, 0, dark(colour, 60))


def drawer(c: Canvas, colour: RGB, _: int) -> None:
    """Origin at the top middle of its front. The inside, 34 deep, lies above it."""
    c.shadow(0, 24, 92, 5)
    c.rect(-86, -34, 86, 2, dark(colour, 55))
    c.shade(120).rect(-86, -34, 86, -26, (8, 8, 8))
    c.rect(-90, 0, 90, 24, colour, 3)
    c.shade(120).rect(-88, 1, 88, 4, light(colour, 50))


def drawer_handle(c: Canvas, colour: RGB, _: int) -> None:
    c.bone(-20, 0, 20, 0, 6, colour)
    c.shade(150).rect(-18, -2, 18, -1, light(colour, 70))


def hand(c: Canvas, colour: RGB, pose: int) -> None:
    """A right hand, seen from behind.

    `pose` 0 rests open, 1 grips, 2 points; the origin is where it touches.
    """
    edge, nail = dark(colour, 24), light(colour, 45)
    if pose == 2:
        fingers = [(20, 38, 2, 4), (34, 36, 28, 20), (44, 42, 40, 28), (54, 52, 50, 40)]
        thumb = (20, 62, -2, 50)
    elif pose == 1:
        fingers = [(22, 30, -8, 0), (28, 38, -8, 13), (32, 48, -5, 26), (38, 58, 1, 39)]
        thumb = (26, 66, 12, 60)
    else:
        fingers = [(18, 36, 2, 0), (30, 32, 22, -10), (42, 34, 40, -6), (54, 42, 56, 9)]
        thumb = (16, 62, -12, 44)
    c.bone(*thumb, 19, edge, 16)
    c.bone(*thumb, 17, colour, 14)
    c.bone(48, 78, 118, 250, 40, colour, 56)
    c.poly([(14, 40), (26, 28), (52, 32), (64, 46), (70, 92), (34, 96), (14, 66)], colour)
    c.oval(38, 58, 28, 30, colour)
    c.shade(70).poly([(58, 104), (74, 92), (154, 250), (118, 270)], edge)
    for x0, y0, x1, y1 in fingers:
        c.bone(x0, y0, x1, y1, 16, edge, 14)
        c.bone(x0, y0, x1, y1, 14, colour, 12)
        c.shade(190).oval(x1 - 1, y1 - 1, 4, 3, nail)
    c.oval(40, 60, 23, 22, colour)
    for x0, y0, _, _ in fingers:
        c.shade(80).bone(x0 + 2, y0 + 5, x0 + 7, y0 + 4, 2, edge)


def sleeve(c: Canvas, colour: RGB, _: int) -> None:
    """The right arm's sleeve: nobody's mask, yet it hides what lies behind it."""
    c.bone(92, 178, 200, 450, 60, colour, 96)
    c.shade(60).poly([(112, 166), (130, 166), (250, 440), (214, 460)], dark(colour, 60))
    c.bone(64, 180, 116, 158, 15, light(colour, 18))


PAINTERS: dict[str, Painter] = {
    f.__name__: f
    for f in (
        fully_automatic, capsule_machine, portafilter_machine, coffee_mill, button, knob, steam_wand, steam,
        water_tank, water, hopper_lid, lever, capsule_store, drawer, drawer_handle, hand, sleeve,
    )
}  # fmt: skip
