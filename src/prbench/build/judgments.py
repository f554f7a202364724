"""A log of judgments: each says which of two items a user preferred, perhaps why."""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prbench.build.arrays import Flags, Indices, Numbers, rank_within, starts_group
from prbench.build.division import LabelledPair, LogDivision
from prbench.build.items import MirrorItems
from prbench.build.preferences import Mirrorable, Preferences, are_disputed, count_mirrored
from prbench.build.roles import assign_roles
from prbench.build.splits import NOWHERE
from prbench.build.wording import judgment_post
from prbench.types import Post

_SMALLEST_CUT = 3
"""Judgments that hang together by their items are taken apart only if there are at least so many."""


@dataclass(frozen=True, eq=False)
class JudgmentLog:
    """Judgments without ties, repetitions and contradictions, in the order of users and items."""

    users: tuple[str, ...]
    items: MirrorItems
    preferences: Preferences
    low_first: Flags
    """Whether the lower item stood first when the user was asked; reasons speak of first and second."""
    reasons: tuple[str, ...]
    names: tuple[str, str]
    """Names of the first and the second item in the log."""
    dropped: Counter[str]

    @property
    def kind(self) -> str:
        """The word for this kind of log."""
        return "judgments"

    def mirrorable(self) -> Mirrorable:
        """Return how much of the log has an opposite at all."""
        return count_mirrored(self.preferences, len(self.items))

    def item_weights(self) -> Numbers:
        """Return the number of disputed judgments that each item is in."""
        disputed = self.preferences.take(are_disputed(self.preferences, len(self.items)))
        both = np.concatenate([disputed.low, disputed.high])
        return np.bincount(both, minlength=len(self.items)).astype(np.float64)

    def links(self) -> tuple[Indices, Indices]:
        """Items that were compared with each other."""
        return self.preferences.low, self.preferences.high

    def user_weights(self, item_split: Indices) -> Numbers:
        """Return the number of disputed judgments that each user has in each split of the items."""
        found = self.preferences
        split = _common_split(found, item_split)
        counted = are_disputed(found, len(self.items)) & (split != NOWHERE)
        weights = np.zeros((len(self.users), 3))
        np.add.at(weights, (found.user[counted], split[counted]), 1)
        return weights

    def divide(
        self, item_split: Indices, user_split: Indices, share: float, random: np.random.Generator
    ) -> LogDivision:
        """Set a share of each user's judgments aside as context; no item stands on both sides for one user."""
        found = self.preferences
        split, of_user = _common_split(found, item_split), user_split[found.user]
        roles = assign_roles(of_user, split)
        context, asked = np.zeros(len(split), dtype=np.bool_), roles.may_ask & ~roles.may_show
        shown = np.flatnonzero(roles.may_show)
        sides = _choose_context(found.take(shown), roles.may_ask[shown], self.items.same_text, share, random)
        context[shown], asked[shown] = sides.context, sides.asked
        apart, nowhere = split == NOWHERE, of_user == NOWHERE
        closed = ~apart & ~nowhere & ~roles.may_ask & ~roles.may_show
        left = roles.may_show & ~context & ~asked
        reasons = {
            "judgments of two items that fell into different splits": apart,
            "judgments of users with no disputed judgment in any split": ~apart & nowhere,
            "judgments on items of a split that is closed to their user": closed,
            "judgments beyond the context share, on items of another split": left & ~roles.may_ask,
            "judgments that share an item with context and with questions": left & roles.may_ask,
        }
        dropped = Counter({reason: int(rows.sum()) for reason, rows in reasons.items()})
        return LogDivision(
            np.flatnonzero(context), found.user[context], found.take(asked), roles.split[asked], +dropped
        )

    def post(self, row: int) -> Post:
        """A judgment in the user's voice."""
        pair = self._as_asked(row)
        first, second = self.items.ids[pair.a], self.items.ids[pair.b]
        text = judgment_post(self.items, pair.a, pair.b, pair.prefers_a, pair.reason, self.names)
        name = f"{self.users[self.preferences.user[row]]}/{first}|{second}"
        return Post(id=name, text=text, category=self.items.groups[pair.a])

    def labelled_pairs(self, rows: Indices, most: int, random: np.random.Generator) -> list[LabelledPair]:
        """The judgments as labelled pairs: all of them, since there are no more than the user gave."""
        return [self._as_asked(row) for row in rows.tolist()]

    def _as_asked(self, row: int) -> LabelledPair:
        """The two items in the order in which the user saw them, to which the reason refers."""
        found = self.preferences
        low, high, prefers_low = int(found.low[row]), int(found.high[row]), bool(found.prefers_low[row])
        if self.low_first[row]:
            return LabelledPair(low, high, prefers_low, self.reasons[row])
        return LabelledPair(high, low, not prefers_low, self.reasons[row])


