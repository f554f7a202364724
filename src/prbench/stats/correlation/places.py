"""Places of reward models in a ranking, ties included, for many rankings at once.

A batch has shape (rankings, models). Whatever is linear in positions (a gain, a discount, membership in the top d) can
be averaged over all orders of tied models in closed form: a tied group of t models below `above` others takes the
places above + 1 … above + t equally often, so nothing has to be enumerated or drawn.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prbench.stats.arrays import Floats


class Places(NamedTuple):
    """The places of models in rankings, best first."""

    above: NDArray[np.int64]
    """Number of models that are better."""
    tied: NDArray[np.int64]
    """Number of models that are equal, itself included."""

    @property
    def mid_ranks(self) -> Floats:
        """1 for the best; tied models share the mean of their places."""
        ranks: Floats = self.above + (self.tied + 1) / 2
        return ranks

    def averaged(self, by_place: Floats) -> Floats:
        """The mean of a quantity over the places that each model takes; `by_place` starts with that of the best."""
        sums = np.concatenate([[0.0], np.cumsum(by_place)])
        means: Floats = (sums[self.above + self.tied] - sums[self.above]) / self.tied
        return means

    def within(self, depth: NDArray[np.int64]) -> Floats:
        """Return each model's probability to be among the best d, for every d: shape (rankings, models, depths)."""
        inside: Floats = np.clip((depth - self.above[..., None]) / self.tied[..., None], 0.0, 1.0)
        return inside


def places(scores: Floats) -> Places:
    """Rank models by their scores, the highest first.

    Args:
        scores: Shape (rankings, models).

    Example:
        >>> found = places(np.array([[0.9, 0.5, 0.7, 0.5]]))
        >>> found.mid_ranks.tolist()
        [[1.0, 3.5, 2.0, 3.5]]
    """
    own, others = scores[:, :, None], scores[:, None, :]
    return Places((others > own).sum(axis=2), (others == own).sum(axis=2))


def joint_places(first: Floats, second: Floats) -> Places:
    """Rank models by the first scores, and where these tie by the second.

    Example:
        >>> joint_places(np.array([[1.0, 1.0, 2.0]]), np.array([[3.0, 4.0, 0.0]])).mid_ranks.tolist()
        [[3.0, 2.0, 1.0]]
    """
    same = first[:, None, :] == first[:, :, None]
    ahead = (first[:, None, :] > first[:, :, None]) | (same & (second[:, None, :] > second[:, :, None]))
    return Places(ahead.sum(axis=2), (same & (second[:, None, :] == second[:, :, None])).sum(axis=2))
