"""The chance to see a relation, before anything is run."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from prbench.cli import app
from prbench.stats.correlation import Design, lineage_power, models_needed, simulated_power


def power(true, **changes):
    design = Design(
        **{"models": 24, "spread": 7.0, "benchmark_error": 0.0, "gain_spread": 1.0, "gain_error": 0.0, **changes}
    )
    return simulated_power(design, true, np.random.default_rng(1), studies=3000)


def test_without_error_it_is_the_power_of_a_plain_correlation():
    assert power(0.0).power == pytest.approx(0.025, abs=0.012)  # the right direction only
    for true in (0.7, 0.5):
        assert power(true, models=models_needed(true)).power == pytest.approx(0.8, abs=0.06)


def test_spread_beats_number():
    narrow = {"benchmark_error": 3.0, "gain_error": 1.0, "spread": 3.0}
    assert power(0.95, **narrow, models=30).mean < 0.65
    assert power(0.95, **{**narrow, "spread": 12.0, "gain_spread": 4.0}, models=24).mean > 0.8


def test_lineages_cost_power():
    assert power(0.6, lineages=3).low < power(0.6).low


@pytest.mark.parametrize(("design", "true"), [({"models": 3}, 0.5), ({}, 1.5)])
def test_what_cannot_be_simulated_is_refused(design, true):
    with pytest.raises(ValueError, match=r"too few|not between"):
        power(true, **design)


def test_the_command_says_whether_to_run():
    first = ["study", "power", "--models", "15", "--spread", "3", "--couples", "10", "--items", "120"]
    shown = CliRunner().invoke(app, first)
    assert shown.exit_code == 0, shown.output
    assert "too little to run it" in shown.output
    wide = ["study", "power", "--spread", "12", "--items", "3000", "--gain-spread", "0.2", "--format", "json"]
    found = json.loads(CliRunner().invoke(app, wide).output)
    assert found["power"]["0.9"]["power"] > 0.95


def test_lineages_that_share_what_is_left_are_seen_less_often_and_the_command_says_so():
    few = Design(24, 7, 1.1, 0.048, 0.028, lineages=4)
    many = few._replace(lineages=24)
    low, high = (lineage_power(one, 0.7, np.random.default_rng(0), studies=60) for one in (few, many))
    assert low < high
    options = ["--models", "12", "--lineages", "4", "--format", "json"]
    told = json.loads(CliRunner().invoke(app, ["study", "power", *options]).stdout)
    assert set(told["lineage_power"]) == set(told["power"])
    assert "lineages drawn whole" in CliRunner().invoke(app, ["study", "power", *options[:4]]).stdout
