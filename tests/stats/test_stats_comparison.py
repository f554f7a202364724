"""Paired tests against hand-computed figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prbench.stats import Clusters, compare_paired, holm, mcnemar


def test_mcnemar_by_hand():
    # 5 discordant pairs, 4 : 1 → 2·(C(5,0) + C(5,1))/2⁵ = 12/32.
    a = [1, 1, 1, 0.5, 0, 1, 0, 0.5]
    b = [0, 0, 0.5, 0, 1, 1, 0, 0.5]
    assert mcnemar(a, b) == pytest.approx(12 / 32)
    assert mcnemar(b, a) == pytest.approx(12 / 32)


def test_mcnemar_without_discordant_pairs_is_one():
    assert mcnemar([1, 0], [1, 0]) == 1.0
    assert mcnemar([], []) == 1.0
    assert mcnemar([1, 0], [0, 1]) == 1.0


def test_mcnemar_refuses_unpaired_credits():
    with pytest.raises(ValueError, match="b has 1 values where 2 are needed"):
        mcnemar([1, 0], [1])


def test_holm_by_hand():
    # Ascending .01 .02 .03 .5 times 4 3 2 1 → .04 .06 .06 .5
    assert holm([0.02, 0.5, 0.01, 0.03]).tolist() == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_keeps_the_order_and_never_helps(p_values):
    adjusted = holm(p_values)
    assert (adjusted >= np.array(p_values)).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p_values, kind="stable")]) >= 0).all()
    assert adjusted.min() == pytest.approx(min(1, min(p_values) * len(p_values)))


def test_compare_paired_counts_and_agrees_with_its_parts():
    users, questions = [row // 4 for row in range(160)], list(range(160))
    a = np.array([1, 1, 1, 0.5] * 40)
    b = np.array([1, 0, 1, 1] * 40)
    clusters = Clusters.of(users, questions)
    result = compare_paired(a, b, clusters, np.random.default_rng(0))
    assert (result.wins, result.losses, result.ties) == (40, 40, 80)
    assert result.mcnemar_p == 1.0
    assert result.difference.value == pytest.approx(0.125)
    assert result.clustered_p == 2.0**-39  # every user differs by exactly as much


def test_interval_and_clustered_p_tell_the_same_story():
    rng = np.random.default_rng(1)
    clusters = Clusters.of([row // 5 for row in range(300)], list(range(300)))
    agree = 0
    for shift in np.linspace(0, 0.3, 60):
        a, b = rng.random(300) < 0.5 + shift, rng.random(300) < 0.5
        result = compare_paired(a, b, clusters, rng, resamples=1000)
        excluded = not result.difference.low <= 0 <= result.difference.high
        agree += excluded == (result.clustered_p < 0.05)
    assert agree >= 56


def test_one_cluster_gives_no_clustered_p():
    result = compare_paired([1, 1], [0, 0], Clusters.of("aa", "xy"), np.random.default_rng(0))
    assert result.clustered_p is None
    assert result.difference.low is None
