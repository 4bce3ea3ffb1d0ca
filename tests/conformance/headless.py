"""A real headless Chromium on the end of a pipe, spoken to by its DevTools protocol.

No network port, no driver program, no package: the browser reads commands from descriptor 3 and writes answers and
events to descriptor 4, JSON texts that end with a zero byte. It leaves when the pipe is closed.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE = 20.0
"""Seconds that one command, or one condition of a page, may take."""

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)
_LAUNCH = """
import fcntl, os, sys
into, out = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(into, 3)
os.dup2(out, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    """The path of an installed browser."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def required_chromium() -> str:
    """The browser's path. Without one the test is skipped, and the end of `make test` says what was not run."""
    path = find_chromium()
    if path is None:
        pytest.skip(f"NOT RUN: no Chromium ({', '.join(NAMES)}): apt-get install chromium-headless-shell")
    return path


class Chromium:
    """A running browser. Commands wait for their answers; events that come meanwhile are kept."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._into, data) :]
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._next(deadline, method)
            if answer.get("id") != self._number:
                self.events.append(answer)
                continue
            assert "error" not in answer, f"{method}: {answer['error']}"
            result: dict[str, Any] = answer["result"]
            return result

    def wait_for(self, method: str) -> dict[str, Any]:
        """The next event of this name, also one that has come already."""
        deadline = time.monotonic() + PATIENCE
        while True:
            for n, event in enumerate(self.events):
                if event.get("method") == method:
                    found: dict[str, Any] = self.events.pop(n)["params"]
                    return found
            self.events.append(self._next(deadline, method))

    def _next(self, deadline: float, awaited: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._out], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"Chromium gave no {awaited} in {PATIENCE} s"
            more = os.read(self._out, 1 << 20)
            assert more, f"Chromium went away before {awaited}"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def page(self, *, scripts: bool = True, dark: bool = False) -> Page:
        """A new page, watched from the start."""
        return Page(self, scripts, dark)


class Page:
    """One page: what it asked the network for, what it complained of, and hands to use it with."""

    def __init__(self, browser: Chromium, scripts: bool, dark: bool) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank", width=1300, height=900)["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)  # else keys may go to no page at all
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def open(self, path: Path) -> float:
        """Load a file; the seconds until it was loaded."""
        begun = time.monotonic()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self._browser.wait_for("Page.loadEventFired")
        return time.monotonic() - begun

    def value(self, expression: str) -> Any:
        """What an expression comes to in the page (also where the page's own scripts are off)."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait for a condition of the page."""
        deadline = time.monotonic() + PATIENCE
        while not self.value(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"it never came true: {expression}"
            self.call("Runtime.evaluate", expression="new Promise(requestAnimationFrame)", awaitPromise=True)

    def click(self, selector: str) -> None:
        """Scroll to an element and press the mouse on it."""
        x, y = self._middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def point(self, selector: str) -> None:
        """Move the mouse over an element."""
        x, y = self._middle(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def _middle(self, selector: str) -> tuple[float, float]:
        quoted = json.dumps(selector)
        box = self.value(
            f"(e => {{ if (!e) return null; e.scrollIntoView({{block: 'center', inline: 'center'}});"
            f" const b = e.getBoundingClientRect(); const x = b.x + b.width / 2, y = b.y + b.height / 2;"
            f" const hit = document.elementFromPoint(x, y);"
            f" return [x, y, e === hit || e.contains(hit) || (hit && hit.contains(e))]; }})"
            f"(document.querySelector({quoted}))"
        )
        assert box is not None, f"there is no {selector}"
        assert box[2], f"{selector} is hidden or covered"
        return box[0], box[1]

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press and release one key, by its DOM name."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        common = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0]))}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.call("Runtime.evaluate", expression="new Promise(requestAnimationFrame)", awaitPromise=True)

    def screenshot(self, path: Path) -> None:
        """For people: what the window shows."""
        import base64

        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def _events(self, *methods: str) -> list[dict[str, Any]]:
        self.value("0")  # what was on its way is here after an answer
        return [
            e["params"] for e in self._browser.events if e.get("sessionId") == self._session and e["method"] in methods
        ]

    def requests(self) -> list[str]:
        """Every address that the page asked for, the page itself aside. Data inside the page is no request."""
        asked = [e["request"]["url"] for e in self._events("Network.requestWillBeSent") if e["type"] != "Document"]
        return [url for url in asked if not url.startswith("data:")]

    def complaints(self) -> list[Any]:
        """Console errors, warnings, breaches of the page's policy, and exceptions."""
        return self._events(
            "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening"
        )


@contextmanager
def chromium(folder: Path) -> Iterator[Chromium]:
    """Start the browser with a profile in `folder`, and end it."""
    path = required_chromium()
    commands, answers = os.pipe(), os.pipe()
    arguments = [sys.executable, "-c", _LAUNCH, str(commands[0]), str(answers[1]), path, *_FLAGS]
    with (folder / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            [*arguments, f"--user-data-dir={folder / 'profile'}"],
            pass_fds=(commands[0], answers[1]),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    os.close(commands[0])
    os.close(answers[1])
    try:
        yield Chromium(commands[1], answers[0])
    finally:
        os.close(commands[1])
        os.close(answers[0])
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
