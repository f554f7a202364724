"""The report in a real browser, from disk and without a network: charts, filters, search, deep links, keys, themes."""

import re
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from prbench.report.page import report_page
from report_runs import CONTEXTS, NASTY, make_runs, suite

pytestmark = pytest.mark.browser

PAIRS = suite()


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report-page")
    path = folder / "report.html"
    path.write_text(report_page(make_runs(folder)), encoding="utf-8")
    return path


@pytest.fixture
def page(recorded, report):
    """The report, opened; whatever a test does to it must raise no error and ask for nothing."""
    yield recorded.open(report)
    assert recorded.errors == []
    assert recorded.requests == []
    assert recorded.page.evaluate("window.hacked") is None


@pytest.fixture
def pairs(page):
    """The pair browser, its list filled."""
    page.evaluate("location.hash = '#pairs'")
    page.wait_for_selector(".row")
    return page


def count(page):
    """How many pairs the list says it holds, once it has settled."""
    page.wait_for_timeout(150)
    return int(page.locator("#count").inner_text().split(" ")[0].replace(",", ""))


def follow(page, hash):
    page.evaluate("hash => { location.hash = hash }", hash)
    page.wait_for_selector(".detail h2, .detail .nothing")
    page.wait_for_timeout(150)


def test_every_chart_is_drawn_and_has_words_and_a_table(page):
    charts = page.locator("#overview svg.chart")
    assert charts.count() >= 6
    for number in range(charts.count()):
        box = charts.nth(number).bounding_box()
        assert box["width"] > 100
        assert box["height"] > 80
        assert charts.nth(number).locator("> title").text_content()
    assert page.locator("#contexts details table tbody tr").count() == 3
    page.locator("#contexts summary", has_text="The numbers as a table").click()
    assert page.locator("#contexts details table").first.is_visible()


