"""axe-core over every page: nothing serious or critical, in both themes and on a phone."""

import sys
from pathlib import Path

import pytest

from prbench import evaluate
from prbench.models.python import wrap
from prbench.report.leaderboard import write_site
from prbench.report.page import report_page
from prbench.report.view import go_live
from small_suite import follows_posts, mirrored

pytestmark = pytest.mark.browser

AXE = next(iter(sorted((Path(sys.prefix) / "axe-core").glob("*/axe.min.js"))), None)
SIZES = {"desk": (1280, 900), "phone": (390, 800)}


def against(question, answer, posts):
    return -follows_posts(question, answer, posts)


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accessibility")
    for name, model in (("follows", follows_posts), ("against", against)):
        evaluate(
            wrap(model, f"py:a:{name}"),
            mirrored(couples=8),
            contexts=["none", "profile", "other", "opposite"],
            by=["axis"],
            resamples=100,
            out=folder / "results" / name,
        )
    write_site(folder / "results", folder / "site")
    report = report_page([folder / "results" / "follows", folder / "results" / "against"])
    (folder / "report.html").write_text(go_live(report, "v", ["/", "/leaderboard"]), encoding="utf-8")
    return {"leaderboard": folder / "site" / "index.html", "report": folder / "report.html"}


def findings(page):
    """What axe calls serious or critical, as readable lines."""
    if AXE is None:
        pytest.skip("NO AXE-CORE: accessibility is NOT tested; `make test-browser` fetches it")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{item['id']} ({item['impact']}): {node['html'][:120]}"
        for item in found["violations"]
        if item["impact"] in ("serious", "critical")
        for node in item["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["leaderboard", "report"])
def test_no_serious_finding(browser, pages, name, size, scheme):
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(pages[name].as_uri())
    page.wait_for_timeout(300)
    assert findings(page) == []
    context.close()


def test_axe_would_say_so(browser):
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.set_content('<html lang="en"><title>t</title><main><p style="color:#ccc">pale</p><input></main>')
    assert {line.split(" ")[0] for line in findings(page)} == {"color-contrast", "label"}
    context.close()
