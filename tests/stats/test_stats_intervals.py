"""Clustered intervals: hand-computed cases, the exact bootstrap distribution, and their symmetries."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench.stats import (
    Clusters,
    Estimate,
    correlation_interval,
    difference_interval,
    mean_interval,
    ratio_interval,
)
from prbench.stats.bootstrap import bootstrap_means
from prbench.stats.variance import clustered_error, clustered_p


def generator(seed=0):
    return np.random.default_rng(seed)


def crossed(users, questions, rows, seed):
    rng = generator(seed)
    return Clusters.of(rng.integers(0, users, rows).tolist(), rng.integers(0, questions, rows).tolist())


# --- the clustered standard error ---


def test_two_way_variance_by_hand():
    # Centred values −½ 0 0 ½. V_user = V_question = 2·(¼ + ¼)/16 = 1/16; V_cell = 4/3·½/16 = 1/24; sum = 1/12.
    clusters = Clusters.of(users="aabb", questions="xyxy")
    assert clustered_error(np.array([0, 0.5, 0.5, 1]), clusters) == pytest.approx(math.sqrt(1 / 12))


def test_two_way_variance_never_falls_below_a_one_way_variance():
    # V_user = 3/2·2/36 = 1/12; V_question = 2·½/36 = 1/36; V_cell = 6/5·6·¼/36 = 1/20; the sum is only 11/180.
    clusters = Clusters.of(users="aabbcc", questions="xyxyxy")
    assert clustered_error(np.array([1.0, 1, 1, 0, 0, 0]), clusters) == pytest.approx(math.sqrt(1 / 12))


def test_a_checkerboard_is_not_certainty():
    # All users and all questions have mean ½, so both one-way variances are 0; cells: 4/3·4·¼/16 = 1/12.
    clusters = Clusters.of(users="aabb", questions="xyxy")
    assert clustered_error(np.array([1.0, 0, 0, 1]), clusters) == pytest.approx(math.sqrt(1 / 12))
    # A Latin square of .1 .2 .3: the same, but the one-way variances are 0 only up to rounding. Cells: 9/8·.06/81.
    square = np.array([0.1, 0.2, 0.3, 0.2, 0.3, 0.1, 0.3, 0.1, 0.2])
    assert clustered_error(square, Clusters.of("aaabbbccc", "xyzxyzxyz")) == pytest.approx(math.sqrt(9 / 8 * 0.06 / 81))


def test_clustered_p_is_the_t_test_where_every_row_is_a_cluster():
    # Mean 2, error 1/√3, t = 2√3 with 2 degrees of freedom: p = 1 − t/√(t² + 2) = 1 − √(12/14).
    p = clustered_p(np.array([1.0, 2.0, 3.0]), Clusters.of("abc", "xyz"))
    assert p == pytest.approx(1 - math.sqrt(12 / 14))


def test_clusters_that_all_agree_are_still_only_so_many():
    assert clustered_p(np.ones(6), Clusters.of("aabbcc", "uvwxyz")) == 0.25
    assert clustered_p(np.zeros(6), Clusters.of("aabbcc", "uvwxyz")) == 1.0
    assert clustered_p(np.ones(3), Clusters.of("aaa", "xyz")) is None


# --- the resamples ---


def test_resamples_follow_the_exact_distribution():
    values = np.array([[3.0, 0.0], [1.0, 0.0]])
    exact = Counter()
    for users, questions in product(product(range(2), repeat=2), repeat=2):
        exact[float(np.mean([values[u, q] for u in users for q in questions]))] += 1 / 16
    clusters = Clusters.of(users="aabb", questions="xyxy")
    drawn = Counter(bootstrap_means(values.reshape(1, -1), clusters, generator(), 20_000)[0].tolist())
    assert drawn.keys() == exact.keys()
    for mean, share in exact.items():
        assert drawn[mean] / 20_000 == pytest.approx(share, abs=0.012)  # four standard errors


def test_columns_are_resampled_jointly_and_blocks_join_up(monkeypatch):
    clusters = crossed(20, 20, 60, seed=1)
    columns = generator(2).random((2, 60))
    columns = np.vstack([columns, columns.sum(axis=0)])
    means = bootstrap_means(columns, clusters, generator(), 501)
    assert means.shape == (3, 501)
    np.testing.assert_allclose(means[0] + means[1], means[2])
    monkeypatch.setattr("prbench.stats.bootstrap._BLOCK", 7 * 60)
    assert bootstrap_means(columns, clusters, generator(), 501).shape == (3, 501)


def test_an_empty_resample_is_left_out():
    # Nearly one question per user: many of the 3 × 3 draws of users and questions meet in no row.
    clusters = Clusters.of(users="abcc", questions="xyzx")
    means = bootstrap_means(np.ones((1, 4)), clusters, generator(), 2000)
    assert means.shape[1] < 2000
    assert (means == 1).all()


# --- means ---


def test_few_clusters_get_the_t_interval_by_hand():
    # Mean 2, error 1/√3, t(2) at .975 = 4.302653.
    estimate = mean_interval([1, 2, 3], Clusters.of("abc", "xyz"), generator())
    assert estimate.value == 2
    assert estimate.low == pytest.approx(2 - 4.302653 / math.sqrt(3), abs=1e-6)
    assert estimate.high == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-6)
    assert mean_interval([1, 2, 3], Clusters.of("abc", "xyz"), generator(), bounds=(1, 3)).to_json() == {
        "value": 2.0,
        "low": 1.0,
        "high": 3.0,
        "n": 3,
    }


def test_the_two_roads_meet_at_thirty_clusters():
    values = generator(5).normal(size=300)
    users = np.repeat(np.arange(30), 10)
    bootstrap = mean_interval(values, Clusters.of(users.tolist(), list(range(300))), generator(), resamples=20_000)
    error = clustered_error(values, Clusters.of(users.tolist(), list(range(300))))
    assert bootstrap.high - bootstrap.low == pytest.approx(2 * 2.045230 * error, rel=0.03)


def test_degenerate_means():
    assert mean_interval([], Clusters.of([], []), generator()) == Estimate(None, None, None, 0)
    assert mean_interval([1, 0], Clusters.of("aa", "xy"), generator()) == Estimate(0.5, None, None, 2)
    assert mean_interval([0.7] * 50, Clusters.of(range(50), range(50)), generator()).low == pytest.approx(0.7)
    certain = mean_interval([1] * 50, Clusters.of(range(50), range(50)), generator())
    assert certain == Estimate(1.0, 1.0, 1.0, 50)


@pytest.mark.parametrize("couples", [10, 60])
def test_a_user_blind_model_on_mirrored_pairs_is_at_one_half_exactly(couples):
    right = generator(1).integers(0, 2, 5 * couples).astype(float)
    credits = np.concatenate([right, 1 - right])
    labels = [row % couples for row in range(5 * couples)] * 2
    questions = [row % 7 for row in range(5 * couples)] * 2
    estimate = mean_interval(credits, Clusters.of(labels, questions), generator())
    assert estimate == Estimate(0.5, 0.5, 0.5, 10 * couples)


@pytest.mark.parametrize(("users", "questions"), [(60, 45), (8, 45)])
def test_the_order_of_rows_does_not_matter(users, questions):
    clusters = crossed(users, questions, 200, seed=3)
    values = generator(4).random(200)
    order = generator(5).permutation(200)
    straight = mean_interval(values, clusters, generator())
    shuffled = mean_interval(values[order], Clusters(clusters.users[order], clusters.questions[order]), generator())
    assert shuffled.low == pytest.approx(straight.low, abs=1e-12)
    assert shuffled.high == pytest.approx(straight.high, abs=1e-12)


credit_rows = st.lists(
    st.tuples(st.sampled_from([0, 0.5, 1]), st.sampled_from([0, 0.5, 1]), st.integers(0, 50), st.integers(0, 50)),
    min_size=1,
    max_size=120,
)


@settings(max_examples=60, deadline=None)
@given(credit_rows)
def test_swapping_the_models_mirrors_the_difference(rows):
    a, b, users, questions = zip(*rows, strict=True)
    clusters = Clusters.of(users, questions)
    forth = difference_interval(a, b, clusters, generator(), resamples=50)
    back = difference_interval(b, a, clusters, generator(), resamples=50)
    assert forth.value == pytest.approx(-back.value, abs=1e-12)
    if forth.low is not None:
        assert -1 <= forth.low <= forth.value <= forth.high <= 1
        assert (forth.low, forth.high) == pytest.approx((-back.high, -back.low), abs=1e-9)
    else:
        assert clusters.units < 2


def test_swapping_mirrors_the_bootstrap_interval_too():
    clusters = crossed(60, 45, 300, seed=3)
    a, b = generator(6).integers(0, 2, (2, 300))
    forth = difference_interval(a, b, clusters, generator())
    back = difference_interval(b, a, clusters, generator())
    assert (forth.low, forth.high) == pytest.approx((-back.high, -back.low), abs=1e-9)


def test_more_pairs_per_user_help_less_than_more_users():
    credits = np.repeat([1.0, 0.0], 500)
    many = mean_interval(credits, Clusters.of(list(range(1000)), list(range(1000))), generator())
    few = mean_interval(credits, Clusters.of([row // 25 for row in range(1000)], list(range(1000))), generator())
    assert few.high - few.low > 4 * (many.high - many.low)


# --- ratios and correlations ---


@pytest.mark.parametrize("units", [12, 60])
def test_a_ratio_of_proportional_means_has_no_width(units):
    below = generator(1).uniform(1, 2, units)
    estimate = ratio_interval(below * 0.25, below, Clusters.of(range(units), range(units)), generator())
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.25, 0.25, 0.25))


@pytest.mark.parametrize("units", [12, 60])
def test_joint_resampling_is_tighter_than_separate_intervals(units):
    rng = generator(2)
    below = rng.uniform(0.2, 1, units)
    above = 0.5 * below + rng.normal(0, 0.02, units)
    clusters = Clusters.of(range(units), range(units))
    joint = ratio_interval(above, below, clusters, generator())
    parts = mean_interval(above, clusters, generator()), mean_interval(below, clusters, generator())
    assert joint.low > parts[0].low / parts[1].high + 0.05
    assert joint.high < parts[0].high / parts[1].low - 0.05
    assert joint.low < joint.value < joint.high


def test_no_ratio_where_the_denominator_may_be_zero():
    clusters = Clusters.of(range(40), range(40))
    assert ratio_interval([1] * 40, [1, -1] * 20, clusters, generator()) is None
    assert ratio_interval([1] * 40, [-1] * 40, clusters, generator()) is None
    assert ratio_interval([1, 1], [1, 1], Clusters.of("aa", "xy"), generator()) is None
    assert ratio_interval([], [], Clusters.of([], []), generator()) is None


@pytest.mark.parametrize("units", [20, 80])
def test_correlation_agrees_with_numpy_and_encloses(units):
    x = generator(3).normal(size=units)
    y = x + generator(4).normal(size=units)
    estimate = correlation_interval(x, y, Clusters.of(range(units), range(units)), generator())
    assert estimate.value == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert -1 <= estimate.low < estimate.value < estimate.high <= 1


def test_correlation_without_variance_is_undefined():
    clusters = Clusters.of(range(3), range(3))
    assert correlation_interval([1, 1, 1], [1, 2, 3], clusters, generator()) == Estimate(None, None, None, 3)


def test_very_many_cells_are_not_resampled(monkeypatch):
    clusters = crossed(60, 60, 900, seed=5)
    values = generator(6).random(900)
    resampled = mean_interval(values, clusters, generator())
    monkeypatch.setattr("prbench.stats.intervals.MANY_CELLS", clusters.size - 1)
    found = mean_interval(values, clusters, generator())
    assert found == mean_interval(values, clusters, generator(1))  # nothing is drawn
    assert found.value == resampled.value
    assert found.value - found.low == pytest.approx(found.high - found.value)
    assert (found.low, found.high) == pytest.approx((resampled.low, resampled.high), abs=0.01)
