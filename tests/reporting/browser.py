"""The system's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from playwright.sync_api import Browser, Page

_KNOWN = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _KNOWN)), None)
"""`CHROMIUM` names another one."""
SHOWN = "main h2"


class Watched:
    """A page, and its messages and requests: `console` has messages, exceptions and broken policies, `requests` every
    address, `dialogs` those that a script opened."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.console: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._dismiss)

    def _dismiss(self, dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()


@contextmanager
def opened(chromium: Browser, url: str, scheme: Literal["light", "dark"] = "light") -> Iterator[Watched]:
    """The page in a new context, which ends with the block, 1280 x 860 pixels."""
    context = chromium.new_context(viewport={"width": 1280, "height": 860}, color_scheme=scheme)
    page = context.new_page()
    watched = Watched(page)
    page.goto(url)
    page.locator(SHOWN).first.wait_for()
    yield watched
    context.close()
