"""The annotation page in a browser: opening it, drawing on it, and the accepted annotations."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from playwright.sync_api import Browser, Page, expect

from barista_bench.annotate.records import AcceptedFile
from barista_bench.scene_graph.masks import decode_mask
from tests.annotate.projects import VIDEO
from tests.reporting.browser import Watched

Annotating = Callable[..., AbstractContextManager[Page]]
Visited = Callable[..., AbstractContextManager[Watched]]
"""Types of the fixtures `annotating` and `visited`."""
WIDTH, HEIGHT = 128, 72
HOSTILE = "<img src=x onerror=alert(1)>"


@contextmanager
def page_of(chromium: Browser, address: str, route: str = f"#/project/{VIDEO}") -> Iterator[Page]:
    """The page, which must have nothing to complain of in the end."""
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        watched = Watched(page)
        page.goto(address)
        page.locator("main h2").first.wait_for()
        page.goto(page.url.partition("#")[0] + route)
        yield page
        assert not watched.console
        assert not watched.dialogs
        assert {url.split("/")[2] for url in watched.requests if url.startswith("http")} == {address.split("/")[2]}


def drag(page: Page, points: list[tuple[float, float]], *, press: bool = True) -> None:
    """Through pixels of the frame: pressed all the way, or with a click at each."""
    box = page.locator(".picture canvas").first.bounding_box()
    assert box
    across, down = box["width"] / WIDTH, box["height"] / HEIGHT
    on_page = [(box["x"] + x * across, box["y"] + y * down) for x, y in points]
    page.mouse.move(*on_page[0])
    for number, (x, y) in enumerate(on_page):
        page.mouse.move(x, y, steps=3)
        if press and number == 0:
            page.mouse.down()
        elif not press:
            page.mouse.click(x, y)
    if press:
        page.mouse.up()


def drag_range(page: Page, label: str, start_share: float, end_share: float) -> None:
    """Over a lane of the timeline."""
    box = page.locator(".line").filter(has=page.get_by_title(label, exact=True)).locator(".lane").bounding_box()
    assert box
    page.mouse.move(box["x"] + start_share * box["width"], box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + end_share * box["width"], box["y"] + 5, steps=4)
    page.mouse.up()


def press(page: Page, name: str | re.Pattern[str]) -> None:
    page.get_by_role("button", name=name, exact=isinstance(name, str)).first.click()


def draw_box(page: Page, category: str, corner: tuple[float, float], size: float = 16) -> None:
    """A new object, as the segmenter sees it in a box."""
    press(page, "new object")
    page.get_by_label("category of the next object").fill(category)
    press(page, "box")
    drag(page, [corner, (corner[0] + size, corner[1] + size)])
    expect(page.locator(".facts-list .thing", has_text=category).first).to_be_visible()
    press(page, "select")


def at_rest(page: Page) -> None:
    """The stages behind the last decision are made."""
    expect(page.locator(".next progress")).to_have_count(0, timeout=300_000)


def at_frame(page: Page, frame: int) -> None:
    expect(page.locator(f'.player[data-frame="{frame}"]')).to_be_visible()


def area(accepted: AcceptedFile, frame: int, name: str) -> int:
    (keyframe,) = (keyframe for keyframe in accepted.keyframes if keyframe.frame == frame)
    return int(decode_mask(keyframe.masks[name].rle).sum())
