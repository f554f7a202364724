"""A log of ratings: two ratings of one user that lie far enough apart are a preference.

All pairs of all ratings would be too many. Each user's items are cut to a bounded number by an order of items that all
users share, so that different users keep the same items and can still be set against each other.
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from prbench.build.arrays import Indices, Numbers, pairs_within, rank_within
from prbench.build.division import LabelledPair, LogDivision
from prbench.build.items import MirrorItems
from prbench.build.preferences import Mirrorable, Preferences, count_mirrored
from prbench.build.roles import assign_roles
from prbench.build.wording import rating_post
from prbench.types import Post

_MOST_PREFERENCES = 4_000_000
_MOST_ITEMS_PER_USER = 64
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RatingLog:
    """Ratings, one per user and text, in the order of users and items."""

    users: tuple[str, ...]
    items: MirrorItems
    user: Indices
    item: Indices
    rating: Numbers
    min_gap: float
    scale: tuple[int, int]
    """Lowest and highest rating given, rounded outwards."""
    dropped: Counter[str]

    @property
    def kind(self) -> str:
        """The word for this kind of log."""
        return "ratings"

    def mirrorable(self) -> Mirrorable:
        """Return how much of the log has an opposite, among the items that each user is bounded to."""
        everything = np.arange(len(self.user), dtype=np.int64)
        rows = self._bound(everything, np.zeros_like(everything), np.arange(len(self.items), dtype=np.int64))
        return count_mirrored(self._compare(rows, np.zeros_like(rows), Counter())[0], len(self.items))

    def item_weights(self) -> Numbers:
        """Return the number of ratings of each item."""
        return np.bincount(self.item, minlength=len(self.items)).astype(np.float64)

    def links(self) -> tuple[Indices, Indices]:
        """Ratings compare every item with every other, so nothing holds items together but their group."""
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def user_weights(self, item_split: Indices) -> Numbers:
        """Return the number of items of each split that each user has rated."""
        weights = np.zeros((len(self.users), 3))
        np.add.at(weights, (self.user, item_split[self.item]), 1)
        return weights

    def divide(
        self, item_split: Indices, user_split: Indices, share: float, random: np.random.Generator
    ) -> LogDivision:
        """Set a share of each user's ratings aside as context; first those of items that cannot be asked about."""
        of_user = user_split[self.user]
        roles = assign_roles(of_user, item_split[self.item])
        dropped: Counter[str] = Counter()
        dropped["ratings of items of a split that is closed to their user"] = int(
            (~roles.may_ask & ~roles.may_show).sum()
        )
        context = np.zeros(len(self.user), dtype=np.bool_)
        shown = np.flatnonzero(roles.may_show)
        order = shown[np.lexsort((random.random(len(shown)), roles.may_ask[shown], self.user[shown]))]
        pool = np.bincount(self.user[shown], minlength=len(self.users))
        context[order] = rank_within(self.user[order]) < np.maximum(np.floor(share * pool + 0.5), 1)[self.user[order]]
        left = roles.may_show & ~roles.may_ask & ~context
        dropped["ratings beyond the context share, of items of another split"] = int(left.sum())
        candidates = np.flatnonzero(roles.may_ask & ~context)
        asked = self._bound(candidates, roles.split, random.permutation(len(self.items)))
        dropped["ratings beyond the items compared per user"] = len(candidates) - len(asked)
        preferences, split = self._compare(asked, roles.split[asked], dropped)
        return LogDivision(np.flatnonzero(context), self.user[context], preferences, split, +dropped)

    def post(self, row: int) -> Post:
        """A rating in the user's voice."""
        item = int(self.item[row])
        text = rating_post(self.items, item, float(self.rating[row]), self.scale)
        return Post(
            id=f"{self.users[self.user[row]]}/{self.items.ids[item]}", text=text, category=self.items.groups[item]
        )

    def labelled_pairs(self, rows: Indices, most: int, random: np.random.Generator) -> list[LabelledPair]:
        """Return at most so many of the pairs that a user's context ratings decide."""
        found, _ = self._compare(rows, np.zeros_like(rows), Counter())
        kept = np.sort(random.permutation(len(found.user))[:most])
        return [
            LabelledPair(int(low), int(high), bool(prefers))
            for _, low, high, prefers in zip(*found.take(kept), strict=True)
        ]

    def _bound(self, rows: Indices, split: Indices, shared: Indices) -> Indices:
        """The rows of the first items of each user and split, in an order of items that all users share."""
        most = math.isqrt(2 * _MOST_PREFERENCES // max(len(self.users), 1))
        most = min(max(most, 8), _MOST_ITEMS_PER_USER)
        order = rows[np.lexsort((shared[self.item[rows]], split[rows], self.user[rows]))]
        kept = order[rank_within(self.user[order], split[order]) < most]
        return np.sort(kept)

    def _compare(self, rows: Indices, split: Indices, dropped: Counter[str]) -> tuple[Preferences, Indices]:
        """Every pair of these ratings within user, split and group that lies far enough apart."""
        group = self.items.group_codes[self.item[rows]]
        order = np.lexsort((self.item[rows], group, split, self.user[rows]))
        rows, split, group = rows[order], split[order], group[order]
        first, second = pairs_within(self.user[rows], split, group)
        gap = self.rating[rows[first]] - self.rating[rows[second]]
        far = np.abs(gap) >= self.min_gap - _ROUNDING
        dropped["rating pairs closer than the smallest gap"] += int((~far).sum())
        first, second, gap = first[far], second[far], gap[far]
        low, high = self.item[rows[first]], self.item[rows[second]]  # rows are sorted by item within a group
        return Preferences(self.user[rows[first]], low, high, gap > 0), split[first]


def tidy(user: Indices, item: Indices) -> Indices:
    """The rows to keep: sorted by user and item, the last rating of each."""
    rows = np.arange(len(user), dtype=np.int64)
    order = np.lexsort((rows, item, user))
    following = np.ones(len(order), dtype=np.bool_)
    if len(order):
        following[:-1] = (user[order][1:] != user[order][:-1]) | (item[order][1:] != item[order][:-1])
    return order[following]