class _Sides(NamedTuple):
    context: Flags
    asked: Flags


def tidy(preferences: Preferences, same_text: Indices, dropped: Counter[str]) -> Indices:
    """The rows to keep: sorted by user and items, each judgment once, contradictions and equal texts left out."""
    rows = np.arange(len(preferences.user), dtype=np.int64)
    differ = same_text[preferences.low] != same_text[preferences.high]
    dropped["judgments of two equal texts"] = int((~differ).sum())
    rows = rows[differ]
    found = preferences.take(rows)
    order = np.lexsort((rows, found.high, found.low, found.user))
    rows, found = rows[order], found.take(order)
    new = starts_group(found.user, found.low, found.high)
    group = np.cumsum(new) - 1
    sizes = np.bincount(group)
    for_low = np.bincount(group, found.prefers_low.astype(np.float64))
    contradictory = ((for_low > 0) & (for_low < sizes))[group] if len(group) else new
    dropped["judgments that contradict the same user's other judgment of the pair"] = int(contradictory.sum())
    dropped["judgments repeated"] = int((~new & ~contradictory).sum())
    kept: Indices = rows[new & ~contradictory]
    return kept


def _common_split(found: Preferences, item_split: Indices) -> Indices:
    low, high = item_split[found.low], item_split[found.high]
    return np.where(low == high, low, NOWHERE)


def _choose_context(
    shown: Preferences, may_ask: Flags, same_text: Indices, share: float, random: np.random.Generator
) -> _Sides:
    """First what cannot be asked, then judgments that hang together by their items, until the share is full."""
    nodes = _item_nodes(shown, same_text)
    unit = _connect(nodes, may_ask)
    sizes = np.bincount(unit)
    first = np.unique(unit, return_index=True)[1]
    user, askable = shown.user[first], may_ask[first]
    order = np.lexsort((random.random(len(sizes)), askable, user))
    start = np.empty(len(sizes), dtype=np.float64)
    start[order] = _sums_before(sizes[order], user[order])
    target = share * np.bincount(shown.user, minlength=int(user.max(initial=0)) + 1)[user]
    whole_context = start + sizes / 2 <= target
    inside = np.minimum(target - start, start + sizes - target)
    cut = askable & (inside >= 1) & (sizes >= _SMALLEST_CUT)
    in_context = random.random(int(nodes.max(initial=0)) + 1)
    part = ((target - start) / np.maximum(sizes, 1))[unit]
    low, high = in_context[nodes[0]] < part, in_context[nodes[1]] < part
    context = np.where(cut[unit], low & high, whole_context[unit])
    asked = may_ask & np.where(cut[unit], ~low & ~high, ~whole_context[unit])
    return _Sides(context, asked)


def _item_nodes(shown: Preferences, same_text: Indices) -> Indices:
    """A number for each user's own copy of each text: row 0 for the lower items, row 1 for the higher."""
    texts = same_text[np.stack([shown.low, shown.high])]
    codes = shown.user[np.newaxis, :] * (int(same_text.max(initial=0)) + 1) + texts
    numbers: Indices = np.unique(codes, return_inverse=True)[1].reshape(codes.shape).astype(np.int64)
    return numbers


def _connect(nodes: Indices, may_ask: Flags) -> Indices:
    """A unit for each judgment: those that may be asked hang together by common items, the others stand alone."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = int(nodes.max(initial=0)) + 1
    linked = nodes[:, may_ask]
    graph = coo_array((np.ones(linked.shape[1]), (linked[0], linked[1])), shape=(size, size))
    component = np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
    alone = size + np.arange(nodes.shape[1])
    return np.unique(np.where(may_ask, component[nodes[0]], alone), return_inverse=True)[1].astype(np.int64)


def _sums_before(sizes: Indices, users: Indices) -> Numbers:
    """The sum of the sizes that stand before each one, for each user anew."""
    before = np.cumsum(sizes) - sizes
    at_start = before[np.arange(len(sizes)) - rank_within(users)] if len(sizes) else before
    return (before - at_start).astype(np.float64)
