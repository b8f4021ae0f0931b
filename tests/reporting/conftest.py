from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests: Playwright takes one at a time."""
    from playwright.sync_api import sync_playwright

    from tests.reporting.browser import CHROMIUM

    assert CHROMIUM, "no browser: apt-get install chromium, or name one in the variable CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
