"""Agreement of one ranking of reward models with another: six coefficients on scores, higher = better.

All of them take batches of shape (rankings, models), because permutation tests and bootstraps ask for thousands at
once; that is why Kendall's and the weighted τ are here and not scipy's, with which the tests compare them. Undefined
(one side does not vary) is NaN inside a batch and None outside. With tied models NDCG and RBO are the mean over all
orders of the ties, in closed form (see `places`).
"""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.correlation.places import Places, joint_places, places

Coefficient = Literal["spearman", "kendall", "weighted_tau", "rbo", "ndcg", "pearson"]
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)

TOP_WEIGHTED: tuple[Coefficient, ...] = ("rbo", "ndcg")
"""Coefficients of ordered lists: between 0 and 1, and well above 0 for a random order."""

RBO_PERSISTENCE = 0.9
"""Persistence of rank-biased overlap, as the paper has it."""

_BLOCK = 1_000_000  # comparisons of two models held at once


def coefficient(name: Coefficient, benchmark: ArrayLike, downstream: ArrayLike) -> float | None:
    """One coefficient of one pair of rankings; None where it is undefined.

    Args:
        name: Name of the coefficient.
        benchmark: Score of each model on the benchmark; for NDCG the ranking that is judged.
        downstream: Score of each model downstream; for NDCG the relevance.

    Example:
        >>> round(coefficient("spearman", [6, 5, 4, 3, 2, 1], [6, 2, 4, 3, 1, 5]), 4)
        0.2571
        >>> coefficient("kendall", [1, 1, 1], [1, 2, 3]) is None
        True
    """
    x = as_floats("benchmark", benchmark)
    y = as_floats("downstream", downstream, len(x))
    return defined(float(batch(name, x[None, :], y[None, :])[0]))


def batch(name: Coefficient, x: Floats, y: Floats) -> Floats:
    """One coefficient of many pairs of rankings, in blocks that bound the memory.

    Args:
        name: Name of the coefficient.
        x: Benchmark scores of shape (rankings, models), or (1, models) where they stay the same.
        y: Downstream scores, likewise.
    """
    rankings, models = max(len(x), len(y)), x.shape[1]
    if models < 2:
        return np.full(rankings, np.nan)
    width = max(1, _BLOCK // models**2)
    blocks = [_FUNCTIONS[name](_rows(x, at, width), _rows(y, at, width)) for at in range(0, rankings, width)]
    return np.concatenate(blocks)


def chance_level(name: Coefficient, models: int) -> float:
    """The mean of a coefficient over all orders of so many models: 0, but for NDCG and RBO far above it.

    Example:
        >>> round(chance_level("ndcg", 6), 2), chance_level("spearman", 6)
        (0.7, 0.0)
    """
    if name == "ndcg":
        gains, discounts = _gains(models), _discounts(models)
        return float(gains.mean() * discounts.sum() / (gains @ discounts))
    if name == "rbo":
        depths = np.arange(1.0, models + 1)
        return float(_rbo_of_overlap(depths**2 / models))
    return 0.0


def defined(value: float) -> float | None:
    """Return the value, or None for NaN.

    Example:
        >>> defined(float("nan")) is None, defined(0.5)
        (True, 0.5)
    """
    return None if np.isnan(value) else value


def _spearman(x: Floats, y: Floats) -> Floats:
    return _pearson(places(x).mid_ranks, places(y).mid_ranks)


def _pearson(x: Floats, y: Floats) -> Floats:
    dx, dy = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    spread = np.sqrt((dx**2).sum(axis=1) * (dy**2).sum(axis=1))
    # A mean of equal numbers may differ from them by rounding: whether they vary is asked of the numbers themselves.
    varies = (np.ptp(x, axis=1) > 0) & (np.ptp(y, axis=1) > 0)
    return _divide((dx * dy).sum(axis=1), np.where(varies, spread, 0.0))


def _kendall(x: Floats, y: Floats) -> Floats:
    """τ-b: concordant − discordant pairs over the geometric mean of the pairs untied in each."""
    return _weighted(x, y, np.ones((1, x.shape[1])))


def _weighted_tau(x: Floats, y: Floats) -> Floats:
    """Vigna's τ with additive hyperbolic weights, the mean of ranking by either side, as scipy has it."""
    weights = 1 / np.arange(1.0, x.shape[1] + 1)
    by_x, by_y = joint_places(x, y).averaged(weights), joint_places(y, x).averaged(weights)
    mean: Floats = (_weighted(x, y, by_x) + _weighted(x, y, by_y)) / 2
    return mean


def _weighted(x: Floats, y: Floats, weights: Floats) -> Floats:
    """τ-b with the weight of a pair the sum of its two weights."""
    signs_x, signs_y = (np.sign(scores[:, :, None] - scores[:, None, :]) for scores in (x, y))
    agreement = (weights * (signs_x * signs_y).sum(axis=2)).sum(axis=1)
    norm_x, norm_y = ((weights * (signs**2).sum(axis=2)).sum(axis=1) for signs in (signs_x, signs_y))
    return _divide(agreement, np.sqrt(norm_x * norm_y))


def _rbo(x: Floats, y: Floats) -> Floats:
    """Extrapolated rank-biased overlap (Webber, Moffat & Zobel 2010, eq. 32) of two full lists."""
    depth = np.arange(1, x.shape[1] + 1)
    return _rbo_of_overlap((places(x).within(depth) * places(y).within(depth)).sum(axis=1))


def _rbo_of_overlap(overlap: Floats) -> Floats:
    """Return rank-biased overlap from the size of the overlap at each depth, the last axis."""
    p, depths = RBO_PERSISTENCE, np.arange(1.0, overlap.shape[-1] + 1)
    agreement = overlap / depths
    value: Floats = agreement[..., -1] * p ** depths[-1] + (1 - p) / p * (agreement * p**depths).sum(axis=-1)
    return value


def _ndcg(x: Floats, y: Floats) -> Floats:
    """Exponential gain 2^rel − 1 with rel = n + 1 − downstream rank, discount 1/log2(place + 1)."""
    gains, discounts = _gains(x.shape[1]), _discounts(x.shape[1])
    gained: Places = places(y)
    total = (gained.averaged(gains) * places(x).averaged(discounts)).sum(axis=1)
    # Rounding may leave a perfect order a hair above 1.
    normal: Floats = np.minimum(total / (gains * discounts).sum(), 1.0)
    return normal


def _gains(models: int) -> Floats:
    """Return the gains from the best place down, divided by 2^n: the quotient stays the same and nothing overflows."""
    gains: Floats = 2.0 ** -np.arange(models, dtype=np.float64) - 2.0**-models
    return gains


def _discounts(models: int) -> Floats:
    discounts: Floats = 1 / np.log2(np.arange(2, models + 2))
    return discounts


def _divide(above: Floats, below: Floats) -> Floats:
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)
    return np.clip(quotient, -1.0, 1.0)


def _rows(scores: Floats, start: int, width: int) -> Floats:
    return scores if len(scores) == 1 else scores[start : start + width]


_FUNCTIONS: dict[Coefficient, Callable[[Floats, Floats], Floats]] = {
    "spearman": _spearman,
    "kendall": _kendall,
    "weighted_tau": _weighted_tau,
    "rbo": _rbo,
    "ndcg": _ndcg,
    "pearson": _pearson,
}
