"""`prbench view` in a real browser: the page sees a run move on, and keeps its place."""

import shutil

import pytest
from markupsafe import Markup

from prbench import evaluate
from prbench.models.python import wrap
from prbench.report.view import LivePages, build_pages, serve
from prbench.show.page import shell
from small_suite import follows_posts, mirrored

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("view") / "run"
    evaluate(wrap(follows_posts, "py:view:follows"), mirrored(), contexts=["none", "profile"], resamples=100, out=out)
    return out


@pytest.fixture
def half(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "half")
    (folder / "result.json").unlink()
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"".join(lines[:24]))
    return folder


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 700})
    context.set_default_timeout(15_000)
    page = context.new_page()
    page.problems = []
    page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    yield page
    context.close()


def finish(run, half):
    shutil.copyfile(run / "records.jsonl", half / "records.jsonl")
    shutil.copyfile(run / "result.json", half / "result.json")


def test_the_real_pages_follow_the_run(page, run, half):
    with serve(LivePages([half], build_pages, pause_s=0.1)) as server:
        page.goto(server.url)
        page.wait_for_selector("text=half: 24 of 72 records (33 %)")
        finish(run, half)
        page.wait_for_selector("text=half: finished, 72 records")
        page.wait_for_function("() => !document.body.innerText.includes('is not finished')")
        page.get_by_role("link", name="leaderboard").click()
        page.wait_for_selector("text=1 verified run")
    assert page.problems == []


def long_page(runs):
    rows = Markup("").join(Markup("<p>line {}</p>").format(number) for number in range(400))
    return {"/": shell("t", rows + Markup('<label>find <input name="find"></label>'))}


def test_the_place_is_kept(page, half):
    live = LivePages([half], long_page, pause_s=0.1)
    with serve(live) as server:
        page.goto(server.url)
        page.evaluate("scrollTo(0, 3000); window.before = true")
        with (half / "records.jsonl").open("ab") as handle:
            handle.write(b"\n")
        page.wait_for_function("() => window.before === undefined && scrollY === 3000")


def test_a_reader_who_types_is_asked_first(page, half):
    live = LivePages([half], long_page, pause_s=0.1)
    with serve(live) as server:
        page.goto(server.url)
        page.fill("input[name=find]", "abc")
        with (half / "records.jsonl").open("ab") as handle:
            handle.write(b"\n")
        button = page.get_by_role("button", name="Show new results")
        button.wait_for()
        assert page.input_value("input[name=find]") == "abc"
        version = page.get_attribute("#live", "data-version")
        button.click()
        page.wait_for_function(f"() => document.getElementById('live').dataset.version !== '{version}'")
        assert page.input_value("input[name=find]") == "abc"


def test_a_server_that_stops_is_said(page, half):
    with serve(LivePages([half], long_page)) as server:
        page.goto(server.url)
        page.wait_for_selector("#live-state:has-text('half')")
    page.wait_for_selector("text=The server has stopped")
