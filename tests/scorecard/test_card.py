"""Rows whose verdict is known beforehand, failures that stay rows, and what is kept between two scorecards."""

import json
import os
import re
from pathlib import Path

import pytest

import planted_models
from prbench.errors import AddressError, ConfigError
from prbench.results import verify
from prbench.scorecard import Scorecard, ScorecardConfig, document, make_scorecard, scorecard_tables
from prbench.scorecard.latency import Latency
from prbench.scorecard.machine import Machine
from prbench.show import FORMATS, render
from prbench.stats import Estimate

GOLDEN = Path(__file__).parent / "golden"


def entries(*names, **fields):
    return [{"address": f"py:planted_models:{name}", **fields} for name in names]


def card_of(values, out, models, **settings):
    return make_scorecard(ScorecardConfig.of(**{**values, "models": models, **settings}), out)


@pytest.fixture(scope="module")
def card(suites, tmp_path_factory):
    models = [
        *entries("sound_only", "misses_soundness", "knows_all"),
        *entries("breaks", name="a broken one"),
        *entries("Counting", context="oracle"),
    ]
    values = {"suite": str(suites / "pairs.jsonl"), "generic": str(suites / "generic.jsonl"), "resamples": 100}
    return card_of(values, tmp_path_factory.mktemp("card") / "out", models, latency_pairs=0)


def row_of(card, name):
    return next(row for row in card.rows if name in row.name)


def test_who_follows_the_user_and_knows_what_is_sound_wins(card):
    row = row_of(card, "knows_all")
    assert (row.verdict, row.misses, row.shown) == ("wins", (), "profile")
    assert (row.personalized.value, row.opposite.value, row.generic.value) == (1.0, 0.0, 1.0)
    assert (row.gain.value, row.couple_coverage.value, row.mirror_consistency.value) == (0.5, 1.0, 1.0)
    assert (row.personalized.n, row.generic.n, row.without_verdict.value) == (192, 12, 0.0)


def test_who_is_worse_in_general_wins_only_half(card):
    row = row_of(card, "misses_soundness")
    assert row.verdict == "partial"
    assert row.misses == ("generic accuracy 100.0 points below the best",)


def test_who_does_not_see_the_user_fails_at_exactly_one_half(card):
    for name in ("sound_only", "random", "longer", "shorter", "overlap"):
        row = row_of(card, name)
        assert (row.verdict, row.shown, row.gain, row.specificity) == ("fails", "none", None, None)
        assert (row.personalized.value, row.couple_coverage.value) == (0.5, 0.0)


def test_baselines_stand_above_the_models(card):
    assert [row.name for row in card.rows[:4]] == ["random", "longer", "shorter", "overlap"]


def test_a_row_that_leaks_has_no_verdict_and_says_so(card):
    row = row_of(card, "oracle")
    assert (row.leaks, row.verdict, row.shown, row.specificity) == (True, None, "oracle", None)
    assert row.gain.value == 0.0
    assert "(leaks)" in render(scorecard_tables(card), "table")


def test_a_broken_model_is_a_row_with_its_reason(card):
    row = row_of(card, "a broken one")
    assert row.failed == "py:planted_models:breaks raised ZeroDivisionError: division by zero"
    assert (row.verdict, row.personalized) == (None, None)
    assert card.failed == (row,)
    for format in FORMATS:
        assert "ZeroDivisionError" in render(scorecard_tables(card), format)


def test_a_bug_keeps_its_traceback(values, tmp_path, monkeypatch):
    monkeypatch.setattr(planted_models.Counting, "render", lambda self, view: {}["nothing"])
    (row,) = card_of(values, tmp_path, entries("Counting"), baselines=False).rows
    assert row.failed == "KeyError: 'nothing'"
    assert "Traceback" in row.trace


def test_every_figure_has_n_and_an_interval_in_json(card):
    data = json.loads(card.model_dump_json())
    for row in data["rows"]:
        for name in ("generic", "personalized", "gain", "specificity", "coverage", "mirror_consistency"):
            assert row[name] is None or set(row[name]) == {"value", "low", "high", "n"}
    assert Scorecard.model_validate(data) == card
    assert data["rule"] == list(card.settings.rule.sentences())


def test_every_row_rests_on_runs_that_verify(card):
    for row in card.rows[5:]:
        for run in row.runs:
            assert not verify(Path(run)).mismatches
    assert len(row_of(card, "knows_all").runs) == 2


