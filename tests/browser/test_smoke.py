"""One look at each page in a real browser, in `make test`; all of it is in `make test-browser`."""

import pytest

from prbench import evaluate
from prbench.models.python import wrap
from prbench.report.leaderboard import write_site
from prbench.report.page import report_page
from small_suite import follows_posts, mirrored


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smoke")
    model = wrap(follows_posts, "py:smoke:follows")
    evaluate(model, mirrored(), contexts=["none", "profile"], resamples=100, out=folder / "results" / "run")
    (folder / "report.html").write_text(report_page([folder / "results" / "run"]), encoding="utf-8")
    write_site(folder / "results", folder / "site")
    return {"report": folder / "report.html", "leaderboard": folder / "site" / "index.html"}


@pytest.mark.parametrize(("name", "charts"), [("report", "svg.chart"), ("leaderboard", "svg.dot")])
def test_a_page_opens_from_disk_without_a_network(recorded, files, name, charts):
    page = recorded.open(files[name])
    assert "prbench" in page.title()
    assert page.locator(charts).first.is_visible()
    assert page.get_by_text("py:smoke:follows").count() > 0
    assert (recorded.errors, recorded.requests) == ([], [])
