"""Number of reward models that a correlation needs before it can be seen at all (Fisher's z)."""

import math
from collections.abc import Sequence
from typing import Literal

from prbench.stats.estimate import Estimate

RankOrScore = Literal["spearman", "pearson"]

_VARIANCE: dict[RankOrScore, float] = {"spearman": 1.06, "pearson": 1.0}
"""Variance of z times n − 3; for ranks by Fieller, Hartley & Pearson (1957)."""

TABLE = (0.8, 0.7, 0.6, 0.5, 0.3)


def models_needed(
    correlation: float, *, power: float = 0.8, alpha: float = 0.05, name: RankOrScore = "spearman"
) -> int | None:
    """Reward models needed to find a true correlation with the given power at two-sided alpha; None for 0.

    Example:
        >>> models_needed(0.8), models_needed(0.3)
        (10, 90)
    """
    from scipy.special import ndtri

    if not -1 <= correlation <= 1:
        raise ValueError(f"a correlation of {correlation}")
    if correlation == 0:
        return None
    # Below 4 Fisher's z has no variance, and 4 models cannot reach p < .05 in any order.
    least = 5
    if abs(correlation) == 1:
        return least
    reach = float(ndtri(1 - alpha / 2) + ndtri(power)) / math.atanh(abs(correlation))
    return max(least, math.ceil(_VARIANCE[name] * reach**2 + 3))


def power_table(correlations: Sequence[float] = TABLE) -> dict[float, int | None]:
    """Reward models needed for 80 % power at two-sided p < .05, by true rank correlation.

    Example:
        >>> power_table()
        {0.8: 10, 0.7: 15, 0.6: 21, 0.5: 31, 0.3: 90}
    """
    return {correlation: models_needed(correlation) for correlation in correlations}


def fisher_interval(
    correlation: float | None, models: int, *, level: float = 0.95, name: RankOrScore = "spearman"
) -> Estimate:
    """A correlation with the interval of its z; no interval below 4 models or at ±1.

    Example:
        >>> found = fisher_interval(0.5, 31)
        >>> round(found.low, 3), round(found.high, 3)
        (0.166, 0.731)
    """
    from scipy.special import ndtri

    if correlation is None or models < 4 or abs(correlation) >= 1:
        return Estimate(correlation, None, None, models)
    z, margin = math.atanh(correlation), float(ndtri(0.5 + level / 2)) * math.sqrt(_VARIANCE[name] / (models - 3))
    return Estimate(correlation, math.tanh(z - margin), math.tanh(z + margin), models)
