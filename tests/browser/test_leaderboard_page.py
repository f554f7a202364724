"""The leaderboard in a real browser, from disk, without a network: sorting, filters, links, both themes, a phone."""

from pathlib import Path

import pytest

from prbench import evaluate
from prbench.models.python import wrap
from prbench.report.leaderboard import write_site
from small_suite import follows_posts, mirrored

pytestmark = pytest.mark.browser


def against(question, answer, posts):
    return -follows_posts(question, answer, posts)


def judge(question, first, second, posts):
    return "first"


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaderboard")
    models = [
        wrap(follows_posts, "py:lb:follows"),
        wrap(against, "py:lb:<script>document.title='owned'</script>"),
        wrap(judge, "py:lb:judge"),
    ]
    for number, model in enumerate(models):
        out = folder / "results" / str(number)
        evaluate(model, mirrored(couples=8), contexts=["none", "profile", "other"], resamples=100, out=out)
    evaluate(models[0], mirrored(couples=2), contexts=["profile"], resamples=100, out=folder / "results" / "few")
    write_site(folder / "results", folder / "site")
    return folder / "site" / "index.html"


def names(page, context):
    rows = page.locator(f'.board >> nth=0 >> tbody[data-context="{context}"]:not(.baselines) tr[data-kind]:visible')
    return [row.split("\t")[0].split(" ")[0] for row in rows.locator(".model-name").all_inner_texts()]


def test_it_opens_from_disk_without_a_request_or_an_error(recorded, site):
    page = recorded.open(site)
    assert page.title() == "Leaderboard · prbench"
    assert page.locator(".board").count() == 2
    assert page.locator("svg.dot").count() > 10
    assert (recorded.errors, recorded.requests) == ([], [])


def test_columns_sort_within_each_context(recorded, site):
    page = recorded.open(site)
    assert names(page, "profile")[0] == "py:lb:follows"
    button = page.locator(".board >> nth=0").get_by_role("button", name="accuracy [95 %]")
    button.click()
    assert page.locator('th[aria-sort="descending"]').count() == 1
    assert names(page, "profile")[0] == "py:lb:follows"
    button.click()
    assert names(page, "profile")[-1] == "py:lb:follows"
    page.locator(".board >> nth=0").get_by_role("button", name="model").click()
    assert names(page, "profile") == sorted(names(page, "profile"))
    heading = page.locator('.board >> nth=0 >> tbody[data-context="profile"] tr >> nth=0')
    assert heading.get_attribute("class") == "heading"


def test_filters_hide_what_does_not_fit_and_stay_in_the_address(recorded, site):
    page = recorded.open(site)
    page.select_option("select[name=kind]", "comparer")
    page.select_option("select[name=context]", "profile")
    assert page.locator("tr[data-kind]:visible").count() == 1
    assert page.locator(".board:visible").count() == 1
    assert page.inner_text("#found").startswith("1 of ")
    link = page.url
    assert link.endswith("#context=profile&kind=comparer")
    page.goto("about:blank")
    page.goto(link)
    assert page.locator("tr[data-kind]:visible").count() == 1
    page.get_by_role("button", name="Clear").click()
    page.wait_for_function("() => !location.hash")
    assert page.locator(".board:visible").count() == 2
    page.fill("input[name=model]", "FOLLOWS")
    assert set(names(page, "none")) == {"py:lb:follows"}


def test_a_row_leads_to_how_it_was_made(recorded, site):
    page = recorded.open(site)
    page.locator(".model-name >> nth=0").click()
    run = page.locator(".run:target")
    assert "prbench run --suite" in run.inner_text()
    with page.expect_download() as download:
        run.get_by_role("link", name="configuration").click()
    assert 'model = "py:lb:' in Path(download.value.path()).read_text(encoding="utf-8")


def test_text_from_data_is_text(recorded, site):
    page = recorded.open(site)
    assert page.title() == "Leaderboard · prbench"
    assert page.get_by_text("<script>document.title='owned'</script>").count() > 0


def test_it_reads_without_javascript(browser, site):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(site.as_uri())
    assert page.locator("tr[data-kind]:visible").count() > 8
    assert not page.locator("#filters").is_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_themes_and_a_phone(browser, site, scheme, width):
    context = browser.new_context(offline=True, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(site.as_uri())
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    bright = sum(int(part) for part in paper[4:-1].split(",")) > 380
    assert bright == (scheme == "light")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Switch to the").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != paper
    context.close()
