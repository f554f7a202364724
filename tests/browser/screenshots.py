"""Pictures for the documentation, from the demo's runs: `make screenshots`.

Usage: screenshots.py FOLDER RUN… The report in both themes, the pair browser with a pair open, the leaderboard, the
page for annotators.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # as a script, beside the fixtures that know where Chromium is
sys.path.append(str(Path(__file__).parents[1] / "support"))  # and the helpers of all tests

from playwright.sync_api import Browser, Page, sync_playwright

from annotate_study import served
from conftest import chromium
from prbench.data import load_pairs
from prbench.report.leaderboard import leaderboard_page, read_boards
from prbench.report.page import report_page

SIZE = {"width": 1280, "height": 900}


def main(folder: Path, runs: list[Path]) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        report, board = Path(place, "report.html"), Path(place, "leaderboard.html")
        report.write_text(report_page(runs), encoding="utf-8")
        board.write_text(leaderboard_page(read_boards(runs).boards, files=None), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        _open(browser, report, "light").screenshot(path=folder / "report-light.png")
        page = _open(browser, report, "dark")
        page.get_by_role("link", name="Contexts").click()
        page.screenshot(path=folder / "report-dark.png")
        _pair(_open(browser, report, "light")).screenshot(path=folder / "pairs.png")
        page = _open(browser, board, "light")
        page.locator(".masthead nav a").first.click()
        page.screenshot(path=folder / "leaderboard.png")
        annotate(browser, Path(place), folder)
        browser.close()
    print(*sorted(map(str, folder.glob("*.png"))), sep="\n")


def annotate(browser: Browser, place: Path, folder: Path) -> None:
    """The page on which people judge a pair of the embedded suite, half filled in."""
    with served(place, load_pairs("mirror", split="test"), names=("ann",), pairs=12) as site:
        page = browser.new_context(viewport={**SIZE, "height": 1010}, color_scheme="light").new_page()
        page.goto(site.links[0])
        page.get_by_role("checkbox").check()
        page.get_by_role("button", name="Begin").click()
        page.wait_for_selector("#judge")
        page.wait_for_load_state("networkidle")
        for key in "4534":
            page.keyboard.press(key)
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(300)
        page.screenshot(path=folder / "annotate.png")


def _open(browser: Browser, path: Path, scheme: str) -> Page:
    context = browser.new_context(viewport=SIZE, color_scheme=scheme, device_scale_factor=1, offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_timeout(500)
    return page


def _pair(page: Page) -> Page:
    """The pair browser, its first pair open."""
    page.goto(page.url + "#pairs")
    page.locator("#list [role=option]").first.click()
    page.wait_for_timeout(500)
    return page


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(run) for run in sys.argv[2:]])
