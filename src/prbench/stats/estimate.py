"""A number with its interval, and the intervals with a closed form: shares, quantiles, bounds for what is missing."""

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from prbench.stats.arrays import as_floats


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, its interval and how many observations stand behind it; None where undefined, never NaN.

    Example:
        >>> Estimate(0.5, 0.25, 0.75, 12).to_json()
        {'value': 0.5, 'low': 0.25, 'high': 0.75, 'n': 12}
    """

    value: float | None
    low: float | None
    high: float | None
    n: int

    @classmethod
    def undefined(cls, n: int = 0) -> "Estimate":
        """An estimate that the data do not give.

        Example:
            >>> Estimate.undefined().value is None
            True
        """
        return cls(None, None, None, n)

    def to_json(self) -> dict[str, float | int | None]:
        """The four keys of every metric, at full precision."""
        return asdict(self)


def wilson(successes: float, n: int, *, level: float = 0.95) -> Estimate:
    """A share of independent trials, with Wilson's score interval; half successes (ties) are welcome.

    Example:
        >>> share = wilson(8, 10)
        >>> round(share.low, 4), round(share.high, 4)
        (0.4902, 0.9433)
    """
    from scipy.special import ndtri

    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
    if n == 0:
        return Estimate.undefined()
    share, z = successes / n, float(ndtri(0.5 + level / 2))
    shrink = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    margin = z / shrink * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At a share of 0 or 1 the interval ends there exactly; rounding may leave it a hair inside or outside.
    low = 0.0 if successes == 0 else max(centre - margin, 0.0)
    high = 1.0 if successes == n else min(centre + margin, 1.0)
    return Estimate(share, low, high, n)


def quantile(values: ArrayLike, probability: float, *, level: float = 0.95) -> Estimate:
    """A quantile (of latencies, say) with the distribution-free interval between two order statistics.

    An end of the interval is None where there are too few values to bound it.

    Example:
        >>> quantile(range(1, 12), 0.5)
        Estimate(value=6.0, low=2.0, high=10.0, n=11)
    """
    from scipy.special import bdtr

    ordered = np.sort(as_floats("values", values))
    n = len(ordered)
    if n == 0:
        return Estimate.undefined()
    # below[j]: the chance that at most j of the n values lie below the true quantile.
    below = bdtr(np.arange(n, dtype=np.float64), n, probability)
    tail = (1 - level) / 2
    first = int(np.searchsorted(below, tail, side="right")) - 1
    last = int(np.searchsorted(below, 1 - tail, side="left"))
    return Estimate(
        value=float(np.quantile(ordered, probability)),
        low=float(ordered[first]) if first >= 0 else None,
        high=float(ordered[last]) if last < n else None,
        n=n,
    )


@dataclass(frozen=True, slots=True)
class AccuracyBounds:
    """The accuracy if every missing verdict had been wrong, and if every one had been right."""

    low: float
    high: float


def accuracy_bounds(n_ok: int, sum_credit: float, n_missing: int) -> AccuracyBounds | None:
    """Bound the accuracy over all pairs by what the missing ones could have been; None where there is no pair.

    Example:
        >>> accuracy_bounds(n_ok=8, sum_credit=6, n_missing=2)
        AccuracyBounds(low=0.6, high=0.8)
    """
    total = n_ok + n_missing
    if total == 0:
        return None
    return AccuracyBounds(sum_credit / total, (sum_credit + n_missing) / total)
