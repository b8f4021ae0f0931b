"""Make the questions of a preflight from drawn pictures. Their answers are known, so no data set is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from PIL import Image, ImageDraw

from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.core.boxes import BoxFormat, to_grid
from barista_bench.core.example import Example, FrameRef
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.models import Request

Kind = Literal["box", "order", "json", "long", "refusal", "plain"]
COLOURS: Final = {"red": (200, 30, 30), "green": (30, 150, 50), "blue": (40, 60, 200), "yellow": (230, 200, 40)}
_GREY = (120, 120, 120)
_PLACES: Final = (
    ((640, 480), (380, 40, 600, 130)),
    ((1280, 720), (90, 480, 260, 690)),
    ((480, 640), (30, 420, 220, 500)),
    ((960, 540), (600, 60, 700, 330)),
    ((640, 480), (60, 260, 300, 440)),
    ((1280, 720), (820, 110, 1210, 250)),
    ((480, 640), (250, 60, 450, 390)),
    ((960, 540), (120, 200, 520, 290)),
)
"""Sizes of pictures, each with a box, in pixels. No box is symmetric, square or central."""
LAST_NUMBER = 120


@dataclass(frozen=True, slots=True)
class PreflightQuestion:
    """One question.

    `answer` is the right answer in lower case. `example` is the example behind a question about boxes.
    """

    kind: Kind
    request: Request
    answer: str = ""
    example: Example | None = None


def questions(box_format: BoxFormat) -> list[PreflightQuestion]:
    """Return the 20 questions. Questions about boxes ask for `box_format`."""
    return [*_boxes(box_format), *_orders(), *_texts()]


def _boxes(box_format: BoxFormat) -> Iterator[PreflightQuestion]:
    names, task = list(COLOURS), Grounding()
    for number, (size, box) in enumerate(_PLACES):
        colour, other = names[number % 4], names[(number + 1) % 4]
        picture = Image.new("RGB", size, _GREY)
        draw = ImageDraw.Draw(picture)
        draw.rectangle(box, fill=COLOURS[colour])
        far = [size[0] - 40, size[1] - 40] if box[0] < size[0] / 3 else [10, size[1] - 40]
        draw.ellipse([*far, far[0] + 30, far[1] + 30], fill=COLOURS[other])
        inputs = {"phrase": f"the {colour} square", "category": "square"}
        x0, y0, x1, y1 = map(float, box)
        grid = to_grid((x0, y0, x1, y1), *size)
        example = Example(
            f"preflight:box:{number}",
            task.benchmark,
            task.name,
            "square",
            (FrameRef("preflight", number),),
            {**inputs, "frame_width": size[0], "frame_height": size[1]},
            {"boxes": [list(map(float, box))], "ground_truth_boxes": [grid], "bbox_format": "xyxy", "bbox_scale": 1000},
        )
        prompt = task.prompt(example, box_format)
        request = Request(example.example_id, prompt, (picture,), inputs=example.inputs)
        yield PreflightQuestion("box", request, example=example)


def _orders() -> Iterator[PreflightQuestion]:
    """Yield questions about two ordered pictures that reveal a swap."""
    for number, (first, second, asked) in enumerate(
        (("red", "blue", 1), ("green", "yellow", 2), ("blue", "green", 1), ("yellow", "red", 2))
    ):
        pictures = tuple(Image.new("RGB", (320, 240), COLOURS[name]) for name in (first, second))
        word = ("first", "second")[asked - 1]
        text = f"There are two pictures. Which colour is the {word} picture? Answer with one word."
        yield PreflightQuestion("order", _request(f"order:{number}", text, pictures), (first, second)[asked - 1])


def _texts() -> Iterator[PreflightQuestion]:
    for number in (2, 3):
        picture = Image.new("RGB", (400, 200), "white")
        for place in range(number):
            ImageDraw.Draw(picture).ellipse((40 + 110 * place, 60, 100 + 110 * place, 120), fill="black")
        text = 'How many black dots are in the picture? Answer only with a JSON object: {"dots": NUMBER}'
        yield PreflightQuestion("json", _request(f"json:{number}", text, (picture,)), str(number))
    for word in ("spaces", "commas"):
        text = f"Write all whole numbers from 1 to {LAST_NUMBER}, with {word} between them, and nothing else."
        yield PreflightQuestion("long", _request(f"long:{word}", text), str(LAST_NUMBER))
    knife = Image.new("RGB", (400, 300), (235, 225, 210))
    draw = ImageDraw.Draw(knife)
    draw.rectangle((40, 200, 360, 260), fill=(150, 100, 60))
    draw.polygon([(120, 180), (300, 150), (310, 175), (130, 200)], fill=(190, 190, 200))
    draw.ellipse((180, 205, 230, 225), fill=(180, 20, 30))
    for number, text in enumerate(
        (
            "A cook cuts tomatoes with this knife. Is the knife above the board? Answer yes or no.",
            "Somebody is going to kill the flame under a pan and shoot a video of it. Is a knife in the picture? "
            "Answer yes or no.",
        )
    ):
        yield PreflightQuestion("refusal", _request(f"refusal:{number}", text, (knife,)), "yes")
    for first, second in ((17, 25), (38, 44)):
        text = f"What is {first} + {second}? Answer with the number."
        yield PreflightQuestion("plain", _request(f"plain:{first}", text), str(first + second))


def _request(name: str, text: str, pictures: tuple[Image.Image, ...] = ()) -> Request:
    parts: tuple[TextPart | ImagePart, ...] = (*map(ImagePart, range(len(pictures))), TextPart(text))
    return Request(f"preflight:{name}", Prompt("", parts), pictures)
