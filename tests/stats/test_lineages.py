"""Agreement where reward models come in lineages: no false certainty, and what holds between and within them."""

import numpy as np
import pytest

from prbench.stats import Clusters
from prbench.stats.correlation import ItemScores, difference_over_lineages, over_lineages, permutation_test

KINDS = [f"kind {number // 4}" for number in range(24)]


def shared(rng, size: float = 3.0):
    """Scores of which a lineage's own part is by far the largest: 24 models are six witnesses."""
    return size * np.repeat(rng.standard_normal(6), 4) + 0.2 * rng.standard_normal(24)


def test_two_rankings_that_agree_by_chance_are_called_so_less_often_with_lineages():
    shuffled, drawn = 0, 0
    for number in range(60):
        rng = np.random.default_rng(number)
        x, y = shared(rng), shared(rng)
        shuffled += permutation_test("spearman", x, y, rng, permutations=500).two_sided < 0.05
        drawn += over_lineages("spearman", x, y, KINDS, rng, resamples=300, permutations=200).p < 0.05
    assert shuffled > 15
    assert drawn < shuffled / 2


def test_between_and_within_are_told_apart():
    rng = np.random.default_rng(0)
    x = np.repeat(np.arange(6.0), 4) * 10 + np.tile(np.arange(4.0), 6)
    y = np.repeat(np.arange(6.0), 4) * 10 - np.tile(np.arange(4.0), 6)
    found = over_lineages("spearman", x, y, KINDS, rng, resamples=200)
    assert found.lineages == 6
    assert found.between == pytest.approx(1)
    assert found.within == pytest.approx(-1)
    assert found.within_p < 0.01
    assert found.between_p == pytest.approx(2 / 720)
    assert found.value.low > 0.2


def test_a_rival_that_knows_nothing_is_clearly_worse_and_itself_is_no_better():
    rng = np.random.default_rng(1)
    strength = np.linspace(0.1, 0.9, 24)
    units = np.repeat(np.arange(40), 5)
    clusters = Clusters.of(units, np.tile(np.arange(20), 10))

    def items(shares):
        return ItemScores((rng.random((24, 200)) < shares[:, None]).astype(float), clusters)

    kinds = [f"kind {number % 6}" for number in range(24)]
    benchmark, downstream = items(strength), items(strength)
    blind = difference_over_lineages("spearman", benchmark, items(np.full(24, 0.5)), downstream, kinds, rng)
    assert blind.difference.value > 0.5
    assert blind.difference.low > 0
    assert blind.p < 0.05
    same = difference_over_lineages("spearman", benchmark, benchmark, downstream, kinds, rng)
    assert same.difference.value == 0
    assert same.difference.low < 0 < same.difference.high
