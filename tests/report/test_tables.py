"""Tables as golden files: what is printed is part of the interface. UPDATE_GOLDEN=1 renews them."""

import csv
import io
import json
import os
import re
from pathlib import Path

import pytest

from prbench import evaluate
from prbench.models.python import wrap
from prbench.report import flips_table, history_table, run_tables, standings_table, versus_table
from prbench.results import history, load_run, standings, versus
from prbench.show import FORMATS, Table, render
from small_suite import follows_posts, mirrored

GOLDEN = Path(__file__).parent / "golden"


def check(name: str, text: str) -> None:
    path = GOLDEN / name
    text = re.sub(r"20\d\d-\d\d-\d\dT[\d:+]+", "20XX-XX-XXTXX:XX:XX+00:00", text)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")


def biased(question, first, second, posts):
    """Follows the user but for one topic, where it takes whatever stands first."""
    if "tea" in question:
        return "first"
    one, two = (follows_posts(question, text, posts) for text in (first, second))
    return "first" if one > two else "second" if one < two else "tie"


@pytest.fixture(scope="module")
def found():
    contexts = ["none", "profile", "other", "opposite", "oracle"]
    return evaluate(wrap(biased, "py:golden:biased"), mirrored(), contexts=contexts, by=["axis"], resamples=200)


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "json"])
def test_the_tables_of_a_run(found, format):
    check(f"run.{format}.txt", render(run_tables(found), format))


def test_csv_has_numbers_where_the_table_has_figures(found):
    for block in render(run_tables(found), "csv").split("\n\n"):
        header, *rows = csv.reader(io.StringIO(block))
        ranged = [name.removesuffix("_low") for name in header if name.endswith("_low")]
        assert ranged or header[1] == "context"
        for row in rows:
            cells = dict(zip(header, row, strict=True))
            for name in ranged:
                value, low, high = (cells[name + end] for end in ("", "_low", "_high"))
                assert value == "" or float(low or 0) <= float(value) <= float(high or 100)
    rows = list(csv.DictReader(io.StringIO(render(run_tables(found), "csv").split("\n\n")[0])))
    accuracy = found.contexts["profile"].accuracy
    shown = next(row for row in rows if row["context"] == "profile")
    assert float(shown["accuracy_low"]) == pytest.approx(100 * accuracy.low)
    assert (shown["pairs"], rows[-1]["note"], rows[-1]["accuracy"]) == ("36", "unsupported", "")


def test_comparison_and_history(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evaluate(wrap(biased, "py:golden:biased"), mirrored(), contexts=["profile"], out=tmp_path / "biased")
    evaluate(wrap(follows_posts, "py:golden:follows"), mirrored(), contexts=["profile"], out=tmp_path / "follows")
    runs = [load_run(name) for name in ("follows", "biased")]
    tables = [
        versus_table(versus(*runs)),
        flips_table(versus(*runs), 3),
        standings_table(standings(runs, "profile"), "profile"),
        history_table(history(runs), "profile"),
    ]
    check("compare.table.txt", render(tables, "table"))


NASTY = Table("T", ["a|b", "c_d"], [["x|y\nz", "50 %"], ["&{}", "[red]bold[/red]"]], ["n_ote"])


def test_nasty_text_in_every_format():
    assert "[red]bold[/red]" in render([NASTY], "table")
    assert r"x\|y z" in render([NASTY], "md")
    assert r"\&\{\}" in render([NASTY], "latex")
    assert list(csv.reader(io.StringIO(render([NASTY], "csv"))))[1] == ["T", "x|y\nz", "50 %"]
    assert json.loads(render([NASTY], "json"))["rows"][1]["c_d"] == "[red]bold[/red]"


def test_a_baseline_that_beats_chance_is_warned_of():
    pairs = [
        pair.model_copy(
            update={"tags": {"split": "test"}, "rejected": pair.rejected + " And a good deal more besides."}
        )
        for pair in mirrored(couples=20)
    ]
    result = evaluate(follows_posts, pairs, contexts=["none"])
    assert any("'shorter' beats chance (100.0%)" in warning for warning in result.warnings)
    assert "warning: baseline 'shorter' beats chance" in render(run_tables(result), "table")
