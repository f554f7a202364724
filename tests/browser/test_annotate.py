"""`prbench annotate` in a real browser: two people at once, a crash, a stale tab, keys, undo, resume, axe."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from annotate_study import NASTY, pairs, served
from prbench.data import write_pairs
from prbench.types import Post

pytestmark = pytest.mark.browser

AXE = next(iter(sorted((Path(sys.prefix) / "axe-core").glob("*/axe.min.js"))), None)


@pytest.fixture
def people(browser):
    """Opens contexts, each another person's browser; errors of any page fail the test."""
    contexts, problems = [], []

    def enter(link, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        if link:
            page.goto(link)
            page.get_by_role("checkbox").check()
            page.get_by_role("button", name="Begin").click()
            page.wait_for_url(re.compile(r"/(pair|posts|done)"))
        return page

    enter.problems = problems
    yield enter
    for context in contexts:
        context.close()
    assert [text for text in problems if "status of 4" not in text] == []  # refusals are logged, and wanted


def judge(page, preference="Answer 1", value=4):
    """Mark everything with the mouse, and save."""
    before = page.url
    mark(page, preference, value)
    page.locator("#save").click()
    page.wait_for_url(lambda url: url != before)


def mark(page, preference, value=4):
    for place in page.locator(".scale").all():
        place.get_by_label(str(value), exact=True).check()
    page.locator(".choices").get_by_label(preference, exact=True).check()


def test_two_people_at_once(tmp_path, people):
    with served(tmp_path, pairs(3)) as site:
        ann, bob = people(site.links[0]), people(site.links[1])
        for number in range(3):
            judge(ann, "Answer 1")
            assert ann.locator("#progress").get_attribute("value") == str(number + 1)
            assert bob.locator("#progress").get_attribute("value") == str(number)
            judge(bob, "I cannot tell")
        for page in (ann, bob):
            page.get_by_role("heading", name="Thank you. That was all.").wait_for()
        assert sorted(site.answers()) == [
            *((1, number, 1, "first") for number in range(3)),
            *((2, number, 1, "unsure") for number in range(3)),
        ]


def start(suite, db, port):
    command = [sys.executable, "-m", "prbench", "annotate", str(suite), "--db", str(db), "--names", "ann,bob"]
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("listening"):
            break
    return process, "".join(lines)


def test_a_crash_in_the_middle(tmp_path, people):
    suite, db = write_pairs(pairs(3), tmp_path / "pairs.jsonl"), tmp_path / "annotations.sqlite"
    process, said = start(suite, db, 0)
    try:
        link = re.search(r"http://\S+/join/\S+", said)[0]
        page = people(link)
        judge(page, "Answer 2")
        half_done = page.url
        page.locator(".scale").first.get_by_label("5", exact=True).check()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        process, said = start(suite, db, int(re.search(r":(\d+)/", link)[1]))
        assert "continued" in said
        judge(page, "Answer 2")  # the page that was open is still good
        assert page.url != half_done
        judge(page, "Answer 2")
        page.get_by_text("All 3 of your answers are saved").wait_for()
    finally:
        process.kill()
        process.communicate()


def test_a_stale_tab_is_told_so(tmp_path, people):
    with served(tmp_path, pairs(3)) as site:
        page = people(site.links[0])
        other = page.context.new_page()
        other.goto(page.url)
        judge(page, "Answer 1")
        mark(other, "Answer 2")
        other.locator("#save").click()
        other.get_by_role("heading", name="This page is out of date").wait_for()
        assert site.answers() == [(1, 0, 1, "first")]
        other.get_by_role("link", name="See what is kept").click()
        assert other.locator("input[name=preference][value=first]").is_checked()
        judge(other, "Answer 2")
        assert site.answers() == [(1, 0, 1, "first"), (1, 0, 2, "second")]


def test_forged_secrets_open_nothing(tmp_path, people):
    with served(tmp_path, pairs(3)) as site:
        page = people(None)
        page.goto(f"{site.url}/join/{'x' * 32}")
        page.get_by_role("heading", name="This invitation link is not valid").wait_for()
        ann, bob = people(site.links[0]), people(site.links[1])
        page.goto(ann.url)
        page.get_by_role("heading", name="You are not signed in").wait_for()
        cookie = {**ann.context.cookies()[0], "value": "forged.forged"}
        page.context.add_cookies([cookie])
        assert page.goto(ann.url).status == 403
        assert bob.goto(ann.url).status == 404
        assert ann.evaluate("document.cookie") == ""  # no script can read it


def test_scripts_in_texts_are_shown_and_not_run(tmp_path, people):
    with served(tmp_path, pairs(2, extra=NASTY)) as site:
        page = people(site.links[0])
        for place in ("h1.question", ".post >> nth=0", ".answer >> nth=0", ".answer >> nth=1"):
            assert NASTY in page.locator(place).inner_text()
        assert page.evaluate("window.owned") is None
        # Even a script that stood in the page would not run.
        page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'owned = 1'}))")
        assert page.evaluate("window.owned") is None
        assert page.locator("img").count() == 0
        assert "Content Security Policy" in people.problems.pop()


