"""Two models on the same pairs: how far apart, how surely, and who wins where."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.clusters import Clusters
from prbench.stats.estimate import Estimate
from prbench.stats.intervals import RESAMPLES, difference_interval
from prbench.stats.variance import clustered_p


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two models on the pairs that both judged."""

    difference: Estimate
    """Mean credit of the first model minus that of the second, with its clustered interval."""
    wins: int
    """Pairs on which the first model has the higher credit."""
    losses: int
    ties: int
    mcnemar_p: float
    """Exact, two-sided; takes pairs as independent, so it is too small where users or questions repeat."""
    clustered_p: float | None
    """Two-sided, from the two-way clustered t statistic (no resampling); None where there is only one cluster."""


def compare_paired(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Comparison:
    """Compare the credits of two models on the same pairs.

    Example:
        >>> clusters = Clusters.of(users="aabbcc", questions="uvwxyz")
        >>> result = compare_paired([1, 1, 1, 1, 1, 0], [0, 1, 0, 1, 0, 1], clusters, np.random.default_rng(0))
        >>> result.wins, result.losses, result.ties, result.mcnemar_p
        (3, 1, 2, 0.625)
    """
    a, b = as_floats("a", a, clusters.n), as_floats("b", b, clusters.n)
    wins, losses = int((a > b).sum()), int((a < b).sum())
    return Comparison(
        difference=difference_interval(a, b, clusters, rng, resamples=resamples, level=level),
        wins=wins,
        losses=losses,
        ties=clusters.n - wins - losses,
        mcnemar_p=mcnemar(a, b),
        clustered_p=clustered_p(a - b, clusters),
    )


def mcnemar(a: ArrayLike, b: ArrayLike) -> float:
    """Exact two-sided McNemar test: a sign test on the pairs where the two credits differ.

    Example:
        >>> mcnemar([1, 1, 1, 1], [0, 0, 0, 0])
        0.125
    """
    from scipy.special import bdtr

    a = as_floats("a", a)
    b = as_floats("b", b, len(a))
    wins, losses = int((a > b).sum()), int((a < b).sum())
    if wins == losses:
        return 1.0
    return min(1.0, 2 * float(bdtr(min(wins, losses), wins + losses, 0.5)))


def holm(p_values: Sequence[float] | Floats) -> Floats:
    """Adjust p-values for their number by Holm's step-down method, in the order given.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    p = as_floats("p_values", p_values)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
