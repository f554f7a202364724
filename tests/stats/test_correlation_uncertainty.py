"""How far coefficients move with other models and other items, rivals, and what may be said of it."""

import numpy as np
import pytest

from prbench.stats import Clusters, Estimate
from prbench.stats.correlation import (
    COEFFICIENTS,
    ItemScores,
    coefficient,
    compare_benchmarks,
    jackknife,
    over_items,
    over_models,
    permutation_test,
    rivalry_verdict,
    verdict,
    williams,
)
from prbench.stats.correlation.resampling import draw_models, drawn_scores


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_a_perfect_agreement_stays_perfect_over_models(name):
    found = over_models(name, range(7), range(7), np.random.default_rng(0), resamples=200)
    assert (found.low, found.high) == pytest.approx((1.0, 1.0))


def test_interval_over_models_follows_their_number():
    rng = np.random.default_rng(3)
    x = rng.normal(size=60)
    y = x + rng.normal(size=60)
    few = over_models("spearman", x[:8], y[:8], rng, resamples=500)
    many = over_models("spearman", x, y, rng, resamples=500)
    assert many.high - many.low < few.high - few.low
    assert many.low <= many.value == coefficient("spearman", x, y) <= many.high
    assert over_models("spearman", [1, 1, 1, 1], [1, 2, 3, 4], rng, resamples=50) == Estimate(None, None, None, 4)


def test_copies_of_a_model_keep_one_order_in_lists_and_stay_ties_elsewhere():
    drawn = draw_models(5, np.random.default_rng(1), 40)
    x, y = np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 1, 3, 5, 4])
    assert (drawn_scores("spearman", x, drawn) == x[drawn]).all()
    for row, one, two in zip(drawn, drawn_scores("rbo", x, drawn), drawn_scores("rbo", y, drawn), strict=True):
        assert len(set(one)) == 5
        for model in set(row):
            same = row == model
            assert (np.argsort(one[same]) == np.argsort(two[same])).all()


def _items(accuracies, items, rng):
    users = np.arange(items) // 4
    scores = (rng.random((len(accuracies), items)) < np.array(accuracies)[:, None]).astype(float)
    return ItemScores(scores, Clusters.of(users.tolist(), list(range(items))))


def test_more_items_pin_the_rankings_down():
    rng = np.random.default_rng(4)
    accuracies = [0.5, 0.55, 0.6, 0.65, 0.7]
    few, many = ([_items(accuracies, items, rng) for _ in range(2)] for items in (80, 4000))
    loose, tight = (over_items("spearman", *sides, rng, resamples=300) for sides in (few, many))
    assert tight.high - tight.low < loose.high - loose.low
    assert tight.value == pytest.approx(1.0)
    assert tight.low > 0.85


def test_items_of_one_cluster_give_no_interval_and_must_match():
    one = ItemScores(np.array([[1.0, 0.0], [0.0, 0.0]]), Clusters.of("aa", "xy"))
    assert over_items("spearman", one, one, np.random.default_rng(0)).low is None
    with pytest.raises(ValueError, match="for 2 items"):
        ItemScores(np.zeros((2, 3)), Clusters.of("ab", "xy"))
    three = ItemScores(np.zeros((3, 2)), Clusters.of("ab", "xy"))
    with pytest.raises(ValueError, match="2 models on one side, 3 on the other"):
        over_items("spearman", one, three, np.random.default_rng(0))


def test_models_that_tie_on_every_item_stay_tied_when_items_are_drawn():
    rng = np.random.default_rng(9)
    row = rng.integers(0, 3, 31) / 3
    items = ItemScores(np.stack([row, row, row]), Clusters.of(list(range(31)), list(range(31))))
    assert over_items("kendall", items, items, rng, resamples=50).value is None


def test_jackknife_by_hand():
    # Without the outlier the rest agree perfectly.
    found = jackknife("spearman", [1, 2, 3, 4, 5], [1, 2, 3, 4, 0])
    assert found.leaning == 4
    assert found.high == found.values[4] == pytest.approx(1.0)
    assert found.low == min(found.values)
    values = np.array(found.values)
    assert found.error == pytest.approx(np.sqrt(4 / 5 * ((values - values.mean()) ** 2).sum()))
    assert jackknife("spearman", [1, 1, 2], [1, 2, 3]).values[2] is None
    assert jackknife("spearman", [1, 1, 2], [1, 2, 3]).error is None
    assert jackknife("spearman", [1, 2, 3, 4], [1, 2, 3, 4]).leaning is None  # nobody's absence changes anything


def test_a_better_benchmark_is_found_and_an_equal_one_is_not():
    rng = np.random.default_rng(6)
    y = rng.normal(size=30)
    good, poor, twin = y + rng.normal(size=30) / 4, rng.normal(size=30), y + rng.normal(size=30) / 4
    better = compare_benchmarks("spearman", good, poor, y, rng, resamples=400, permutations=999)
    assert better.difference.low > 0
    assert better.swap_p < 0.05
    assert better.williams.p < 0.05
    assert not better.exact
    equal = compare_benchmarks("spearman", good, twin, y, rng, resamples=400, permutations=999)
    assert equal.swap_p > 0.05
    assert equal.difference.low < 0 < equal.difference.high


