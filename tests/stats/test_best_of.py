"""Best-of-k against brute force over all subsets; taking the first k, and k beyond N, pinned by name."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench.stats import Candidates, best_of_curve, expected_best_of, over_optimisation, user_gains
from prbench.stats.best_of import best_of_divergence, selection_probabilities

SCORES = st.integers(-3, 3)


def brute_force(proxy, true, k):
    """The mean over all k-subsets of the mean true score of their best-scored members, in exact arithmetic."""
    total = Fraction(0)
    subsets = list(combinations(range(len(proxy)), k))
    for subset in subsets:
        best = max(proxy[index] for index in subset)
        tied = [index for index in subset if proxy[index] == best]
        total += sum((Fraction(true[index]) for index in tied), Fraction(0)) / len(tied)
    return float(total / len(subsets))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=8), st.data())
def test_expectation_equals_brute_force_over_all_subsets(pairs, data):
    proxy, true = zip(*pairs, strict=True)
    k = data.draw(st.integers(1, len(pairs)))
    assert expected_best_of(proxy, true, k) == pytest.approx(brute_force(proxy, true, k), abs=1e-12)


def test_the_order_of_sampling_does_not_matter():
    rng = np.random.default_rng(0)
    proxy, true = rng.normal(size=16), rng.normal(size=16)
    for k in (1, 2, 5, 16):
        shuffled = rng.permutation(16)
        assert expected_best_of(proxy, true, k) == pytest.approx(
            expected_best_of(proxy[shuffled], true[shuffled], k), abs=1e-12
        )
    first_two = true[:2][np.argmax(proxy[:2])]
    assert expected_best_of(proxy, true, 2) != pytest.approx(first_two)


def test_beyond_n_there_is_no_number():
    items = [Candidates(f"u{user}", "tea", range(16), range(16)) for user in range(3)]
    points = best_of_curve(items, [16, 32, 64, 128], np.random.default_rng(0))
    assert [point.true.value for point in points] == [15.0, None, None, None]
    assert [point.dropped for point in points] == [0, 3, 3, 3]
    with pytest.raises(ValueError, match="best of 32 needs 32 candidates, there are 16"):
        expected_best_of(range(16), range(16), 32)
    with pytest.raises(ValueError, match="k starts at 1"):
        expected_best_of([1], [1], 0)


@pytest.mark.parametrize("k", [1, 2, 16, 511, 512, 1000, 1024])
def test_probabilities_are_exact_for_a_thousand_candidates(k):
    n = 1024
    found = selection_probabilities(np.arange(n), k)
    exact = [float(Fraction(comb(rank - 1, k - 1), comb(n, k))) for rank in range(1, n + 1)]
    np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-300)
    assert found.sum() == pytest.approx(1, abs=1e-12)


def test_ends_of_the_curve():
    proxy, true = [3, 1, 2, 3], [0.5, 1.0, 0.0, 0.25]
    assert expected_best_of(proxy, true, 1) == pytest.approx(np.mean(true))
    assert expected_best_of(proxy, true, 4) == pytest.approx((0.5 + 0.25) / 2)


def test_an_invalid_candidate_reduces_n_and_k_above_it_drops_the_item():
    whole = Candidates("ann", "tea", [1, 2, 3], [0, 1, 2])
    torn = Candidates("bob", "tea", [1, None, 3], [0, 5, None])  # one candidate is left
    one, two, three = best_of_curve([whole, torn], [1, 2, 3], np.random.default_rng(0))
    assert (one.true.n, one.dropped, one.true.value) == (2, 0, 0.5)
    assert (two.true.n, two.dropped) == (1, 1)
    assert two.true.value == pytest.approx(5 / 3)
    assert (three.true.value, three.random.value) == (2.0, 1.0)


def test_candidates_need_a_true_score_for_every_proxy():
    with pytest.raises(ValueError, match="zip"):
        Candidates("ann", "tea", [1, 2], [1]).valid()


def test_lines_bracket_every_reward_model():
    rng = np.random.default_rng(1)
    items = []
    for number in range(40):
        true = rng.integers(0, 5, 8)
        items.append(Candidates(f"u{number % 10}", f"q{number // 10}", true + rng.normal(size=8), true))
    for point in best_of_curve(items, [1, 2, 4, 8], rng, resamples=200):
        assert point.random.value - 1e-12 <= point.true.value <= point.oracle.value + 1e-12
        assert point.regret.value == pytest.approx(point.oracle.value - point.true.value)
        assert point.gain.value == pytest.approx(point.true.value - point.random.value)
        assert point.gain.low <= point.gain.value <= point.gain.high
    assert point.gain.low > 0  # at k = 8 a good proxy helps


def test_over_optimisation_shows_proxy_up_and_true_down():
    # The most extreme candidate fools the proxy: good up to 2, worst of all at the top.
    items = [Candidates(f"u{user}", "tea", [1, 2, 3, 4, 5], [0, 1, 2, 4, -9]) for user in range(4)]
    points = best_of_curve(items, [1, 2, 5], np.random.default_rng(0))
    assert [point.proxy.value for point in points] == sorted(point.proxy.value for point in points)
    found = over_optimisation(items, [1, 2, 5, 8], np.random.default_rng(0))
    assert (found.peak_k, found.last_k) == (1, 5)
    assert found.drop.value == pytest.approx(points[0].true.value - points[2].true.value)
    assert over_optimisation(items, [8], np.random.default_rng(0)) is None


def test_intervals_end_where_true_scores_end():
    items = [Candidates(user, user, [1, 2], true) for user, true in zip("abc", ([2, 2], [2, 2], [0, 1.5]), strict=True)]
    rng = np.random.default_rng(0)
    (free,) = best_of_curve(items, [2], rng)
    (held,) = best_of_curve(items, [2], rng, bounds=(0.0, 2.0))
    for name in ("true", "random", "oracle"):
        assert getattr(free, name).high > 2
        assert getattr(held, name).high == 2
        assert getattr(held, name).value == getattr(free, name).value
    assert held.regret.low == 0
    assert held.proxy == free.proxy


@pytest.mark.parametrize("seed", range(6))
def test_rounding_is_no_over_optimisation(seed: int):
    """Where both halves of a couple choose the same, every k is worth the same; sums of floats say so only nearly."""
    rng = np.random.default_rng(seed)
    items = []
    for couple in range(4):
        proxy, true = rng.normal(size=8), 2 * rng.random(8)
        items += [Candidates(f"c{couple}", f"q{couple}", proxy, half) for half in (true, 2 - true)]
    found = over_optimisation(items, range(1, 9), np.random.default_rng(0), resamples=200)
    assert found is not None
    assert (found.peak_k, found.last_k) == (1, 8)
    assert (found.drop.value, found.drop.low, found.drop.high) == (0.0, 0.0, 0.0)


def test_user_gains_are_per_user_worst_first():
    items = [
        Candidates("ann", "tea", [1, 2], [0, 1]),
        Candidates("ann", "rum", [1, 2], [0, 3]),
        Candidates("bob", "tea", [1, 2], [1, 0]),
        Candidates("eve", "tea", [1], [1]),  # cannot be chosen for
    ]
    assert [(gain.user, gain.gain, gain.items) for gain in user_gains(items, 2)] == [("bob", -0.5, 1), ("ann", 1.0, 2)]


def test_divergence_starts_at_nothing():
    assert best_of_divergence(1) == 0