def test_the_page_needs_no_script_but_for_the_pairs(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#ranking table").first.is_visible()
    assert page.locator("svg.chart").first.is_visible()
    assert page.get_by_text("The pair browser needs JavaScript").is_visible()
    context.close()


def test_an_injected_script_cannot_run(page, recorded):
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.injected = 1";
            document.body.append(script);
        }"""
    )
    assert page.evaluate("window.injected") is None
    assert ["Content Security Policy" in error for error in recorded.errors] == [True]
    recorded.errors.clear()


def test_filters_count_what_the_pairs_say(pairs):
    assert count(pairs) == len(PAIRS)
    pairs.select_option("#category", label="odd")
    assert count(pairs) == sum(pair.category == "odd" for pair in PAIRS)
    pairs.select_option("#user", label="u0a")
    assert count(pairs) == sum(pair.category == "odd" and pair.user == "u0a" for pair in PAIRS)
    pairs.click("#reset")
    assert count(pairs) == len(PAIRS)


def test_right_and_wrong_by_model_and_context(pairs):
    totals = {}
    for outcome in ("right", "wrong", "tie", "none"):
        pairs.select_option("#condition-model", label="py:tests:narrow")
        pairs.select_option("#condition-context", "opposite")
        pairs.select_option("#condition-outcome", outcome)
        pairs.click("#condition-add")
        totals[outcome] = count(pairs)
        pairs.click("#reset")
    assert sum(totals.values()) == len(PAIRS)
    assert totals["wrong"] > totals["right"]  # who follows the user must flip
    follow(pairs, "#pairs&is=1.none.none")
    assert count(pairs) == sum("soup" in pair.id for pair in PAIRS)
    assert pairs.locator("#conditions button").inner_text().startswith("py:tests:<b>speaker</b> no verdict under none")


def test_models_that_disagree(pairs):
    pairs.select_option("#context", "other")
    pairs.check("#disagree")
    apart = count(pairs)
    assert 0 < apart < len(PAIRS)
    marks = pairs.locator(".row").first.locator(".verdict")
    kinds = {marks.nth(i).get_attribute("class").split(" ")[1] for i in range(marks.count())}
    assert {"right", "wrong"} <= kinds


def test_search_finds_words_phrases_and_what_is_hidden(pairs):
    pairs.fill("#query", "BOOTS")
    assert count(pairs) == sum("boots" in pair.question for pair in PAIRS)
    pairs.fill("#query", '"get the red boots"')
    assert count(pairs) == sum("boots" in pair.question for pair in PAIRS)
    pairs.fill("#query", "red blue nowhere")
    assert count(pairs) == 0
    assert pairs.locator("#detail").inner_text() != ""
    pairs.fill("#query", "SECRET narrative of u0a")
    assert count(pairs) == 0
    pairs.select_option("#scope", "all")
    assert count(pairs) == sum(pair.user == "u0a" for pair in PAIRS)


@pytest.mark.parametrize("written", [quote, str], ids=["encoded", "raw"])
def test_a_deep_link_opens_its_pair(recorded, report, written):
    pair = PAIRS[-1]
    page = recorded.open(report, f"#pair={written(pair.id)}")
    page.wait_for_selector("h2.question")
    assert page.locator("h2.question").inner_text() == pair.question
    assert page.locator(".answer.chosen").inner_text().endswith(pair.chosen)
    assert page.locator('.row[aria-selected="true"]').count() == 1
    assert page.locator(".row").count() < len(PAIRS)  # only what is in sight exists
    assert recorded.errors == []


def test_a_link_to_no_pair_says_so(page):
    follow(page, "#pair=gone")
    assert "There is no pair gone" in page.locator("#detail").inner_text()


def test_a_pair_shows_all_there_is_to_know(page):
    pair = next(pair for pair in PAIRS if "tea" in pair.id)
    follow(page, f"#pair={quote(pair.id)}")
    detail = page.locator("#detail")
    assert page.locator("h2.question").inner_text() == pair.question
    assert NASTY in page.locator(".answer.rejected").inner_text()
    assert page.locator(".matrix tbody tr").count() == 3
    assert page.locator(".matrix .cell").count() == 2 * len(CONTEXTS) + 1
    assert page.locator(".matrix td", has_text="not read").count() == 1
    assert page.locator(".posts li").count() == len(pair.profile)
    assert "did not fit" in page.locator(".shown summary").inner_text()
    dropped = page.locator(".posts li.dropped")
    assert 0 < dropped.count() < len(pair.profile)
    assert "left out" in dropped.first.inner_text()
    assert not page.locator(".wanted p.voice").is_visible()
    page.locator(".wanted summary").click()
    assert pair.narrative in page.locator(".wanted").inner_text()
    assert pair.rubric_aspects[0].aspect in detail.inner_text()


def test_other_peoples_posts_are_named_as_such(page):
    follow(page, "#pair=u0a:boots&context=opposite")
    assert "posts of user u0b, not of u0a, who asks" in page.locator(".shown summary").inner_text()
    assert page.locator(".posts li").first.inner_text().startswith("u0b-0")


def test_a_judges_words_are_shown_as_text(page):
    follow(page, "#pair=u0a:bread")
    page.locator(".matrix .cell", has_text="<b>speaker</b> under profile").click()
    page.wait_for_selector(".words")
    words = page.locator(".words").all_inner_texts()
    assert len(words) == 2  # both orders
    assert all("VERDICT:" in text and NASTY in text for text in words)
    assert page.locator(":focus").get_attribute("id") == "chosen-cell"


def test_keys_move_search_open_and_leave(pairs):
    pairs.locator("#list").focus()
    first = pairs.locator(".permalink").inner_text()
    pairs.keyboard.press("j")
    pairs.wait_for_function("id => document.querySelector('.permalink').textContent !== id", arg=first)
    assert "#pair=" in pairs.url
    pairs.keyboard.press("k")
    pairs.wait_for_function("id => document.querySelector('.permalink').textContent === id", arg=first)
    pairs.keyboard.press("m")
    pairs.wait_for_function("id => document.querySelector('.permalink').textContent !== id", arg=first)
    pairs.keyboard.press("Enter")
    assert pairs.locator(":focus").get_attribute("id") == "detail"
    pairs.keyboard.press("Escape")
    assert pairs.locator(":focus").get_attribute("id") == "list"
    pairs.keyboard.press("/")
    assert pairs.locator(":focus").get_attribute("id") == "query"
    pairs.keyboard.type("jk/?")  # typed, not obeyed
    assert pairs.input_value("#query") == "jk/?"
    pairs.keyboard.press("Escape")
    pairs.keyboard.press("?")
    assert pairs.locator("#help").is_visible()
    pairs.keyboard.press("Escape")
    assert not pairs.locator("#help").is_visible()
    pairs.keyboard.press("Escape")
    pairs.wait_for_selector("#overview", state="visible")


def test_a_cell_of_the_heat_map_leads_to_its_pairs(page):
    page.locator("#groups table.heat td a").first.click()
    page.wait_for_selector("#browser:not([hidden])")
    page.wait_for_selector(".row, .nothing")
    assert "category=even" in page.url
    assert page.locator("#conditions button").count() == 1
    page.go_back()
    page.wait_for_selector("#overview", state="visible")


def test_filters_stand_in_the_address(recorded, pairs, report):
    pairs.fill("#query", "boots")
    pairs.select_option("#category", label="odd")
    pairs.select_option("#sort", "hardest")
    wanted = count(pairs)
    hash = pairs.evaluate("location.hash")
    pairs.goto("about:blank")
    recorded.open(report, hash)
    pairs.wait_for_selector(".row")
    assert count(pairs) == wanted
    assert (pairs.input_value("#query"), pairs.input_value("#sort")) == ("boots", "hardest")


def luminance(page, selector="body"):
    color = page.evaluate("s => getComputedStyle(document.querySelector(s)).backgroundColor", selector)
    return sum(map(int, re.findall(r"\d+", color)[:3]))


def test_both_themes_by_system_and_by_choice(page, report, recorded):
    assert luminance(page) > 600
    page.emulate_media(color_scheme="dark")
    assert luminance(page) < 150
    page.locator("[data-theme-toggle]").click()
    assert luminance(page) > 600
    recorded.open(report)  # the choice is remembered
    assert luminance(page) > 600


@pytest.mark.parametrize("hash", ["", "#pairs", "#pair=u0a:tea"])
def test_nothing_spills_over_on_a_phone(page, hash):
    page.set_viewport_size({"width": 360, "height": 740})
    follow(page, hash) if hash == "#pair=u0a:tea" else page.evaluate("hash => { location.hash = hash }", hash)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    if hash == "#pair=u0a:tea":
        assert page.locator("#detail").is_visible()
        assert not page.locator("#list").is_visible()
        page.locator(".back").click()
        assert page.locator("#list").is_visible()


def test_on_paper_the_overview_is_light_and_whole(page):
    page.emulate_media(media="print", color_scheme="dark")
    assert luminance(page) > 700
    assert not page.locator(".masthead nav").is_visible()
    assert page.locator("#reproduce").is_visible()
    assert page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("hash", ["", "#pair=u0a:tea"])
def test_nothing_is_in_the_way_of_whoever_cannot_see_it(browser, report, scheme, hash):
    axe = next(iter(sorted((Path(sys.prefix) / "axe-core").glob("*/axe.min.js"))), None)
    if axe is None:
        pytest.skip("NO AXE-CORE: accessibility is NOT tested; `make test-browser` fetches it")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(report.as_uri() + hash)
    page.wait_for_timeout(300)
    page.evaluate("document.querySelectorAll('details').forEach((folded) => { folded.open = true })")
    page.evaluate(axe.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [f"{item['id']}: {item['nodes'][0]['html'][:120]}" for item in found] == []
    context.close()
