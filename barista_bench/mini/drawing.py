"""Painters of what stands on the counter. Units and origin as in `shapes`; standing things have y = 0 at
their foot.

A painter takes the canvas, the object's colour, and a variant number whose meaning its docstring gives (most
have none).
"""

from __future__ import annotations

from collections.abc import Callable

from barista_bench.mini.shapes import RGB, Canvas, dark, light, mix

Painter = Callable[[Canvas, RGB, int], None]

PALETTE: dict[str, RGB] = {
    "white": (236, 234, 228),
    "black": (44, 44, 50),
    "gray": (132, 136, 142),
    "silver": (188, 192, 198),
    "red": (196, 54, 48),
    "blue": (52, 98, 172),
    "green": (74, 140, 84),
    "yellow": (232, 190, 62),
    "orange": (226, 128, 48),
    "brown": (104, 64, 38),
    "beige": (222, 202, 168),
    "pink": (226, 148, 162),
    "purple": (120, 84, 150),
    "turquoise": (62, 160, 162),
    "transparent": (176, 206, 216),
    "skin": (222, 170, 136),
}
WHITE, INK, STEEL, GLASS = PALETTE["white"], PALETTE["black"], PALETTE["silver"], PALETTE["transparent"]
COFFEE: RGB = (88, 50, 28)


