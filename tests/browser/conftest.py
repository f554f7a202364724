"""A real browser for the tests of pages: Debian's chromium through Playwright, with everything a page does recorded.

Where there is no Chromium the tests are skipped, loudly; `make test-browser` installs it first.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """Where Chromium is, `$CHROMIUM` first."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@dataclass
class Recorded:
    """A page, and what it said and asked for since it was opened."""

    page: "playwright_api.Page"
    errors: list[str] = field(default_factory=list)
    """Console errors and uncaught exceptions."""
    requests: list[str] = field(default_factory=list)
    """Addresses asked for beyond the document itself; data: addresses never leave the page and are not counted."""

    def open(self, path: Path, hash: str = "") -> "playwright_api.Page":
        """Open a file from disk and wait until it has loaded."""
        self.page.goto(path.resolve().as_uri() + hash)
        return self.page

    def listen(self) -> None:
        """Start recording."""
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._request)

    def _request(self, request: "playwright_api.Request") -> None:
        if not request.is_navigation_request() and not request.url.startswith(("data:", "blob:")):
            self.requests.append(request.url)


@pytest.fixture(scope="module")
def browser() -> Iterator["playwright_api.Browser"]:
    """One Chromium for the tests of a module; Playwright keeps an event loop in this thread as long as it is open."""
    found = chromium()
    if found is None:
        pytest.skip("NO BROWSER: Chromium was not found, the pages are NOT tested; `make test-browser` installs it")
    with playwright_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


@pytest.fixture
def recorded(browser: "playwright_api.Browser") -> Iterator[Recorded]:
    """A page at desk size with networking off; give it a file with `recorded.open(path)`."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900}, color_scheme="light")
    context.set_default_timeout(30_000)  # a busy machine is slow, not wrong
    found = Recorded(context.new_page())
    found.listen()
    yield found
    context.close()


@pytest.fixture
def page(recorded: Recorded) -> "playwright_api.Page":
    """The page alone, for tests that look at nothing but it."""
    return recorded.page
