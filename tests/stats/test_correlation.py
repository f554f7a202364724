"""Coefficients, chance and power against the published figures (n = 6), scipy and enumeration of all tie orders."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prbench.stats.correlation import (
    COEFFICIENTS,
    chance_level,
    coefficient,
    fisher_interval,
    models_needed,
    partial_correlation,
    permutation_test,
    power_table,
)

BEST_OF_N, PPO = (1, 5, 3, 4, 6, 2), (1, 4, 3, 5, 6, 2)
"""Downstream ranks of six reward models in the order of the benchmark: the only ones that fit the paper's figures."""

PUBLISHED = {
    BEST_OF_N: {"ndcg": 0.9180, "spearman": 9 / 35, "kendall": 0.2, "weighted_tau": 0.3905, "rbo": 0.8967},
    PPO: {"ndcg": 0.9265, "spearman": 13 / 35, "kendall": 1 / 3, "weighted_tau": 0.4844, "rbo": 0.8967},
}
BENCHMARK = (6, 5, 4, 3, 2, 1)
TIED = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=9)


def as_scores(ranks):
    return [len(ranks) + 1 - rank for rank in ranks]


@pytest.mark.parametrize("ranks", PUBLISHED)
def test_published_coefficients(ranks):
    for name, value in PUBLISHED[ranks].items():
        assert coefficient(name, BENCHMARK, as_scores(ranks)) == pytest.approx(value, abs=5e-5), name


def test_each_published_pair_fits_one_order_only():
    found = {ranks: [] for ranks in PUBLISHED}
    for order in permutations(range(1, 7)):
        scores = as_scores(order)
        rho, ndcg = coefficient("spearman", BENCHMARK, scores), coefficient("ndcg", BENCHMARK, scores)
        for ranks, values in PUBLISHED.items():
            if abs(rho - values["spearman"]) < 1e-9 and abs(ndcg - values["ndcg"]) < 5e-5:
                found[ranks].append(order)
    assert found == {ranks: [ranks] for ranks in PUBLISHED}


@pytest.mark.parametrize(
    ("ranks", "name", "p"),
    [(BEST_OF_N, "spearman", 0.33), (PPO, "spearman", 0.25), (BEST_OF_N, "ndcg", 0.13), (PPO, "ndcg", 0.11)],
)
def test_published_results_are_within_chance(ranks, name, p):
    found = permutation_test(name, BENCHMARK, as_scores(ranks), np.random.default_rng(0))
    assert found.one_sided == pytest.approx(p, abs=0.005)
    assert (found.exact, found.orders) == (True, 720)
    assert found.two_sided == pytest.approx(min(1, 2 * found.one_sided))


def test_published_power_table():
    assert power_table() == {0.8: 10, 0.7: 15, 0.6: 21, 0.5: 31, 0.3: 90}
    assert models_needed(-0.8) == 10
    assert models_needed(0.0) is None
    assert models_needed(1.0) == 5
    assert models_needed(0.7, name="pearson") == 14


@pytest.mark.parametrize("models", [2, 4, 6])
@pytest.mark.parametrize("name", COEFFICIENTS)
def test_chance_is_the_mean_over_all_orders(name, models):
    ordered = list(range(models))
    mean = np.mean([coefficient(name, ordered, order) for order in permutations(ordered)])
    assert chance_level(name, models) == pytest.approx(mean, abs=1e-12)


def test_chance_of_ndcg_at_six_models():
    assert chance_level("ndcg", 6) == pytest.approx(0.70, abs=0.005)


@settings(max_examples=60, deadline=None)
@given(TIED)
def test_spearman_kendall_and_weighted_tau_are_scipys(pairs):
    from scipy import stats

    x, y = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    assume(np.ptp(x) > 0 and np.ptp(y) > 0)
    assert coefficient("spearman", x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert coefficient("kendall", x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert coefficient("weighted_tau", x, y) == pytest.approx(stats.weightedtau(x, y).statistic, abs=1e-12)
    assert coefficient("pearson", x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)


def orders_of_ties(scores):
    """Every strict order that the scores allow, as scores."""
    for order in permutations(range(len(scores))):
        if all(scores[one] >= scores[two] for one, two in pairwise(order)):
            strict = [0] * len(scores)
            for place, model in enumerate(order):
                strict[model] = len(scores) - place
            yield strict


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=4))
def test_ndcg_and_rbo_are_means_over_all_orders_of_ties(pairs):
    x, y = zip(*pairs, strict=True)
    for name in ("ndcg", "rbo"):
        every = [coefficient(name, one, two) for one in orders_of_ties(x) for two in orders_of_ties(y)]
        assert coefficient(name, x, y) == pytest.approx(np.mean(every), abs=1e-12)


