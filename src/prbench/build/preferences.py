"""Preferences of users between two items, as arrays; and how many of them have an opposite."""

from typing import NamedTuple

import numpy as np

from prbench.build.arrays import Flags, Indices


class Preferences(NamedTuple):
    """One row per user and unordered pair of items; `low` and `high` are the pair in the order of the items."""

    user: Indices
    low: Indices
    high: Indices
    prefers_low: Flags

    def take(self, rows: Indices | Flags) -> "Preferences":
        """Return some of the rows."""
        return Preferences(self.user[rows], self.low[rows], self.high[rows], self.prefers_low[rows])

    def pair_codes(self, items: int) -> Indices:
        """One number per unordered pair of items."""
        return self.low * items + self.high


class Mirrorable(NamedTuple):
    """Part of a log that can be mirrored, before anything is set aside for contexts or splits."""

    item_pairs: int
    disputed: int
    """Item pairs on which at least one user stands on each side."""
    judgments: int
    """Judgments left when equally many users are taken from each side of every item pair."""


class _Sides(NamedTuple):
    pair_of: Indices
    for_low: Indices
    for_high: Indices


def count_mirrored(preferences: Preferences, items: int) -> Mirrorable:
    """Count what equally many users from each side of every item pair come to.

    Example:
        >>> users, low, high = np.arange(3), np.zeros(3, dtype=int), np.ones(3, dtype=int)
        >>> count_mirrored(Preferences(users, low, high, np.array([True, True, False])), items=2)
        Mirrorable(item_pairs=1, disputed=1, judgments=2)
    """
    sides = _count_sides(preferences, items)
    fewer = np.minimum(sides.for_low, sides.for_high)
    return Mirrorable(len(fewer), int((fewer > 0).sum()), int(2 * fewer.sum()))


def are_disputed(preferences: Preferences, items: int) -> Flags:
    """Whether some user prefers the other item of the same pair."""
    sides = _count_sides(preferences, items)
    disputed: Flags = ((sides.for_low > 0) & (sides.for_high > 0))[sides.pair_of]
    return disputed


def _count_sides(preferences: Preferences, items: int) -> _Sides:
    codes, pair_of = np.unique(preferences.pair_codes(items), return_inverse=True)
    total = np.bincount(pair_of, minlength=len(codes))
    for_low = np.bincount(pair_of[preferences.prefers_low], minlength=len(codes))
    return _Sides(pair_of, for_low, total - for_low)
