"""A headless Chromium driven through its DevTools pipe: no driver, no port, no further package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_KNOWN = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _KNOWN)), None)
"""`CHROMIUM` names another one."""
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
_QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio")


class Page:
    """One page. `console` collects console messages, exceptions and broken policies; `dialogs` what a script opened;
    `requests` every address that the page asked for."""

    def __init__(self, write: int, read: int, *, watch: bool) -> None:
        self._write, self._read, self._buffer, self._last = write, read, b"", 0
        self.console: list[str] = []
        self.dialogs: list[str] = []
        self.requests: list[str] = []
        self._session: str | None = None
        self._loaded = False
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", *(["Network"] if watch else [])):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next(30)
            if found.get("id") == self._last:
                assert "error" not in found, found
                return found["result"]
            self._event(found)

    def _next(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], max(0, deadline - time.monotonic()))[0], "the browser is silent"
            piece = os.read(self._read, 1 << 20)
            assert piece, "the browser has ended"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _event(self, found: dict[str, Any]) -> None:
        name, parameters = found.get("method"), found.get("params", {})
        if name == "Runtime.consoleAPICalled":
            self.console.append(str([one.get("value") for one in parameters["args"]]))
        elif name == "Runtime.exceptionThrown":
            self.console.append(str(parameters["exceptionDetails"]))
        elif name == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])
        elif name == "Page.javascriptDialogOpening":
            self.dialogs.append(parameters["message"])
            os.write(self._write, b'{"id":0,"method":"Page.handleJavaScriptDialog","params":{"accept":true}}\0')
        elif name == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif name == "Page.loadEventFired":
            self._loaded = True

    def open(self, url: str) -> None:
        self._loaded = False
        self.send("Page.navigate", url=url)
        while not self._loaded:
            self._event(self._next(60))
        self.settle()

    def run(self, script: str) -> Any:
        """The value of an expression; promises are waited for."""
        found = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def settle(self, condition: str = "true") -> None:
        """Wait for a condition, at most 20 seconds, and for two frames more."""
        deadline = time.monotonic() + 20
        while not self.run(condition):
            assert time.monotonic() < deadline, condition
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def key(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")
        self.settle()

    def choose(self, field: str, value: str) -> None:
        """Set a field and tell the page, as typing or choosing does."""
        self.run(
            f"(() => {{ const field = document.getElementById({json.dumps(field)}); field.value = {json.dumps(value)};"
            "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind)); })()"
        )
        self.settle()

    def text(self, selector: str) -> str:
        return self.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''")

    def count(self, selector: str) -> int:
        return self.run(f"document.querySelectorAll({json.dumps(selector)}).length")

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)
        self.settle()

    def prefer(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])
        self.settle()

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def opened(url: str, profile: Path, *, watch: bool = True) -> Iterator[Page]:
    """The page in a browser of its own, which ends with the block. Watching the network takes time of its own."""
    to_browser, write = os.pipe()
    read, from_browser = os.pipe()
    assert CHROMIUM, "no browser: apt-get install chromium, or name one in the variable CHROMIUM"
    # DevTools wants the pipes as descriptors 3 and 4.
    redirected = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    command = [CHROMIUM, *_FLAGS, *_QUIET, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
    browser = subprocess.Popen(
        ["bash", "-c", redirected, "bash", *command], pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        page = Page(write, read, watch=watch)
        page.open(url)
        yield page
    finally:
        browser.terminate()
        browser.wait(timeout=20)
        os.close(write)
        os.close(read)
