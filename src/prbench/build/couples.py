"""Couples: two users on opposite sides of the same two items. What is kept or dropped here is always a whole couple."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from prbench.build.arrays import Indices, rank_within
from prbench.build.config import SPLITS
from prbench.build.preferences import Preferences


class Couples(NamedTuple):
    """One row per couple; `low` and `high` are the two items, each preferred by one of the two users."""

    split: Indices
    low: Indices
    high: Indices
    low_user: Indices
    high_user: Indices
    turn: Indices
    """The how-manieth couple of its item pair this is."""

    def take(self, rows: Indices) -> "Couples":
        """Return some of the rows."""
        return Couples(*(column[rows] for column in self))


def match(asked: Preferences, split: Indices, items: int, random: np.random.Generator) -> Couples:
    """Couple users one to one, as many from each side of every item pair as there are on the smaller side.

    Example:
        >>> users, low, high = np.arange(3), np.zeros(3, dtype=int), np.ones(3, dtype=int)
        >>> asked = Preferences(users, low, high, np.array([True, True, False]))
        >>> couples = match(asked, np.zeros(3, dtype=int), 2, np.random.default_rng(0))
        >>> len(couples.low), int(couples.high_user[0])
        (1, 2)
    """
    cell = np.unique(split * items**2 + asked.pair_codes(items), return_inverse=True)[1].astype(np.int64)
    luck = random.random(len(cell))
    places, rows = [], []
    for side in (True, False):
        of_side = np.flatnonzero(asked.prefers_low == side)
        of_side = of_side[np.lexsort((luck[of_side], cell[of_side]))]
        places.append(cell[of_side] * (len(cell) + 1) + rank_within(cell[of_side]))
        rows.append(of_side)
    _, for_low, for_high = np.intersect1d(places[0], places[1], assume_unique=True, return_indices=True)
    one, other = rows[0][for_low], rows[1][for_high]
    turn = rank_within(cell[one])
    return Couples(split[one], asked.low[one], asked.high[one], asked.user[one], asked.user[other], turn)


def bound(
    couples: Couples,
    shares: tuple[float, ...],
    max_per_user: int | None,
    max_pairs: int | None,
    random: np.random.Generator,
    dropped: Counter[str],
) -> Couples:
    """Keep what the bounds allow, evenly over item pairs: every pair's first couple before any pair's second."""
    order = np.lexsort((random.random(len(couples.turn)), couples.turn, couples.split))
    kept = _bound_users(couples, order, max_per_user)
    dropped["preferences beyond --max-per-user"] = 2 * (len(order) - len(kept))
    if max_pairs is not None:
        fair = _bound_total(couples, kept, shares, max_pairs // 2)
        dropped["preferences beyond --max-pairs"] = 2 * (len(kept) - len(fair))
        kept = fair
    kept = kept[np.lexsort((couples.turn[kept], couples.high[kept], couples.low[kept], couples.split[kept]))]
    return couples.take(kept)


def _bound_users(couples: Couples, order: Indices, most: int | None) -> Indices:
    if most is None:
        return order
    asked: Counter[tuple[int, int]] = Counter()
    kept = []
    columns = (order, couples.split[order], couples.low_user[order], couples.high_user[order])
    for row, split, one, other in zip(*(column.tolist() for column in columns), strict=True):
        if asked[split, one] < most and asked[split, other] < most:
            asked[split, one] += 1
            asked[split, other] += 1
            kept.append(row)
    return np.array(kept, dtype=np.int64)


def _bound_total(couples: Couples, kept: Indices, shares: tuple[float, ...], most: int) -> Indices:
    """Share the room out by the splits' shares; what a split cannot fill goes to the others."""
    there = np.bincount(couples.split[kept], minlength=len(SPLITS))
    room = share_out(most, there.tolist(), (*shares, shares[-1]))
    return kept[rank_within(couples.split[kept]) < np.array(room)[couples.split[kept]]]


def share_out(room: int, there: list[int], weights: tuple[float, ...]) -> list[int]:
    """Give each split its part of the room, and what it cannot use to the others.

    Example:
        >>> share_out(10, [100, 1, 100], (0.5, 0.25, 0.25))
        [7, 1, 2]
    """
    given = [0] * len(there)
    while (left := min(room, sum(there)) - sum(given)) > 0:
        hungry = [split for split, count in enumerate(there) if given[split] < count]
        total = sum(max(weights[split], 1e-9) for split in hungry)
        for split in hungry:
            part = int(left * max(weights[split], 1e-9) / total)
            given[split] += min(part, there[split] - given[split])
        if min(room, sum(there)) - sum(given) == left:  # only a remainder too small to share is left
            given[hungry[0]] += 1
    return given
