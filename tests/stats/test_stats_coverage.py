"""Per-user numbers by hand, and what a user-blind model gets on mirrored data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench.stats import Clusters, Estimate, couple_coverage, mirror_consistency, user_coverage, wilson


def rng():
    return np.random.default_rng(0)


def test_coverage_by_hand():
    rows = {
        "sure": [1] * 10,  # p = 2⁻¹⁰, Holm over three: 3/1024
        "tied": [1] * 5 + [0.5] * 5,  # ties dropped: p = 1/32, Holm: 2/32
        "coin": [1, 0] * 5,  # P(X ≥ 5 of 10) = 638/1024
        "new": [1] * 9,  # not testable
    }
    users = [user for user, credits in rows.items() for _ in credits]
    result = user_coverage([credit for credits in rows.values() for credit in credits], users, rng())
    assert result.covered == wilson(1, 3)
    assert result.not_testable == 1
    assert result.users["sure"].p == pytest.approx(3 / 1024)
    assert result.users["tied"].p == pytest.approx(2 / 32)
    assert result.users["coin"].p == pytest.approx(638 / 1024)
    assert (result.users["new"].p, result.users["new"].covered, result.users["new"].n) == (None, None, 9)
    assert result.above_half == wilson(3, 4)
    assert result.mean_of_users.value == pytest.approx((1 + 0.75 + 0.5 + 1) / 4)
    assert result.worst_decile == Estimate(0.5, None, None, 4)


def test_only_ties_is_testable_and_not_covered():
    result = user_coverage([0.5] * 10, ["u"] * 10, rng())
    assert result.covered == wilson(0, 1)
    assert result.above_half.value == 0
    assert result.users["u"].p == 1


def test_worst_decile_is_the_mean_of_the_lowest_tenth():
    users = [user for user in range(40) for _ in range(10)]
    credits = [float(hit < user // 4) for user in range(40) for hit in range(10)]
    worst = user_coverage(credits, users, rng()).worst_decile
    assert worst.value == 0.0  # users 0 to 3
    assert worst.low == 0.0
    assert 0.0 < worst.high < 0.4


def test_no_rows():
    result = user_coverage([], [], rng())
    assert result.covered == result.mean_of_users == result.worst_decile == Estimate.undefined()


def test_a_coin_covers_nobody():
    credits = rng().integers(0, 2, 5000)
    result = user_coverage(credits, [row // 50 for row in range(5000)], rng())
    assert result.covered.value <= 0.01
    assert 0.3 < result.above_half.value < 0.6


def test_couple_coverage_by_hand():
    users = ["a", "a", "b", "b", "c", "c", "d", "d", "e"]
    couples = ["ab"] * 4 + ["cd"] * 4 + ["ef"]
    credits = [1, 0.5, 1, 1, 1, 1, 1, 0, 1]  # d is at exactly ½; f is missing
    assert couple_coverage(credits, users, couples) == wilson(1, 2)


def test_a_couple_of_three_is_refused():
    with pytest.raises(ValueError, match="couple 'x' has 3 users"):
        couple_coverage([1, 1, 1], "abc", "xxx")


mirrored = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 4)), min_size=1, max_size=60)


@settings(deadline=None)
@given(mirrored)
def test_a_user_blind_model_covers_no_couple_and_no_mirror(rows):
    one = [credit for credit, _ in rows]
    couples = [couple for _, couple in rows]
    users = [f"{couple}+" for couple in couples] + [f"{couple}-" for couple in couples]
    credits = one + [1 - credit for credit in one]
    assert couple_coverage(credits, users, couples * 2).value == 0.0
    mirrors = list(range(len(rows))) * 2
    clusters = Clusters.of(couples * 2, mirrors)
    assert mirror_consistency(credits, mirrors, clusters, rng(), resamples=20).value == 0.0


def test_mirror_consistency_by_hand():
    mirrors = [1, 2, 1, 2, 3, 3, 4]  # 4 has lost its other half
    credits = [1, 1, 1, 0.5, 0, 1, 1]
    couples = ["p", "p", "p", "p", "q", "q", "q"]
    estimate = mirror_consistency(credits, mirrors, Clusters.of(couples, mirrors), rng())
    assert estimate.value == pytest.approx(1 / 3)
    assert estimate.n == 3
    assert 0 <= estimate.low < estimate.high <= 1


def test_mirror_consistency_needs_couples_as_units_and_two_rows():
    with pytest.raises(ValueError, match="pass the couple as the user"):
        mirror_consistency([1, 1], [1, 1], Clusters.of("ab", "xx"), rng())
    with pytest.raises(ValueError, match="mirror 1 has 3 rows"):
        mirror_consistency([1, 1, 1], [1, 1, 1], Clusters.of("aaa", "xxx"), rng())
    with pytest.raises(ValueError, match="1 mirrors for 2 rows"):
        mirror_consistency([1, 1], [1], Clusters.of("aa", "xx"), rng())
    assert mirror_consistency([1], [1], Clusters.of("a", "x"), rng()) == Estimate.undefined()
