"""Comparison of two benchmarks as predictors of downstream use. Both are correlated with the same outcome.

The two coefficients share reward models and outcome, so they are compared paired: a bootstrap over models for the
interval, a test that swaps the two benchmarks' ranks model by model for p, and beside it Williams' t for dependent
correlations (as Steiger 1980 recommends it), which needs more models than most studies have.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.correlation.coefficients import Coefficient, batch, coefficient
from prbench.stats.correlation.permutation import PERMUTATIONS, tail
from prbench.stats.correlation.places import places
from prbench.stats.correlation.resampling import draw_models, drawn_scores, enclosed
from prbench.stats.estimate import Estimate
from prbench.stats.intervals import RESAMPLES

EXACT_SWAPS_UP_TO = 12
"""Models; 2¹² = 4,096 ways of swapping are looked at one by one."""


@dataclass(frozen=True, slots=True)
class Williams:
    """Williams' t for two correlations that share a variable."""

    t: float
    freedom: int
    p: float
    """Two-sided p-value of the test."""


@dataclass(frozen=True, slots=True)
class Rivalry:
    """A benchmark's coefficient against a rival's, with one downstream outcome."""

    benchmark: float | None
    rival: float | None
    difference: Estimate
    """Benchmark − rival, with its percentile interval over models."""
    swap_p: float | None
    """Two-sided: how often a difference at least as large comes up when the two benchmarks' ranks are swapped model by
    model, as they may be if neither predicts better."""
    exact: bool
    williams: Williams | None
    """Williams' t for Spearman (on ranks, approximate) and Pearson; None elsewhere and where it is not defined."""


def compare_benchmarks(
    name: Coefficient,
    benchmark: ArrayLike,
    rival: ArrayLike,
    downstream: ArrayLike,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    permutations: int = PERMUTATIONS,
    level: float = 0.95,
) -> Rivalry:
    """Compare how two benchmarks agree with one downstream outcome.

    Args:
        name: Name of the coefficient.
        benchmark: Score of each model on the benchmark.
        rival: Score of each model on the other benchmark.
        downstream: Score of each model downstream.
        rng: Where resampling and swaps take their draws from.
        resamples: Number of bootstrap resamples.
        permutations: Number of drawn swaps, beyond 12 models.
        level: Confidence level.

    Example:
        >>> y = [1, 2, 3, 4, 5, 6]
        >>> found = compare_benchmarks("spearman", y, [2, 1, 4, 3, 6, 5], y, np.random.default_rng(0))
        >>> round(found.difference.value, 3), round(found.swap_p, 2), found.exact
        (0.171, 0.03, True)
    """
    x1 = as_floats("benchmark", benchmark)
    x2, y = as_floats("rival", rival, len(x1)), as_floats("downstream", downstream, len(x1))
    one, two = coefficient(name, x1, y), coefficient(name, x2, y)
    exact = len(x1) <= EXACT_SWAPS_UP_TO
    if one is None or two is None:
        return Rivalry(one, two, Estimate.undefined(len(x1)), None, exact, None)
    drawn = draw_models(len(x1), rng, resamples)
    outcome = drawn_scores(name, y, drawn)
    resampled = batch(name, drawn_scores(name, x1, drawn), outcome) - batch(
        name, drawn_scores(name, x2, drawn), outcome
    )
    swaps = _every_swap(len(x1)) if exact else rng.random((permutations, len(x1))) < 0.5
    null = _swapped_differences(name, x1, x2, y, swaps)
    return Rivalry(
        benchmark=one,
        rival=two,
        difference=enclosed(one - two, resampled, len(x1), level),
        swap_p=tail(np.abs(null[np.isfinite(null)]), abs(one - two), exact),
        exact=exact,
        williams=_williams_of(name, x1, x2, y),
    )


def williams(benchmark: float, rival: float, between: float, models: int) -> Williams | None:
    """Williams' t of two correlations with one outcome; None below 4 models or where one decides the others.

    Args:
        benchmark: Correlation of the benchmark with the outcome.
        rival: Correlation of the rival with the outcome.
        between: Correlation of the two benchmarks.
        models: How many models are behind them.

    Example:
        >>> found = williams(0.4, 0.5, 0.1, 103)
        >>> round(found.t, 2), found.freedom, round(found.p, 2)
        (-0.89, 100, 0.37)
    """
    from scipy.special import stdtr

    freedom = models - 3
    if freedom < 1:
        return None
    determinant = 1 - benchmark**2 - rival**2 - between**2 + 2 * benchmark * rival * between
    mean = (benchmark + rival) / 2
    below = 2 * (models - 1) / freedom * max(determinant, 0.0) + mean**2 * (1 - between) ** 3
    if below <= 1e-12:
        return None
    t = (benchmark - rival) * math.sqrt((models - 1) * (1 + between) / below)
    return Williams(t, freedom, float(2 * stdtr(freedom, -abs(t))))


def _williams_of(name: Coefficient, x1: Floats, x2: Floats, y: Floats) -> Williams | None:
    if name not in ("spearman", "pearson"):
        return None
    one, two, between = coefficient(name, x1, y), coefficient(name, x2, y), coefficient(name, x1, x2)
    if one is None or two is None or between is None:
        return None
    return williams(one, two, between, len(x1))


def _swapped_differences(
    name: Coefficient, x1: Floats, x2: Floats, y: Floats, swaps: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The difference of coefficients with some models' standings exchanged between the two benchmarks."""
    one, two = _on_one_scale(name, x1), _on_one_scale(name, x2)
    first, second = np.where(swaps, two, one), np.where(swaps, one, two)
    differences: Floats = batch(name, first, y[None, :]) - batch(name, second, y[None, :])
    return differences


def _on_one_scale(name: Coefficient, scores: Floats) -> Floats:
    """Return scores that can be exchanged between two benchmarks: standard scores for Pearson, ranks for the others."""
    if name == "pearson":
        standard: Floats = (scores - scores.mean()) / scores.std()
        return standard
    ranks: Floats = -places(scores[None, :]).mid_ranks[0]
    return ranks


@lru_cache(maxsize=EXACT_SWAPS_UP_TO)
def _every_swap(models: int) -> NDArray[np.bool_]:
    ways = np.arange(2**models)[:, None]
    swaps: NDArray[np.bool_] = (ways >> np.arange(models)) & 1 == 1
    swaps.setflags(write=False)
    return swaps
