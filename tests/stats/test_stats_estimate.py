"""Closed-form intervals against figures worked out by hand or known from textbooks."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prbench.stats import AccuracyBounds, Estimate, accuracy_bounds, quantile, wilson


def test_an_estimate_is_json_with_four_keys():
    assert json.loads(json.dumps(wilson(1, 2).to_json())).keys() == {"value", "low", "high", "n"}
    assert Estimate.undefined(3).to_json() == {"value": None, "low": None, "high": None, "n": 3}


def test_wilson_by_hand():
    # z² = 3.841459; centre (0.5 + z²/20)/(1 + z²/10) = 0.5; margin √(z²/40 + z⁴/400)/(1 + z²/10) = 0.26341
    half = wilson(5, 10)
    assert half.value == 0.5
    assert half.low == pytest.approx(0.5 - 0.26341, abs=1e-5)
    assert half.high == pytest.approx(0.5 + 0.26341, abs=1e-5)


def test_wilson_ends_at_0_and_1_exactly():
    assert wilson(0, 7).low == 0.0
    assert wilson(7, 7).high == 1.0
    assert wilson(7, 7).low == pytest.approx(7 / (7 + 3.841459), abs=1e-6)
    assert wilson(0, 0) == Estimate.undefined()


def test_wilson_refuses_more_successes_than_trials():
    with pytest.raises(ValueError, match="3 successes in 2 trials"):
        wilson(3, 2)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_symmetric_and_encloses_the_share(case):
    successes, n = case
    share, mirrored = wilson(successes, n), wilson(n - successes, n)
    assert 0 <= share.low <= share.value <= share.high <= 1
    assert share.low == pytest.approx(1 - mirrored.high, abs=1e-12)


def test_quantile_interval_is_the_known_sign_test_interval():
    # n = 10, median: P(Bin ≤ 1) = 11/1024 ≤ .025 < P(Bin ≤ 2) = 56/1024, so the 2nd to the 9th value.
    assert quantile(range(1, 11), 0.5) == Estimate(5.5, 2.0, 9.0, 10)
    # n = 6 is the least that bounds a median: 2·2⁻⁶ ≤ .05, from the first value to the last.
    assert quantile(range(1, 7), 0.5) == Estimate(3.5, 1.0, 6.0, 6)
    assert quantile(range(1, 6), 0.5) == Estimate(3.0, None, None, 5)


def test_quantile_leaves_open_what_few_values_cannot_bound():
    latency = quantile([1.0, 2.0, 3.0], 0.95)
    assert latency.value == pytest.approx(2.9)
    assert latency.high is None
    assert quantile([], 0.5) == Estimate.undefined()


def test_quantile_interval_covers_the_true_quantile():
    rng = np.random.default_rng(11)
    estimates = [quantile(rng.random(200), 0.95) for _ in range(400)]
    assert 0.93 <= np.mean([e.low <= 0.95 <= e.high for e in estimates]) <= 0.99


def test_bounds_by_hand():
    assert accuracy_bounds(8, 6.5, 2) == AccuracyBounds(0.65, 0.85)
    assert accuracy_bounds(8, 6.5, 0) == AccuracyBounds(0.8125, 0.8125)
    assert accuracy_bounds(0, 0.0, 4) == AccuracyBounds(0.0, 1.0)
    assert accuracy_bounds(0, 0.0, 0) is None