def cup(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(0, 0, 24, 6)
    c.ring(27, -25, 11, 13, 5, dark(colour, 12))
    c.poly([(-24, -44), (24, -44), (21, -8), (16, 0), (-16, 0), (-21, -8)], colour)
    c.oval(0, -1, 16, 4, colour)
    c.shade(70).poly([(8, -46), (26, -46), (22, 6), (6, 6)], dark(colour, 60))
    c.shade(90).poly([(-17, -44), (-12, -44), (-10, 2), (-14, 2)], light(colour, 80))
    c.oval(0, -44, 24, 7, light(colour, 25))
    c.oval(0, -43, 21, 5, dark(colour, 45))


def glass(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(0, 0, 19, 5)
    pane = c.glass(150)
    pane.poly([(-20, -64), (20, -64), (15, 0), (-15, 0)], mix(colour, GLASS, 50))
    c.shade(120).poly([(-14, -60), (-10, -60), (-8, -4), (-11, -4)], (255, 255, 255))
    c.shade(90).rect(-20, -6, 20, 0, dark(GLASS, 20))
    c.glass(190).oval(0, -64, 20, 6, light(GLASS, 45))
    c.glass(170).oval(0, -63, 17, 4, dark(GLASS, 18))


def saucer(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(2, 4, 38, 10)
    c.oval(0, 2, 38, 10, dark(colour, 25))
    c.oval(0, 0, 38, 10, colour)
    c.oval(0, 1, 26, 6, dark(colour, 10))
    c.oval(0, 2, 24, 5, light(colour, 20))


def surface(c: Canvas, colour: RGB, level: int) -> None:
    """The liquid in a cup's or jug's mouth; `level` 1..8 is how full it is."""
    rx, ry = 8 + level * 3 // 2, 2 + level * 3 // 8
    c.oval(0, 0, rx, ry, colour)
    c.shade(90).oval(-rx // 3, 0, rx // 2, max(1, ry // 2), light(colour, 45))


def stream(c: Canvas, colour: RGB, height: int) -> None:
    """Liquid falling from the origin over `height` units."""
    c.bone(0, 0, 0, max(3, height), 4, colour)
    c.shade(110).rect(-1, 0, 0, height, light(colour, 60))


def spoon(c: Canvas, colour: RGB, _: int) -> None:
    """Origin at the bowl; the shaft points up and to the right."""
    c.shadow(12, 2, 20, 3)
    c.bone(2, -2, 52, -34, 4, dark(colour, 10), 6)
    c.shade(150).bone(4, -4, 50, -34, 1, light(colour, 70))
    c.oval(0, 0, 10, 6, colour)
    c.oval(0, 0, 7, 4, dark(colour, 18))


def milk_carton(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(2, 0, 28, 7)
    c.rect(-25, -72, 25, 2, WHITE)
    c.poly([(-25, -72), (25, -72), (17, -92), (-17, -92)], light(colour, 20))
    c.rect(-17, -101, 17, -91, colour)
    c.shade(80).poly([(10, -101), (30, -101), (30, 4), (12, 4)], dark(WHITE, 50))
    c.shade().rect(-25, -46, 25, 2, colour)
    c.shade().oval(0, -46, 25, 8, colour)
    c.shade().oval(-4, -22, 10, 10, WHITE)
    c.shade().oval(0, -25, 4, 4, INK)
    for x, w in ((-16, 9), (-5, 7), (4, 12)):
        c.shade(220).rect(x, -64, x + w, -59, dark(colour, 20))


def cap(c: Canvas, colour: RGB, _: int) -> None:
    c.rect(-8, -9, 8, 2, colour, 3)
    for x in (-5, -1, 3):
        c.shade(120).rect(x, -6, x + 1, 2, dark(colour, 50))
    c.shade(150).oval(0, -7, 7, 2, light(colour, 40))


def jar(c: Canvas, colour: RGB, _: int) -> None:
    """A glass jar; the colour is its content's."""
    c.shadow(2, 0, 26, 6)
    c.rect(-25, -56, 25, 2, mix(GLASS, WHITE, 30), 7)
    c.shade().rect(-22, -38, 22, -1, colour, 5)
    c.shade(160).oval(0, -38, 22, 5, light(colour, 40))
    c.shade().rect(-14, -28, 14, -10, (244, 238, 220))
    c.shade(200).rect(-9, -22, 9, -20, COFFEE)
    c.shade(200).rect(-6, -17, 6, -15, COFFEE)
    c.shade(140).rect(-21, -52, -18, -6, (255, 255, 255))
    c.oval(0, -56, 20, 5, dark(GLASS, 20))


def jar_lid(c: Canvas, colour: RGB, _: int) -> None:
    c.rect(-23, -9, 23, 3, colour, 4)
    c.shade(100).rect(-23, -2, 23, 3, dark(colour, 50))
    c.oval(0, -9, 22, 5, light(colour, 20))
    c.oval(0, -13, 6, 5, dark(colour, 10))


def container(c: Canvas, colour: RGB, _: int) -> None:
    """A tin of beans, open at the top."""
    c.shadow(2, 0, 27, 7)
    c.rect(-26, -62, 26, -2, colour)
    c.oval(0, -1, 26, 6, colour)
    c.shade(80).rect(12, -66, 30, 8, dark(colour, 60))
    c.shade(110).rect(-20, -60, -15, 4, light(colour, 70))
    c.shade().rect(-26, -44, 26, -18, (240, 228, 204))
    bean(c, 0, -31)
    c.oval(0, -62, 26, 7, light(colour, 30))
    c.oval(0, -61, 23, 5, (52, 32, 22))


def bean(c: Canvas, x: int, y: int) -> None:
    c.shade().oval(x, y, 7, 9, COFFEE)
    c.shade().bone(x, y - 8, x + 1, y + 8, 2, dark(COFFEE, 60))


def pitcher(c: Canvas, colour: RGB, _: int) -> None:
    """A milk jug; spout to the left, handle to the right."""
    c.shadow(2, 0, 24, 6)
    c.ring(28, -28, 13, 18, 5, dark(colour, 30))
    c.poly([(-20, -54), (20, -54), (24, -16), (22, 0), (-22, 0), (-24, -16)], colour)
    c.poly([(-33, -59), (-8, -57), (-14, -36), (-21, -40)], light(colour, 12))
    c.oval(0, -1, 22, 5, colour)
    c.shade(120).poly([(-14, -54), (-7, -54), (-8, 4), (-15, 4)], light(colour, 80))
    c.shade(90).poly([(8, -54), (24, -54), (26, 4), (9, 4)], dark(colour, 55))
    c.oval(0, -54, 20, 6, light(colour, 35))
    c.oval(0, -53, 17, 4, dark(colour, 55))


def tamper(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(0, 0, 18, 5)
    c.rect(-5, -28, 5, -8, STEEL)
    c.rect(-16, -10, 16, 0, STEEL, 3)
    c.shade(140).rect(-12, -10, -6, 0, light(STEEL, 80))
    c.shade(90).rect(6, -30, 18, 2, dark(STEEL, 50))
    c.oval(0, -36, 12, 13, colour)
    c.shade(110).oval(-4, -41, 4, 5, light(colour, 60))


def basket(c: Canvas, colour: RGB, _: int) -> None:
    """A portafilter's head without its handle. Origin at its middle."""
    c.bone(-7, 10, -9, 20, 6, dark(colour, 25))
    c.bone(7, 10, 9, 20, 6, dark(colour, 25))
    c.poly([(-23, -9), (23, -9), (20, 9), (12, 14), (-12, 14), (-20, 9)], colour)
    c.shade(150).rect(-16, -9, -9, 14, light(colour, 70))
    c.shade(90).rect(10, -9, 24, 16, dark(colour, 55))
    c.rect(-27, -11, -20, -3, dark(colour, 15))
    c.oval(0, -9, 23, 6, light(colour, 30))
    c.oval(0, -9, 19, 4, (58, 54, 54))


def pf_handle(c: Canvas, colour: RGB, _: int) -> None:
    """Origin at the portafilter's middle, pointing right."""
    c.bone(20, 0, 34, 0, 8, STEEL)
    c.bone(36, 0, 80, 0, 13, colour, 17)
    c.shade(110).bone(40, -3, 80, -4, 3, light(colour, 60))


def capsule(c: Canvas, colour: RGB, _: int) -> None:
    c.poly([(-9, -13), (9, -13), (12, 0), (-12, 0)], colour)
    c.oval(0, -13, 9, 3, light(colour, 40))
    c.oval(0, 0, 13, 3, light(colour, 25))
    c.shade(130).poly([(-6, -12), (-3, -12), (-4, 0), (-8, 0)], light(colour, 80))


def towel(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(2, 2, 42, 9)
    c.poly([(-40, -12), (-30, -22), (34, -22), (42, -10), (38, 4), (-36, 4)], colour)
    for x in (-30, -18, 18, 28):
        c.shade(200).poly([(x, -24), (x + 4, -24), (x + 6, 6), (x + 1, 6)], WHITE)
    c.shade(70).poly([(-42, -3), (44, -3), (44, 6), (-42, 6)], dark(colour, 60))


def scale(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(0, 6, 52, 10)
    c.poly([(-44, -14), (44, -14), (52, 2), (-52, 2)], light(colour, 14))
    c.rect(-52, 2, 52, 12, colour)
    c.shade().rect(10, 4, 44, 10, (28, 46, 44))
    for x in (18, 25, 32):
        c.shade().rect(x, 5, x + 4, 9, (120, 240, 210))
    c.shade(120).oval(0, -6, 34, 5, dark(colour, 25))


def trash_can(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(2, 0, 38, 8)
    c.poly([(-40, -74), (40, -74), (32, 0), (-32, 0)], colour)
    c.oval(0, 0, 32, 6, colour)
    for x in (-22, -8, 8, 22):
        c.shade(70).poly([(x - 3, -74), (x + 2, -74), (x * 4 // 5 + 2, 8), (x * 4 // 5 - 2, 8)], dark(colour, 70))
    c.oval(0, -74, 40, 10, light(colour, 20))
    c.oval(0, -73, 35, 7, (36, 34, 36))


def bottle(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(2, 0, 18, 5)
    c.rect(-16, -62, 16, 2, colour, 6)
    c.poly([(-16, -58), (16, -58), (6, -80), (-6, -80)], colour)
    c.rect(-6, -94, 6, -78, light(colour, 15))
    c.rect(-8, -100, 8, -90, INK, 2)
    c.shade().rect(-16, -46, 16, -16, (240, 230, 206))
    c.shade().oval(0, -31, 9, 9, colour)
    c.shade(130).rect(-13, -58, -10, -4, light(colour, 75))


def box(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(2, 0, 42, 7)
    c.rect(-38, -52, 38, 2, colour)
    c.poly([(-38, -52), (38, -52), (30, -64), (-30, -64)], light(colour, 30))
    c.shade(90).rect(24, -54, 40, 4, dark(colour, 50))
    c.shade().oval(-6, -25, 15, 15, light(colour, 70))
    c.shade().poly([(-12, -18), (0, -18), (-3, -32), (-9, -32)], dark(colour, 20))


def plant(c: Canvas, colour: RGB, _: int) -> None:
    leaf: RGB = (70, 132, 78)
    c.shadow(2, 0, 22, 5)
    for x, y in ((-30, -60), (-14, -82), (6, -88), (22, -74), (32, -54)):
        c.bone(0, -36, x, y, 8, mix(leaf, (20, 60, 40), abs(x)), 14)
    c.poly([(-20, -38), (20, -38), (15, 0), (-15, 0)], colour)
    c.rect(-22, -44, 22, -36, light(colour, 20), 3)


def milk_frother(c: Canvas, colour: RGB, _: int) -> None:
    c.shadow(2, 0, 27, 7)
    c.rect(-27, -12, 27, 2, INK, 4)
    c.rect(-24, -74, 24, -10, colour, 5)
    c.shade(130).rect(-17, -74, -11, -10, light(colour, 80))
    c.shade(90).rect(12, -76, 26, -8, dark(colour, 55))
    c.oval(0, -72, 23, 6, light(colour, 20))
    c.oval(0, -71, 19, 4, (70, 70, 76))


PAINTERS: dict[str, Painter] = {
    f.__name__: f
    for f in (
        cup, glass, saucer, surface, stream, spoon, milk_carton, cap, jar, jar_lid, container, pitcher,
        tamper,
        basket, pf_handle, capsule, towel, scale, trash_can, bottle, box, plant, milk_frother,
    )
}  # fmt: skip
