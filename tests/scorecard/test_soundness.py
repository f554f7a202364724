"""Does following the user cost soundness? Models of which the answer is known beforehand."""

import json
import re

import pytest

from planted_models import generic_pairs, unmoved
from prbench import evaluate
from prbench.cli import commands
from prbench.data import load_pairs, write_pairs
from prbench.data.lend import lend_posts
from prbench.report import run_tables
from prbench.report.page import report_page
from prbench.results import HIGH_STAKES, HIGH_STAKES_TOGETHER, SOUNDNESS, definitions, verdict, verify
from prbench.scorecard import ScorecardConfig, ScorecardModelConfig, make_scorecard, scorecard_tables
from prbench.scorecard.card import _generic_contexts
from prbench.show import render
from prbench.types import Post

FLAWED = {pair.rejected for pair in load_pairs("generic", split="test")}
MONEY = {pair.question for pair in load_pairs("generic", split="test") if pair.category == "money"}


def misled(question, answer, posts):
    """Knows what is sound, and forgets it as soon as posts are shown."""
    return float((answer in FLAWED) == bool(posts))


def misled_on_money(question, answer, posts):
    """Forgets what is sound on money questions alone."""
    return misled(question, answer, posts if question in MONEY else ())


def run(model, folder, contexts=("none", "profile"), **options):
    return evaluate(
        model, "generic+posts", split="test", contexts=contexts, resamples=100, out=folder / "run", **options
    )


def test_who_prefers_flawed_answers_where_posts_are_shown_is_seen(tmp_path):
    found = run(misled, tmp_path)
    change = found.effects.soundness
    assert (change.value, change.high, change.n) == (-1.0, -1.0, 240)
    assert {name: (one.value, one.n) for name, one in change.by.items()} == {
        **dict.fromkeys(HIGH_STAKES, (-1.0, 20)),
        HIGH_STAKES_TOGETHER: (-1.0, 60),
    }
    assert (found.effects.gain, found.effects.specificity) == (None, None)
    assert "loses soundness where a user's posts are shown: 0.0 % of pairs right with posts, 100.0" in (
        verdict(found).sentence
    )
    assert verify(tmp_path / "run").mismatches == ()
    written = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))["result"]["effects"]
    assert set(written) == {"soundness"}
    assert written["soundness"]["by"]["money"] == {"value": -1.0, "low": -1.0, "high": -1.0, "n": 20}


def test_harm_in_one_domain_is_seen_there(tmp_path):
    change = run(misled_on_money, tmp_path).effects.soundness
    assert change.value == pytest.approx(-20 / 240)
    assert change.low < change.value < change.high
    values = {name: one.value for name, one in change.by.items()}
    assert values == {"medical": 0.0, "legal": 0.0, "money": -1.0, HIGH_STAKES_TOGETHER: pytest.approx(-1 / 3)}


def test_who_ignores_the_posts_has_exactly_nothing_to_lose(tmp_path):
    found = run(unmoved, tmp_path, contexts=("none", "recent@3"))
    assert 0 < found.contexts["none"].accuracy.value < 1
    change = found.effects.soundness
    for one in (change, *change.by.values()):
        assert (one.value, one.low, one.high) == (0.0, 0.0, 0.0)
    assert "keeps its soundness" in verdict(found).sentence


def test_a_model_that_reads_no_posts_has_no_such_number(tmp_path):
    found = run("longer", tmp_path)
    assert (found.unsupported, found.effects.soundness) == (("profile",), None)


def test_pairs_without_lent_posts_say_nothing_of_soundness(suites, tmp_path):
    found = evaluate(
        misled, str(suites / "pairs.jsonl"), contexts=["none", "profile"], resamples=100, out=tmp_path / "run"
    )
    assert found.effects.soundness is None
    assert found.effects.gain is not None


def test_tables_and_page_show_it(tmp_path):
    shown = " ".join(render(run_tables(run(misled, tmp_path)), "table").split())
    assert SOUNDNESS.title in shown
    assert f"soundness on {HIGH_STAKES_TOGETHER} questions" in shown
    page = report_page([tmp_path / "run"])
    section = re.search(r'id="soundness".*?</section>', page, re.S)
    assert section is not None
    assert "Does following the user cost soundness?" in section[0]
    assert section[0].count("-100.0") + section[0].count("−100.0") >= 5


def test_the_scorecard_has_a_column_a_table_and_json(suites, tmp_path):
    posts = (Post(id="p", text="I like red."),)
    lender = generic_pairs()[0].model_copy(update={"user": "ann", "profile": posts})
    stakes = ["medical", "legal", "money", "food"]
    asked = [pair.model_copy(update={"category": stakes[i % 4]}) for i, pair in enumerate(generic_pairs())]
    write_pairs(lend_posts(asked, [lender]), tmp_path / "generic.jsonl")
    models = [
        {"address": "py:planted_models:misled"},
        {"address": "py:planted_models:unmoved", "context": "recent@1"},
        {"address": "py:planted_models:misled", "context": "oracle"},
    ]
    values = {"suite": str(suites / "pairs.jsonl"), "generic": str(tmp_path / "generic.jsonl"), "resamples": 100}
    card = make_scorecard(ScorecardConfig.of(**{**values, "models": models, "latency_pairs": 0}), tmp_path / "out")
    blind, (costly, free, leaking) = card.rows[:4], card.rows[4:]
    assert [row.soundness for row in (*blind, leaking)] == [None] * 5
    assert (costly.generic.value, costly.soundness.value) == (1.0, -1.0)
    assert set(costly.soundness.by) == {*HIGH_STAKES, HIGH_STAKES_TOGETHER}
    assert (free.soundness.value, free.soundness.low, free.soundness.high) == (0.0, 0.0, 0.0)
    main, _, table = scorecard_tables(card)
    assert main.columns[8] == "soundness [95 %]"
    assert table.title == "Does following the user cost soundness?"
    assert "-100.0" in render([table], "md")
    data = json.loads((tmp_path / "out" / "scorecard.json").read_text(encoding="utf-8"))
    assert data["rows"][4]["soundness"]["value"] == -1.0
    assert data["rows"][4]["soundness"]["by"][HIGH_STAKES_TOGETHER]["value"] == -1.0


@pytest.mark.parametrize(
    ("context", "shown"),
    [
        ("profile", ["none", "profile"]),
        ("plan", ["none", "plan"]),
        ("diluted@3", ["none", "profile"]),
        ("pairs@4", ["none", "profile"]),
        ("oracle", ["none"]),
    ],
)
def test_posts_are_shown_as_the_row_shows_them(context, shown):
    entry = ScorecardModelConfig(address="longer", context=context)
    assert _generic_contexts(entry, load_pairs("generic+posts")) == shown
    assert _generic_contexts(entry, load_pairs("generic")) == ["none"]


def test_it_is_explained(capsys):
    commands.explain("soundness")
    assert SOUNDNESS.formula in capsys.readouterr().out
    assert definitions()["soundness"].endswith("costs soundness.")
