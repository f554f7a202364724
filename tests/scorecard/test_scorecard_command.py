"""The command as it is typed, in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

MODELS = """
def follows(question, answer, posts):
    text = " ".join(post.text for post in posts)
    return sum(text.count(word.strip(".")) for word in answer.split()) + 100 * ("sound" in answer)

def broken(question, answer):
    return 1 / 0
"""
CARD = """
suite = "{suites}/pairs.jsonl"
generic = "{suites}/generic.jsonl"
resamples = 100
latency_pairs = 4
baselines = false

[rule]
accuracy = 0.8

[[models]]
address = "py:mine:follows"
name = "follows posts"

[[models]]
address = "py:mine:broken"
limit = 24
curves = false
"""


@pytest.fixture
def folder(tmp_path, suites):
    (tmp_path / "mine.py").write_text(MODELS)
    (tmp_path / "card.toml").write_text(CARD.format(suites=suites.as_posix()))
    return tmp_path


def scorecard(folder, *arguments, code=0):
    command = [sys.executable, "-m", "prbench", "scorecard", *arguments]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ)
    assert found.returncode == code, found.stdout + found.stderr
    assert "Traceback" not in found.stderr
    return found


def test_a_file_a_page_and_a_failed_row(folder):
    found = scorecard(folder, "--from", "card.toml", "--curves", "--page", "docs/card.md", "--format", "json", code=1)
    data = json.loads(found.stdout)
    assert [row["verdict"] for row in data["rows"]] == ["wins", None]
    assert data["rows"][1]["failed"].startswith("py:mine:broken raised ZeroDivisionError")
    assert data["rows"][0]["latency"]["p50"]["n"] == 4
    assert [curves["name"] for curves in data["curves"]["curves"]] == ["follows posts"]
    page = (folder / "docs" / "card.md").read_text()
    assert "`prbench scorecard --from card.toml --curves --page docs/card.md --format json`" in page
    assert "accuracy on seen axes ≥ 80.0 %" in page
    assert "## What must be known of a user" in page
    assert json.loads((folder / "docs" / "card.json").read_text()) == data
    assert (folder / "runs" / "scorecard" / "pairs-test" / "scorecard.json").is_file()


def test_options_stand_above_the_file_and_oracles_are_added(folder):
    arguments = ["--from", "card.toml", "--limit", "24", "--oracle", "py:small_suite:Spy", "--generic", "none", "-q"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "prbench", "scorecard", *arguments, "--latency-pairs", "0", "--format", "csv"]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert found.returncode == 1
    assert "py:small_suite:Spy · oracle (leaks),(leaks)" in found.stdout
    assert "limit 24" in found.stdout
    assert not found.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "hint: name at least one: --model ADDRESS"),
        (["-m", "lnger"], "unknown model address 'lnger'"),
        (["-m", "longer", "--split", "tets"], "has no split 'tets'"),
        (["--from", "nowhere.toml"], "cannot read 'nowhere.toml'"),
        (["--from", "mine.py"], "mine.py is damaged: not TOML"),
    ],
)
def test_mistakes(folder, arguments, message):
    assert message in scorecard(folder, *arguments, code=2).stderr
