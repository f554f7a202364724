"""The variance of a mean under two-way clustering, without resampling.

Cameron, Gelbach & Miller (2011): V = V_user + V_question − V_cell, each with its factor G/(G − 1); statistics refer to
Student's t with min(G) − 1 degrees of freedom. The sum can come out too small or negative by chance, so V is never
taken below either one-way variance.
"""

import math

import numpy as np

from prbench.stats.arrays import Codes, Floats
from prbench.stats.clusters import Clusters, count

_ROUNDING = 1e-12  # relative: a standard error below this is float noise around exactly nothing


def clustered_error(values: Floats, clusters: Clusters) -> float:
    """The standard error of the mean; 0 where no cluster's mean differs. Needs at least two clusters.

    Example:
        >>> clusters = Clusters.of(users="aabb", questions="wxyz")
        >>> clustered_error(np.array([1.0, 1.0, 0.0, 0.0]), clusters)
        0.5
    """
    centred = values - values.mean()
    one_way = [_one_way(centred, codes) for codes in clusters.dimensions]
    nothing = (_ROUNDING * float(np.abs(values).max())) ** 2
    variance = max(one_way)
    if not clusters.nested:
        cell = _one_way(centred, clusters.cells)
        # Equal means of all users and of all questions while cells differ (a checkerboard) is chance, not certainty.
        variance = max(variance, sum(one_way) - cell) if variance > nothing else cell
    return math.sqrt(variance) if variance > nothing else 0.0


def clustered_p(values: Floats, clusters: Clusters) -> float | None:
    """Two-sided p that the mean is 0, from the clustered t statistic; None where there is only one cluster.

    Example:
        >>> clusters = Clusters.of(users="aabb", questions="wxyz")
        >>> round(clustered_p(np.array([1.0, 1.0, 0.0, 0.0]), clusters), 3)
        0.5
    """
    from scipy.special import stdtr

    if clusters.n == 0 or clusters.units < 2:
        return None
    mean, error = float(values.mean()), clustered_error(values, clusters)
    if error > 0:
        return float(2 * stdtr(clusters.units - 1, -abs(mean) / error))
    # All clusters say exactly the same. That is not certainty: G equal signs happen by chance once in 2^(G − 1).
    return 1.0 if mean == 0 else 2.0 ** (1 - clusters.units)


def t_quantile(clusters: Clusters, level: float) -> float:
    """Return the number of standard errors that the two-sided interval reaches to each side."""
    from scipy.special import stdtrit

    return float(stdtrit(clusters.units - 1, 0.5 + level / 2))


def t_over_normal(clusters: Clusters, level: float) -> float:
    """Return how much wider the t interval is than the normal one: what a percentile interval of few clusters lacks."""
    from scipy.special import ndtri

    return t_quantile(clusters, level) / float(ndtri(0.5 + level / 2))


def _one_way(centred: Floats, codes: Codes) -> float:
    groups = count(codes)
    sums = np.bincount(codes, weights=centred, minlength=groups)
    return groups / (groups - 1) * float(sums @ sums) / len(centred) ** 2
