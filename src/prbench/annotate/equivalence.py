"""Are two means equal for all that matters? Two one-sided tests (Schuirmann 1987), with clustered errors.

Equivalence is shown where the difference lies inside ±margin surely: at the 5 % level if its 90 % interval does. That a
difference is not significant shows nothing; few data give wide intervals, and wide intervals never fit.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from prbench.stats import Clusters, Estimate
from prbench.stats.arrays import as_floats
from prbench.stats.variance import clustered_error

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Equivalence:
    """What two one-sided tests say of a mean difference."""

    margin: float
    p: float | None
    """The larger of the two one-sided p-values; None where there is only one cluster."""
    interval: Estimate
    """The mean with its 90 % interval, which lies inside ±margin exactly where p is below 5 %."""

    @property
    def shown(self) -> bool:
        """Whether the difference is surely inside the margin."""
        return self.p is not None and self.p < LEVEL

    def to_json(self) -> dict[str, object]:
        """Margin, p, the 90 % interval, the verdict."""
        return {"margin": self.margin, "p": self.p, "interval_90": self.interval.to_json(), "shown": self.shown}


def tost(differences: ArrayLike, clusters: Clusters, margin: float) -> Equivalence:
    """Test that a mean difference lies inside ±margin.

    Args:
        differences: One paired difference per row.
        clusters: The annotator and the pair of each row; t has as many degrees of freedom as there are clusters of the
            rarer kind, less one.
        margin: The largest difference that does not matter.

    Example:
        >>> clusters = Clusters.of(users=range(6), questions=range(6))
        >>> found = tost([0.1, -0.2, 0.0, 0.2, -0.1, 0.0], clusters, 0.5)
        >>> found.shown, round(found.p, 5)
        (True, 0.00017)
        >>> tost([1.0, -1.0, 0.0, 2.0, -2.0, 0.0], clusters, 0.5).shown
        False
    """
    from scipy.special import stdtr, stdtrit

    values = as_floats("differences", differences, clusters.n)
    if clusters.n == 0:
        return Equivalence(margin, None, Estimate.undefined())
    mean = float(values.mean())
    if clusters.units < 2:
        return Equivalence(margin, None, Estimate(mean, None, None, clusters.n))
    error, freedom = clustered_error(values, clusters), clusters.units - 1
    if error == 0:
        # All clusters say exactly the same. That is not certainty: so many equal signs happen by chance, too.
        p = 0.5 ** len(np.unique(clusters.questions)) if abs(mean) < margin else 1.0
        return Equivalence(margin, p, Estimate(mean, mean, mean, clusters.n))
    above, below = (mean + margin) / error, (mean - margin) / error
    p = max(1 - float(stdtr(freedom, above)), float(stdtr(freedom, below)))
    reach = float(stdtrit(freedom, 1 - LEVEL)) * error
    return Equivalence(margin, p, Estimate(mean, mean - reach, mean + reach, clusters.n))