def test_swapping_sides_turns_the_difference_round():
    rng = np.random.default_rng(8)
    x1, x2, y = rng.normal(size=(3, 9))
    one, two = (compare_benchmarks("kendall", *sides, y, rng, resamples=100) for sides in ((x1, x2), (x2, x1)))
    assert one.difference.value == pytest.approx(-two.difference.value)
    assert one.swap_p == pytest.approx(two.swap_p)
    assert one.exact
    assert one.williams is None


def test_the_same_benchmark_twice_does_not_differ():
    found = compare_benchmarks("pearson", [1, 2, 3, 5], [1, 2, 3, 5], [1, 3, 2, 4], np.random.default_rng(0))
    assert (found.difference.value, found.swap_p) == (0.0, 1.0)
    assert found.williams is None or found.williams.t == 0
    flat = compare_benchmarks("spearman", [1, 2, 3, 5], [1, 1, 1, 1], [1, 3, 2, 4], np.random.default_rng(0))
    assert (flat.rival, flat.difference.value, flat.swap_p) == (None, None, None)


def test_swap_test_holds_its_level():
    rng = np.random.default_rng(10)
    hits = 0
    for _ in range(120):
        y = rng.normal(size=8)
        x1, x2 = y + rng.normal(size=8), y + rng.normal(size=8)
        hits += compare_benchmarks("spearman", x1, x2, y, rng, resamples=10).swap_p <= 0.1
    assert hits / 120 < 0.19  # 10 % and three standard errors


def test_a_block_tied_by_construction_does_not_make_a_p():
    """Readers above the blind on both sides, and no agreement beyond that: 10 % of p below .1, not all."""
    rng = np.random.default_rng(11)
    blind, readers = np.zeros(6), range(6, 14)
    p_values = []
    for _ in range(100):
        x, y = (np.concatenate([blind, 1 + rng.random(8)]) for _ in range(2))
        test = permutation_test("spearman", x, y, rng, permutations=200, among=readers)
        p_values.append((test.two_sided, permutation_test("spearman", x, y, rng, permutations=200).two_sided))
    held, shuffled = (np.mean(np.array(column) <= 0.1) for column in zip(*p_values, strict=True))
    assert held < 0.19
    assert shuffled > 0.8


def test_williams_needs_models():
    assert williams(0.5, 0.4, 0.1, 3) is None
    assert williams(0.5, 0.5, 1.0, 10) is None
    assert williams(0.9, 0.2, 0.3, 40).p < 0.001


@pytest.mark.parametrize("ranks", [(1, 5, 3, 4, 6, 2), (1, 4, 3, 5, 6, 2)])
def test_the_published_results_are_refused_the_word(ranks):
    rng = np.random.default_rng(0)
    x, y = [6, 5, 4, 3, 2, 1], [7 - rank for rank in ranks]
    found = verdict(over_models("spearman", x, y, rng), permutation_test("spearman", x, y, rng).two_sided)
    assert not found.significant
    assert "significant" not in found.sentence


@pytest.mark.parametrize(
    ("estimate", "p", "said"),
    [
        (Estimate(1.0, 1.0, 1.0, 4), 2 / 24, "too few"),
        (Estimate(None, None, None, 9), None, "nothing can be said"),
        (Estimate(0.6, -0.1, 0.9, 12), 0.04, "no interval excludes 0"),
        (Estimate(0.6, None, None, 12), 0.04, "no interval excludes 0"),
        (Estimate(0.3, -0.4, 0.8, 12), 0.34, "need 90 models"),
        (Estimate(0.0, -0.4, 0.8, 12), 1.0, "p = 1.00"),
    ],
)
def test_the_word_is_not_said_without_cause(estimate, p, said):
    found = verdict(estimate, p)
    assert not found.significant
    assert said in found.sentence
    assert "significant" not in found.sentence


def test_the_word_is_said_with_cause_in_either_direction():
    assert verdict(Estimate(0.8, 0.4, 0.95, 12), 0.002).significant
    wrong = verdict(Estimate(-0.8, -0.95, -0.4, 12), 0.002)
    assert wrong.significant
    assert "wrong direction" in wrong.sentence


def test_a_rivalry_is_decided_or_left_open():
    assert rivalry_verdict(Estimate(0.4, 0.1, 0.7, 20), 0.01).sentence.startswith("the benchmark predicts better")
    assert rivalry_verdict(Estimate(-0.4, -0.7, -0.1, 20), 0.01).sentence.startswith("the rival predicts better")
    for open_case in (rivalry_verdict(Estimate(0.4, 0.1, 0.7, 20), 0.2), rivalry_verdict(Estimate.undefined(4), None)):
        assert not open_case.significant
        assert "significant" not in open_case.sentence
