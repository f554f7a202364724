"""Intervals for means, differences, ratios and correlations of clustered observations.

Every one of these is a smooth function of column means, so one road serves all: the percentile interval of a clustered
bootstrap, or below 30 clusters, where its shape cannot be trusted, the t interval of the function's influence values.
So it is above 200,000 cells of user and question, where the mean of so many is normal and resampling takes minutes.
Both have the width of the clustered standard error, so nothing jumps at 30 and intervals agree with p-values.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.bootstrap import bootstrap_means
from prbench.stats.clusters import Clusters
from prbench.stats.estimate import Estimate
from prbench.stats.variance import clustered_error, t_over_normal, t_quantile

FEW_CLUSTERS = 30
"""Number of clusters in a resampled dimension below which intervals are t-based."""

MANY_CELLS = 200_000
"""Number of cells of user and question above which intervals are not resampled but t-based."""

RESAMPLES = 2000

Range: TypeAlias = tuple[float, float]
Statistic: TypeAlias = Callable[[Floats], Floats]
"""Function from column means of shape (columns, resamples) to one number per resample."""


def mean_interval(
    values: ArrayLike,
    clusters: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    bounds: Range | None = None,
) -> Estimate:
    """A mean with its two-way clustered interval.

    One cluster alone gives no interval; values that do not vary give an interval of no width. The same generator state
    gives the same interval whatever the order of the rows.

    Args:
        values: One finite number per row.
        clusters: The user (or independent unit) and question of each row.
        rng: Where resampling takes its draws from.
        resamples: Number of bootstrap resamples.
        level: Confidence level.
        bounds: The values a mean can have, to clip the interval to.

    Example:
        >>> clusters = Clusters.of(users="aabbcc", questions="uvwxyz")
        >>> estimate = mean_interval([1, 1, 0, 1, 1, 0], clusters, np.random.default_rng(0), bounds=(0, 1))
        >>> round(estimate.value, 3), round(estimate.low, 3), estimate.high
        (0.667, 0.0, 1.0)
    """
    column = as_floats("values", values, clusters.n)
    return smooth_interval(
        _first, column[None, :], column, clusters, rng, resamples=resamples, level=level, bounds=bounds
    )


def difference_interval(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    bounds: Range | None = (-1.0, 1.0),
) -> Estimate:
    """The mean of a − b over the same rows, with its two-way clustered interval.

    Example:
        >>> clusters = Clusters.of(users="aabbcc", questions="uvwxyz")
        >>> a, b = [1, 1, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0]
        >>> round(difference_interval(a, b, clusters, np.random.default_rng(0)).value, 3)
        0.667
    """
    difference = as_floats("a", a, clusters.n) - as_floats("b", b, clusters.n)
    return mean_interval(difference, clusters, rng, resamples=resamples, level=level, bounds=bounds)


def ratio_interval(
    numerator: ArrayLike,
    denominator: ArrayLike,
    clusters: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate | None:
    """A ratio of two means over the same rows, resampled jointly; None unless the denominator is clearly above 0.

    Clearly: its own interval lies above 0. Without an interval (one cluster) nothing is clear.

    Example:
        >>> clusters = Clusters.of(users="aabbcc", questions="uvwxyz")
        >>> ratio = ratio_interval([1, 0, 1, 1, 0, 1], [1, 1, 1, 1, 1, 1], clusters, np.random.default_rng(0))
        >>> round(ratio.value, 3)
        0.667
        >>> ratio_interval([1, 0, 1, 1, 0, 1], [1, -1, 1, -1, 1, -1], clusters, np.random.default_rng(0)) is None
        True
    """
    above = as_floats("numerator", numerator, clusters.n)
    below = as_floats("denominator", denominator, clusters.n)
    floor = mean_interval(below, clusters, rng, resamples=resamples, level=level).low
    if floor is None or floor <= 0:
        return None
    influence = (above - above.mean() / below.mean() * below) / below.mean()
    columns = np.stack([above, below])
    return smooth_interval(_ratio, columns, influence, clusters, rng, resamples=resamples, level=level)


def correlation_interval(
    x: ArrayLike,
    y: ArrayLike,
    clusters: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """Pearson's r with its two-way clustered interval; undefined where x or y does not vary.

    Example:
        >>> clusters = Clusters.of(users="aabbcc", questions="uvwxyz")
        >>> r = correlation_interval([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 6, 5], clusters, np.random.default_rng(0))
        >>> round(r.value, 3)
        0.943
    """
    across, up = as_floats("x", x, clusters.n), as_floats("y", y, clusters.n)
    if clusters.n < 2 or np.ptp(across) == 0 or np.ptp(up) == 0:
        return Estimate.undefined(clusters.n)
    across, up = (across - across.mean()) / across.std(), (up - up.mean()) / up.std()
    influence = across * up - (across * up).mean() * (across**2 + up**2) / 2
    columns = np.stack([across, up, across**2, up**2, across * up])
    return smooth_interval(
        _pearson, columns, influence, clusters, rng, resamples=resamples, level=level, bounds=(-1.0, 1.0)
    )


def smooth_interval(
    statistic: Statistic,
    columns: Floats,
    influence: Floats,
    clusters: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    bounds: Range | None = None,
) -> Estimate:
    """The interval of any smooth function of column means.

    Args:
        statistic: The function of the means.
        columns: Values of shape (columns, rows).
        influence: What each row adds to the statistic, to first order; its spread gives the t interval.
        clusters: The labels of the rows.
        rng: Where resampling takes its draws from.
        resamples: Number of bootstrap resamples.
        level: Confidence level.
        bounds: The values the statistic can have.
    """
    if clusters.n == 0:
        return Estimate.undefined()
    value = float(statistic(columns.mean(axis=1, keepdims=True))[0])
    if clusters.units < 2:
        return Estimate(value, None, None, clusters.n)
    error = clustered_error(influence, clusters)
    if error == 0:
        low, high = value, value
    elif clusters.units < FEW_CLUSTERS or clusters.size > MANY_CELLS:
        margin = t_quantile(clusters, level) * error
        low, high = value - margin, value + margin
    else:
        spread = error * t_over_normal(clusters, level)
        resampled = statistic(_resampled_means(columns, influence, spread, clusters, rng, resamples))
        low, high = percentiles(resampled, level)
    return _enclose(value, low, high, bounds, clusters.n)


def percentiles(resampled: Floats, level: float) -> Range:
    """The ends of a percentile interval; resamples in which the statistic is undefined do not count.

    Example:
        >>> percentiles(np.arange(101.0), 0.5)
        (25.0, 75.0)
    """
    low, high = np.quantile(resampled[np.isfinite(resampled)], [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _resampled_means(
    columns: Floats, influence: Floats, spread: float, clusters: Clusters, rng: np.random.Generator, resamples: int
) -> Floats:
    """Bootstrap means, stretched or shrunk about their centre so that the statistic has the spread that is asked for.

    The shape is the bootstrap's, the width is not: the pigeonhole bootstrap counts the noise of single rows up to three
    times (Owen 2007), which is √3 too wide where users and questions have few rows each, and any bootstrap is a little
    too narrow where clusters are few.
    """
    means = bootstrap_means(np.vstack([columns, influence]), clusters, rng, resamples)
    centre = columns.mean(axis=1, keepdims=True)
    scaled: Floats = centre + spread / float(means[-1].std()) * (means[:-1] - centre)
    return scaled


def _enclose(value: float, low: float, high: float, bounds: Range | None, n: int) -> Estimate:
    least, most = bounds or (-np.inf, np.inf)
    return Estimate(value, min(value, max(low, float(least))), max(value, min(high, float(most))), n)


def _first(means: Floats) -> Floats:
    first: Floats = means[0]
    return first


def _ratio(means: Floats) -> Floats:
    above, below = means
    return _divide(above, below)


def _pearson(means: Floats) -> Floats:
    x, y, xx, yy, xy = means
    spread = np.sqrt(np.maximum(xx - x * x, 0) * np.maximum(yy - y * y, 0))
    return _divide(xy - x * y, spread)


def _divide(above: Floats, below: Floats) -> Floats:
    quotient: Floats = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    return quotient