def test_keyboard_only(tmp_path, people):
    with served(tmp_path, pairs(3)) as site:
        page = people(None)
        page.goto(site.links[0])
        for key in ("Tab", "Tab", "Tab", "Space", "Tab", "Enter"):  # skip link, theme, consent, begin
            page.keyboard.press(key)
        page.wait_for_selector("#judge")
        page.keyboard.press("4")
        page.wait_for_selector("input[name=first_factuality][value='4']:checked")
        for key in "33555":
            page.keyboard.press(key)
        page.keyboard.press("2")
        assert page.locator("input:checked").count() == 7
        page.keyboard.press("ArrowUp")
        page.keyboard.press("1")  # helpfulness of the second answer, once more
        before = page.url
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: url != before)
        assert site.rows("SELECT preference, first_factuality, second_helpfulness FROM answer") == [("second", 4, 1)]
        page.wait_for_selector("#judge")
        page.keyboard.press("u")
        page.wait_for_url(before)
        assert page.locator("input:checked").count() == 7


def test_a_key_that_is_held_down_rates_one_line(tmp_path, people):
    with served(tmp_path, pairs(3)) as site:
        page = people(site.links[0])
        for _ in range(4):  # without a release between them: the later ones are repeats
            page.keyboard.down("5")
        page.keyboard.up("5")
        assert page.locator("input:checked").count() == 1
        page.keyboard.press("5")
        assert page.locator("input:checked").count() == 2


def test_undo_changes_and_keeps_history(tmp_path, people):
    with served(tmp_path, pairs(3)) as site:
        page = people(site.links[0])
        judge(page, "Answer 1")
        second = page.url
        page.get_by_role("link", name="Back to pair 1").click()
        page.get_by_text("You have answered this pair").wait_for()
        assert page.locator("input[name=preference][value=first]").is_checked()
        page.locator(".choices").get_by_label("I cannot tell").check()
        page.get_by_role("button", name="Save the change").click()
        page.wait_for_url(second)
        assert site.answers() == [(1, 0, 1, "first"), (1, 0, 2, "unsure")]


def test_resume_on_another_device(tmp_path, people):
    with served(tmp_path, pairs(3)) as site:
        page = people(site.links[0])
        judge(page)
        there = page.url
        page.get_by_role("button", name="Sign out on this device").click()
        page.get_by_role("heading", name="You are signed out").wait_for()
        assert people(site.links[0], viewport={"width": 390, "height": 800}).url == there


def test_it_works_without_javascript(tmp_path, people):
    with served(tmp_path, pairs(2), mode="self") as site:
        page = people(site.links[0], java_script_enabled=False)
        for number in (1, 2, 3):
            page.get_by_label(f"Post {number}").fill(f"Something about me, number {number}.")
        page.get_by_role("button", name="Save and begin").click()
        for _ in range(2):
            page.locator(".choices").get_by_label("Answer 2", exact=True).check()
            page.get_by_label("Why?").fill("It sounds like me.")
            page.locator("#save").click()
        page.get_by_role("heading", name="Thank you. That was all.").wait_for()
        assert site.rows("SELECT preference, reason FROM answer") == [("second", "It sounds like me.")] * 2
        page.get_by_role("link", name="Delete my data").click()
        page.get_by_role("button", name="Delete my data").click()
        page.get_by_role("heading", name="Your data are deleted").wait_for()
        assert site.answers() == site.rows("SELECT * FROM post") == []


def test_a_long_profile_scrolls_beside_the_answers(tmp_path, people):
    many = tuple(Post(id=f"p{number}", text=f"Post number {number}. " * 20) for number in range(300))
    with served(tmp_path, [pair.model_copy(update={"profile": many}) for pair in pairs(1)]) as site:
        page = people(site.links[0])
        posts = page.locator(".posts")
        assert posts.evaluate("box => box.scrollHeight > 10 * box.clientHeight")
        assert page.evaluate("document.documentElement.scrollHeight") < 1800
        posts.focus()
        page.keyboard.press("End")
        page.wait_for_function("() => document.querySelector('.posts').scrollTop > 1000")
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert posts.evaluate("box => box.clientHeight") < 400


def test_dark_and_light_by_system_and_by_choice(tmp_path, people):
    def paper(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    with served(tmp_path, pairs(1)) as site:
        page = people(site.links[0], color_scheme="dark")
        dark = paper(page)
        page.locator("[data-theme-toggle]").click()
        assert paper(page) != dark
        page.reload()  # remembered
        assert paper(page) != dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_in_the_way_of_whoever_cannot_see_it(tmp_path, people, scheme):
    if AXE is None:
        pytest.skip("NO AXE-CORE: accessibility is NOT tested; `make test-browser` fetches it")
    phone = {"width": 390, "height": 800}

    def check(page):
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        assert [f"{item['id']}: {item['nodes'][0]['html'][:120]}" for item in found] == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0

    with served(tmp_path, pairs(2)) as site, served(tmp_path / "self", pairs(2), mode="self") as own:
        page = people(site.links[0], color_scheme=scheme, bypass_csp=True)
        page.keyboard.press("4")  # a line that is marked, and one that has the focus
        check(page)
        page.set_viewport_size(phone)
        check(page)
        judge(page)
        for address in (f"{site.url}/last", f"{site.url}/delete", f"{site.url}/pair/none", site.links[1]):
            page.goto(address)
            check(page)
        page = people(own.links[0], color_scheme=scheme, bypass_csp=True, viewport=phone)
        check(page)
