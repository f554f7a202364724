"""Versions of a suite: a run says which one it was on, old runs stay readable, and no table mixes two of them."""

import json
import shutil

import pytest

from prbench import evaluate
from prbench.config import RunConfig
from prbench.errors import RunError
from prbench.report.leaderboard import read_boards
from prbench.report.page import report_page
from prbench.results import load_run, standings, verify, versus
from prbench.run import Session
from prbench.studies.benchmark import read_benchmarks


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs on both versions, and one on the first as it was kept before there was a second."""
    folder = tmp_path_factory.mktemp("versions")
    for name, suite in (("first", "mirror@1"), ("second", "mirror"), ("again", "mirror@2")):
        evaluate("longer", suite, split="test", contexts=["none"], limit=80, resamples=100, out=folder / name)
    old = shutil.copytree(folder / "first", folder / "old")
    for file in ("config.toml", "run.json", "result.json", "dataset.json"):
        text = (old / file).read_text(encoding="utf-8").replace("mirror@1", "mirror")
        (old / file).write_text(text.replace('"revision": "1"', '"revision": "0.4.0"'), encoding="utf-8")
    return folder


def test_a_run_says_its_version(runs):
    dataset = json.loads((runs / "second" / "dataset.json").read_text(encoding="utf-8"))
    assert (dataset["name"], dataset["revision"]) == ("mirror@2", "2")
    assert load_run(runs / "second").config.suite == "mirror@2"
    session = Session(RunConfig.of(suite="mirror", split="test", model="longer", contexts="none", limit=10))
    assert session.default_folder().name.startswith("mirror_2-longer-")
    assert "mirror@2" in report_page([runs / "second"], with_texts=False)


def test_an_old_run_verifies_and_finds_its_texts(runs):
    assert verify(runs / "old").mismatches == ()
    assert load_run(runs / "old").config.suite == "mirror@1"
    page = report_page([runs / "old"])
    assert "is not the one of the run" not in page
    assert "--suite mirror@1" in page


def test_versions_are_not_compared(runs):
    for one in ("first", "old"):
        for two in ("second", "again"):
            with pytest.raises(RunError, match="different versions of a suite, mirror@1 and mirror@2"):
                versus(load_run(runs / one), load_run(runs / two))
            with pytest.raises(RunError, match="different versions"):
                standings([load_run(runs / one), load_run(runs / two)], "none")
            with pytest.raises(RunError, match="different versions"):
                report_page([runs / one, runs / two])
    assert versus(load_run(runs / "first"), load_run(runs / "old")).only_one == 0
    assert versus(load_run(runs / "second"), load_run(runs / "again")).only_one == 0


def test_each_version_has_its_own_board_and_benchmark(runs):
    found = read_boards([runs / name for name in ("first", "second")])
    assert [board.suite for board in found.boards] == ["mirror@1", "mirror@2"]
    assert [board.suite for board in read_boards([runs / "old"]).boards] == ["mirror@1"]
    benchmarks = read_benchmarks([runs / "old", runs / "second"])
    assert [benchmark.suite for benchmark in benchmarks] == ["mirror@1", "mirror@2"]