def test_a_finished_scorecard_asks_nothing(values, tmp_path):
    settings = {"latency_pairs": 4, "baselines": False}
    first = card_of(values, tmp_path, entries("Counting"), **settings)
    asked = len(planted_models.CALLS)
    assert asked > 400
    second = card_of(values, tmp_path, entries("Counting"), **settings)
    assert len(planted_models.CALLS) == asked
    assert second.rows == first.rows
    assert json.loads((tmp_path / "scorecard.json").read_text())["rows"] == json.loads(second.model_dump_json())["rows"]


def test_retime_asks_again_and_only_the_clock(values, tmp_path):
    settings = ScorecardConfig.of(**{**values, "models": entries("Counting"), "baselines": False, "latency_pairs": 4})
    make_scorecard(settings, tmp_path)
    planted_models.CALLS.clear()
    make_scorecard(settings, tmp_path, retime=True)
    assert len(planted_models.CALLS) == 2 * 2 * (4 + 2)
    (kept,) = (tmp_path / "latency").iterdir()
    kept.write_text("{}")
    assert make_scorecard(settings, tmp_path).rows[0].latency.pairs == 4
    assert len(planted_models.CALLS) == 2 * 2 * 2 * (4 + 2)


def test_a_limit_of_one_entry_is_its_own(values, tmp_path):
    models = [*entries("knows_all", limit=48), *entries("sound_only")]
    rows = card_of(values, tmp_path, models, baselines=False).rows
    assert [row.personalized.n for row in rows] == [48, 192]


def test_effects_of_nearest_posts_have_the_sign_of_the_users_own(values, tmp_path):
    (row,) = card_of(values, tmp_path, entries("knows_all", context="retrieved@2"), baselines=False).rows
    assert (row.shown, row.gain.value, row.verdict) == ("retrieved@2", 0.5, "wins")
    assert row.specificity.low > 0


def test_axes_are_told_apart_where_the_suite_does(tmp_path, values):
    from prbench.data import write_pairs
    from small_suite import mirrored

    pairs = [
        pair.model_copy(update={"tags": {**pair.tags, "unseen": "yes" if pair.category == "odd" else "no"}})
        for pair in mirrored(6, 12)
    ]
    write_pairs(pairs, tmp_path / "axes.jsonl")
    found = card_of(
        {**values, "suite": str(tmp_path / "axes.jsonl")}, tmp_path / "out", entries("knows_all"), baselines=False
    )
    (row,) = found.rows
    assert (row.seen_axes.n, row.unseen_axes.n) == (72, 72)


def test_mistakes_are_found_before_anything_is_asked(values, tmp_path):
    with pytest.raises(AddressError, match="unknown model address 'pyy:x'"):
        ScorecardConfig.of(**{**values, "models": [*entries("Counting"), {"address": "pyy:x"}]})
    with pytest.raises(ConfigError, match="no model was given"):
        ScorecardConfig.of(**{**values, "models": []})
    with pytest.raises(ConfigError, match="a row shows the user"):
        ScorecardConfig.of(**{**values, "models": entries("Counting", context="none")})
    with pytest.raises(ConfigError, match="has no split 'tset'"):
        card_of(values, tmp_path, entries("Counting"), split="tset")
    assert not planted_models.CALLS


def timed(row, load=0.5):
    names = ("p50", "p95", "known_user_p50", "known_user_p95", "cpu_p50", "known_user_cpu_p50")
    estimates = [Estimate(value, value - 1, value + 1, 30) for value in (41.0, 92.5, 7.25, 12.0, 40.0, 7.0)]
    machine = Machine(processor="a processor", cores=2, system="Linux", python="3.11")
    latency = Latency(
        **dict(zip(names, estimates, strict=True)),
        pairs=30,
        unanswered=0,
        load=load,
        machine=machine,
    )
    return row.model_copy(update={"latency": None if row.failed else latency, "training_pairs": 5150})


def test_a_busy_machine_is_named(card):
    for load, warned in ((0.5, False), (1e6, True)):
        rows = tuple(timed(row, load) for row in card.rows)
        assert ("busy" in render(scorecard_tables(card.model_copy(update={"rows": rows})), "md")) == warned


def test_the_page_as_a_golden_file(card):
    machine = Machine(processor="a processor", cores=2, system="Linux", python="3.11")
    update = {"rows": tuple(map(timed, card.rows)), "made": "2026-01-01T00:00:00+00:00", "machine": machine}
    page = document(card.model_copy(update=update), None, "prbench scorecard --from card.toml")
    page = re.sub(r"prbench \d\S*", "prbench X.Y", page)
    page = re.sub(r"(py:planted_models:\w+` \|) `[0-9a-f]{12}`", r"\1 `0123456789ab`", page)
    path = GOLDEN / "page.md"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(page, encoding="utf-8")
    assert page == path.read_text(encoding="utf-8")
