"""Do 95 % intervals cover the truth in 95 % of worlds? A world thresholds the sum of user, question and row effects."""

import numpy as np
import pytest
from scipy.special import ndtr

from prbench.stats import Clusters, compare_paired, mean_interval, ratio_interval

WORLDS = 400
LEAN = 0.4


def crossed(rng, users, questions, rows, spread):
    user, question = rng.integers(0, users, rows), rng.integers(0, questions, rows)
    effects = spread * rng.normal(size=users)[user] + spread * rng.normal(size=questions)[question]
    return user, question, effects, 2 * spread**2


def nested(rng, users, each, spread):
    user = np.repeat(np.arange(users), each)
    return user, np.arange(users * each), spread * rng.normal(size=users)[user], spread**2


def coverage(world, seed):
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(WORLDS):
        user, question, effects, variance = world(rng)
        credits = LEAN + effects + rng.normal(size=len(effects)) > 0
        truth = ndtr(LEAN / np.sqrt(1 + variance))
        estimate = mean_interval(
            credits, Clusters.of(user.tolist(), question.tolist()), rng, resamples=400, bounds=(0, 1)
        )
        hits += estimate.low <= truth <= estimate.high
    return hits / WORLDS


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(lambda rng: crossed(rng, 50, 40, 400, 0.7), id="crossed"),
        pytest.param(lambda rng: crossed(rng, 12, 40, 240, 0.6), id="crossed, 12 users"),
        pytest.param(lambda rng: nested(rng, 50, 6, 0.7), id="nested"),
        pytest.param(lambda rng: nested(rng, 10, 12, 0.7), id="nested, 10 users"),
        # Without the correction of the pigeonhole bootstrap's width this one covers in more than 99.5 % of worlds.
        pytest.param(lambda rng: crossed(rng, 150, 150, 300, 0.0), id="crossed, only noise"),
    ],
)
def test_intervals_cover_the_truth(world):
    assert 0.90 <= coverage(world, seed=7) <= 0.985


def test_ignoring_the_clusters_would_not_cover():
    def blind(rng):
        _, _, effects, variance = crossed(rng, 50, 40, 400, 0.7)
        rows = np.arange(len(effects))
        return rows, rows, effects, variance

    assert coverage(blind, seed=7) < 0.85


def test_clustered_p_holds_its_level_where_mcnemar_does_not():
    rng = np.random.default_rng(8)
    comparisons = []
    for _ in range(WORLDS):
        user, question, effects, _ = crossed(rng, 40, 35, 500, 0.8)
        a, b = effects + rng.normal(size=500) > 0, -effects + rng.normal(size=500) > 0
        clusters = Clusters.of(user.tolist(), question.tolist())
        comparisons.append(compare_paired(a, b, clusters, rng, resamples=20))
    assert np.mean([c.clustered_p < 0.05 for c in comparisons]) < 0.10
    assert np.mean([c.mcnemar_p < 0.05 for c in comparisons]) > 0.20


def test_ratio_intervals_cover_the_truth():
    rng = np.random.default_rng(9)
    clusters = Clusters.of([row // 5 for row in range(300)], list(range(300)))
    hits = 0
    for _ in range(WORLDS):
        taste = np.repeat(rng.normal(1, 0.5, 60), 5)
        below = taste + rng.normal(size=300)
        above = 0.4 * taste + rng.normal(size=300)
        estimate = ratio_interval(above, below, clusters, rng, resamples=300)
        hits += estimate.low <= 0.4 <= estimate.high
    assert 0.90 <= hits / WORLDS <= 0.985
