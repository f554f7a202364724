"""Uncertainty of a coefficient: its change with other reward models, other items, or without one of the models.

Over models: models are drawn with replacement. A model drawn twice is one model standing twice at the same place, so in
the ordered lists of NDCG and RBO its copies keep one order on both sides; otherwise a perfect agreement would not stay
perfect. Over items: users and questions are drawn anew and *both* rankings are computed again, so the interval shows
how much of a coefficient hangs on which questions were asked.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.bootstrap import bootstrap_means
from prbench.stats.clusters import Clusters
from prbench.stats.correlation.coefficients import TOP_WEIGHTED, Coefficient, batch, coefficient, defined
from prbench.stats.correlation.permutation import ROUNDING
from prbench.stats.correlation.places import places
from prbench.stats.estimate import Estimate
from prbench.stats.intervals import RESAMPLES, percentiles
from prbench.stats.variance import clustered_error, t_over_normal

_LEAST_DEFINED = 0.5  # share of resamples that must have a value for their quantiles to mean anything


@dataclass(frozen=True, slots=True)
class Jackknife:
    """A coefficient without each of the models in turn."""

    values: tuple[float | None, ...]
    """Values in the order of the models; None where the rest does not vary."""
    low: float | None
    high: float | None
    error: float | None
    """Jackknife standard error; None where a value is undefined."""
    leaning: int | None
    """The model whose absence moves the coefficient most; None where none does."""


@dataclass(frozen=True, eq=False)
class ItemScores:
    """Credits of every model on every item, and the items that belong together."""

    scores: Floats
    """Scores of shape (models, items), complete."""
    clusters: Clusters

    def __post_init__(self) -> None:
        if self.scores.ndim != 2 or self.scores.shape[1] != self.clusters.n:
            raise ValueError(f"scores of shape {self.scores.shape} for {self.clusters.n} items")

    @property
    def means(self) -> Floats:
        """The score of each model."""
        return _rounded(self.scores.mean(axis=1))


def over_models(
    name: Coefficient,
    benchmark: ArrayLike,
    downstream: ArrayLike,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    among: Sequence[int] | None = None,
) -> Estimate:
    """A coefficient with its percentile interval over reward models.

    With few models the interval is too narrow rather than too wide; the permutation test is what to rely on. Where
    `among` is given only these models are drawn anew, and the others stand in every draw.

    Example:
        >>> x = [1, 2, 3, 4, 5, 6, 7, 8]
        >>> found = over_models("ndcg", x, x, np.random.default_rng(0))
        >>> round(found.low, 9), round(found.high, 9), found.n
        (1.0, 1.0, 8)
    """
    x = as_floats("benchmark", benchmark)
    y = as_floats("downstream", downstream, len(x))
    drawn = draw_models(len(x), rng, resamples, among)
    resampled = batch(name, drawn_scores(name, x, drawn), drawn_scores(name, y, drawn))
    return enclosed(coefficient(name, x, y), resampled, len(x), level)


def over_items(
    name: Coefficient,
    benchmark: ItemScores,
    downstream: ItemScores,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """A coefficient with its percentile interval over items, both rankings computed anew in each resample.

    Drawing items adds noise to both rankings, so the interval lies lower than the value where models are close.

    Example:
        >>> clusters = Clusters.of(range(40), range(40))
        >>> steps = np.arange(40) < np.array([[10], [20], [30], [35]])
        >>> items = ItemScores(steps.astype(float), clusters)
        >>> over_items("spearman", items, items, np.random.default_rng(0)).value
        1.0
    """
    if len(benchmark.scores) != len(downstream.scores):
        raise ValueError(f"{len(benchmark.scores)} models on one side, {len(downstream.scores)} on the other")
    one, two = (resampled_scores(items, rng, resamples, level) for items in (benchmark, downstream))
    value = coefficient(name, benchmark.means, downstream.means)
    if one is None or two is None:
        return Estimate(value, None, None, len(benchmark.scores))
    common = min(len(one), len(two))
    return enclosed(value, batch(name, one[:common], two[:common]), len(benchmark.scores), level)


def jackknife(name: Coefficient, benchmark: ArrayLike, downstream: ArrayLike) -> Jackknife:
    """A coefficient without each of the models in turn.

    Example:
        >>> found = jackknife("spearman", [1, 2, 3, 4], [1, 2, 3, 0])
        >>> [round(value, 2) for value in found.values], found.leaning
        ([-0.5, -0.5, -0.5, 1.0], 3)
    """
    x = as_floats("benchmark", benchmark)
    y = as_floats("downstream", downstream, len(x))
    models = len(x)
    others = np.array([[model for model in range(models) if model != left] for left in range(models)], dtype=np.int64)
    found = batch(name, x[others], y[others]) if models else np.empty(0)
    some = found[np.isfinite(found)]
    if not len(some):
        return Jackknife((None,) * models, None, None, None, None)
    whole = coefficient(name, x, y)
    moved = np.abs(np.nan_to_num(found, nan=0.0) - (whole or 0.0))
    complete = len(some) == models
    error = math.sqrt((models - 1) / models * float(((found - found.mean()) ** 2).sum())) if complete else None
    values = tuple(defined(float(value)) for value in found)
    leaning = int(moved.argmax()) if moved.max() > ROUNDING else None
    return Jackknife(values, float(some.min()), float(some.max()), error, leaning)


def draw_models(
    models: int, rng: np.random.Generator, resamples: int, among: Sequence[int] | None = None
) -> NDArray[np.int64]:
    """Models drawn with replacement, copies side by side: shape (resamples, models); those not `among` stay as is."""
    moving = np.arange(models) if among is None else np.array(among, dtype=np.int64)
    drawn = np.tile(np.arange(models), (resamples, 1))
    drawn[:, moving] = moving[rng.integers(0, len(moving), size=(resamples, len(moving)), dtype=np.int64)]
    drawn.sort(axis=1)
    return drawn


def drawn_scores(name: Coefficient, scores: Floats, drawn: NDArray[np.int64]) -> Floats:
    """The scores of drawn models; for ordered lists their ranks, with copies of a model in one order.

    Example:
        >>> drawn_scores("ndcg", np.array([0.5, 0.9]), np.array([[0, 0, 1]])).round(2).tolist()
        [[-2.0, -2.33, -1.0]]
    """
    if name not in TOP_WEIGHTED:
        return scores[drawn]
    copies = _copy_numbers(drawn) / drawn.shape[1]
    apart: Floats = -places(scores[None, :]).mid_ranks[0][drawn] - copies
    return apart


def enclosed(value: float | None, resampled: Floats, models: int, level: float) -> Estimate:
    """A value with the percentile interval of its resamples, widened to hold the value itself."""
    if value is None or np.isfinite(resampled).mean() < _LEAST_DEFINED:
        return Estimate(value, None, None, models)
    low, high = percentiles(resampled, level)
    return Estimate(value, min(low, value), max(high, value), models)


def _copy_numbers(drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 for the first copy of a model in its row, 1 for the second, and so on."""
    at = np.arange(drawn.shape[1])
    begins = np.zeros_like(drawn)
    begins[:, 1:] = np.where(drawn[:, 1:] != drawn[:, :-1], at[1:], 0)
    numbers: NDArray[np.int64] = at - np.maximum.accumulate(begins, axis=1)
    return numbers


def resampled_scores(items: ItemScores, rng: np.random.Generator, resamples: int, level: float) -> Floats | None:
    """Bootstrap means of shape (resamples, models), as far spread as clustered errors say; None for one cluster.

    The pigeonhole bootstrap alone is up to √3 too wide, and with few clusters a little too narrow (see `intervals`).
    What decides a ranking are differences between models, so the common factor is set by the scores' deviations from
    the items' means.
    """
    if items.clusters.n == 0 or items.clusters.units < 2:
        return None
    means = bootstrap_means(items.scores, items.clusters, rng, resamples)
    centre = items.scores.mean(axis=1, keepdims=True)
    deviations = items.scores - items.scores.mean(axis=0)
    wanted = sum(clustered_error(row, items.clusters) ** 2 for row in deviations)
    found = float((means - means.mean(axis=0)).var(axis=1).sum())
    factor = math.sqrt(wanted / found) * t_over_normal(items.clusters, level) if found > 0 else 1.0
    return _rounded((centre + factor * (means - centre)).T)


def _rounded(scores: Floats) -> Floats:
    """Return scores without the rounding errors of sums, which would break ties."""
    rounded: Floats = np.round(scores, 12)
    return rounded
