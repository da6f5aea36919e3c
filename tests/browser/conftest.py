"""A browser for the tests that need one: the system's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np
import pytest

NO_BROWSER = "no browser found; on Debian: apt install chromium, or set AXODE_BROWSER to its path"
NO_SUCH_BROWSER = "AXODE_BROWSER is not the path of a program"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-dev-shm-usage",
)
# What a page without a GPU is told by the browser itself, which is no fault of the page.
NOT_OURS = ("GPU stall due to ReadPixels", "Automatic fallback to software WebGL", "GL Driver")


@dataclass
class Sight:
    """An open page, and all that it complained of.

    Attributes:
        page: Playwright's page.
        complaints: Errors in its console, exceptions, requests that failed.
        strangers: Addresses asked for on machines other than this one.
    """

    page: Any
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def picture(self, selector: str | None = None) -> np.ndarray:
        """What the page, or an element of it, looks like: (height, width, 3), 0 to 255."""
        from PIL import Image

        target = self.page if selector is None else self.page.locator(selector).first
        return np.asarray(Image.open(BytesIO(target.screenshot())).convert("RGB"))

    def _listen(self) -> None:
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(request.url))
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.type == "error" and not any(words in message.text for words in NOT_OURS):
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        own = ("http://127.0.0.1", "http://localhost", "file:", "data:", "blob:")
        if not request.url.startswith(own):
            self.strangers.append(request.url)


def colours(picture: np.ndarray) -> int:
    """How many different colours a picture has."""
    return len(np.unique(picture.reshape(-1, 3), axis=0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[Any]:
    """All tests that lack a browser say so at one place, and so on one line."""
    report = yield
    for reason in (NO_BROWSER, NO_SUCH_BROWSER):
        if report.skipped and reason in str(report.longrepr):
            report.longrepr = (__file__, 0, f"Skipped: {reason}")
    return report


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests."""
    named = os.environ.get("AXODE_BROWSER")
    path = next(filter(None, map(shutil.which, [named] if named else NAMES)), None)
    if path is None:
        pytest.skip(NO_SUCH_BROWSER if named else NO_BROWSER)
    sync_api = pytest.importorskip("playwright.sync_api", reason="`make test-all` installs it")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def sight(browser: Any) -> Iterator[Sight]:
    """A new page of 1000 by 700 pixels; a test says itself that `complaints` is empty."""
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    seen = Sight(page)
    seen._listen()
    yield seen
    page.close()