def plain_rbo(one, two, p=0.9):
    """Term by term from two lists, best first."""
    overlap = [len(set(one[:depth]) & set(two[:depth])) / depth for depth in range(1, len(one) + 1)]
    terms = sum(agreement * p**depth for depth, agreement in enumerate(overlap, 1))
    return overlap[-1] * p ** len(one) + (1 - p) / p * terms


def test_rbo_and_ndcg_by_hand_without_ties():
    rng = np.random.default_rng(2)
    x, y = rng.permutation(9), rng.permutation(9)
    assert coefficient("rbo", x, y) == pytest.approx(plain_rbo(np.argsort(-x).tolist(), np.argsort(-y).tolist()))
    gains = 2.0 ** (y[np.argsort(-x)] + 1) - 1  # y is 0 … 8, so rel = y + 1
    discounts = np.log2(np.arange(2, 11))
    assert coefficient("ndcg", x, y) == pytest.approx(
        (gains / discounts).sum() / (np.sort(gains)[::-1] / discounts).sum()
    )


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_perfect_agreement_is_one_for_any_number_of_models(name):
    for models in (2, 7, 400):
        assert coefficient(name, range(models), range(models)) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["spearman", "kendall", "weighted_tau", "pearson"])
def test_without_variation_there_is_no_coefficient(name):
    assert coefficient(name, [0.1, 0.1, 0.1], [1, 2, 3]) is None
    found = permutation_test(name, [0.1, 0.1, 0.1], [1, 2, 3], np.random.default_rng(0))
    assert (found.one_sided, found.two_sided) == (None, None)


def test_drawn_orders_agree_with_all_orders_and_never_give_zero():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=8), rng.normal(size=8)
    exact = permutation_test("kendall", x, y, rng)
    assert (exact.exact, exact.orders) == (True, 40320)
    drawn = permutation_test("spearman", range(9), range(9), rng, permutations=400)
    assert (drawn.exact, drawn.orders) == (False, 400)
    assert drawn.one_sided == 1 / 401
    middling = permutation_test("spearman", range(9), [3, 1, 4, 0, 5, 8, 2, 6, 7], rng, permutations=4000)
    from scipy.stats import spearmanr

    assert middling.one_sided == pytest.approx(
        spearmanr(range(9), [3, 1, 4, 0, 5, 8, 2, 6, 7], alternative="greater").pvalue, abs=0.02
    )


def test_disagreement_is_two_sided_too():
    found = permutation_test("spearman", range(6), range(6, 0, -1), np.random.default_rng(0))
    assert found.one_sided == 1.0
    assert found.two_sided == pytest.approx(2 / 720)


def test_partial_correlation_is_that_of_residuals():
    rng = np.random.default_rng(7)
    z = rng.normal(size=30)
    x, y = z + rng.normal(size=30), z + rng.normal(size=30)
    residuals = [side - np.polyval(np.polyfit(z, side, 1), z) for side in (x, y)]
    found = partial_correlation(x, y, z, name="pearson")
    assert found.value == pytest.approx(np.corrcoef(residuals)[0, 1])
    assert found.value < coefficient("pearson", x, y)
    assert 0 < found.p < 1
    assert partial_correlation(x, y, x).value is None  # the covariate is the benchmark
    assert partial_correlation(x, y, [1.0] * 30).value is None


def test_fisher_interval_narrows_with_models():
    few, many = fisher_interval(0.5, 6), fisher_interval(0.5, 60)
    assert few.low < 0 < many.low < 0.5 < many.high < few.high
    assert fisher_interval(0.5, 3).low is None
    assert fisher_interval(1.0, 9).low is None
    assert fisher_interval(None, 9).value is None
