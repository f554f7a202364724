"""Partial correlation: what a benchmark says of downstream use beyond another number (generic accuracy, say)."""

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from prbench.stats.arrays import as_floats
from prbench.stats.correlation.coefficients import coefficient
from prbench.stats.correlation.power import RankOrScore

_COLLINEAR = 1e-9


@dataclass(frozen=True, slots=True)
class Partial:
    """A correlation with a covariate held fixed."""

    value: float | None
    """Coefficient; None where something does not vary, or where the covariate alone decides one of the two."""
    p: float | None
    """Two-sided, from Student's t with n − 3 degrees of freedom; approximate for few models."""
    n: int


def partial_correlation(
    benchmark: ArrayLike, downstream: ArrayLike, given: ArrayLike, *, name: RankOrScore = "spearman"
) -> Partial:
    """The correlation of benchmark and downstream given a covariate.

    Example:
        >>> found = partial_correlation([1, 2, 3, 4, 5], [1, 3, 2, 5, 4], [2, 1, 4, 3, 5])
        >>> round(found.value, 3), round(found.p, 3)
        (0.978, 0.022)
    """
    from scipy.special import stdtr

    x = as_floats("benchmark", benchmark)
    y = as_floats("downstream", downstream, len(x))
    z = as_floats("given", given, len(x))
    xy, xz, yz = coefficient(name, x, y), coefficient(name, x, z), coefficient(name, y, z)
    if xy is None or xz is None or yz is None:
        return Partial(None, None, len(x))
    left = (1 - xz**2) * (1 - yz**2)
    if left < _COLLINEAR:
        return Partial(None, None, len(x))
    value = max(-1.0, min(1.0, (xy - xz * yz) / math.sqrt(left)))
    freedom = len(x) - 3
    if freedom < 1 or 1 - value**2 < _COLLINEAR:
        return Partial(value, None, len(x))
    statistic = abs(value) * math.sqrt(freedom / (1 - value**2))
    return Partial(value, float(2 * stdtr(freedom, -statistic)), len(x))
