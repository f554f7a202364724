"""Division of users and items into train, validation and test.

Items are kept apart first: texts of one topic stay together, equal texts always. Users follow the items they judged as
far as the shares allow, so that little is lost; labels play no part.
"""

import numpy as np

from prbench.build.arrays import Indices, Numbers
from prbench.build.items import MirrorItems

NOWHERE = -1
_TRIES = 32


def split_items(
    items: MirrorItems,
    weights: Numbers,
    links: tuple[Indices, Indices],
    shares: tuple[float, ...],
    random: np.random.Generator,
) -> Indices:
    """Give each item a split.

    Args:
        items: The texts.
        weights: How many judgments each item is in.
        links: Items that were compared with each other; they hold units together where items have no groups.
        shares: Of train, validation and test.
        random: Orders the units.
    """
    units = _units(items, weights, links, shares)
    unit_weights = np.bincount(units, weights, minlength=int(units.max()) + 1).astype(np.float64)
    best, best_error = np.zeros(len(unit_weights), dtype=np.int64), np.inf
    for _ in range(_TRIES):
        tried = _cut(unit_weights, shares, random)
        held = np.bincount(tried, unit_weights, minlength=len(shares)) / max(unit_weights.sum(), 1)
        error = float(np.abs(held - shares).sum())
        if error < best_error:
            best, best_error = tried, error
    return best[units]


def split_users(weights: Numbers, shares: tuple[float, ...], random: np.random.Generator) -> Indices:
    """Give each user a split: where most of the user's judgments are, while there is room.

    Busy users are dealt out among themselves, and so are quiet ones: else the quiet ones, who often have items of one
    split only, fill the smaller splits, and the busy ones, without whom few couples are found, all end in train.

    Args:
        weights: How many usable judgments each user (row) has in each split of the items (column).
        shares: Of train, validation and test.
        random: Decides between users that are alike.

    Returns:
        A split for each user; `NOWHERE` for users without any usable judgment.
    """
    leaning = _leanings(weights, shares)
    ranked = np.sort(leaning, axis=1)
    doublings = np.floor(np.log2(np.maximum(weights.sum(axis=1), 1))).astype(np.int64)
    doublings[ranked[:, -1] == 0] = NOWHERE
    found = np.full(len(weights), NOWHERE, dtype=np.int64)
    for busyness in range(int(doublings.max(initial=NOWHERE)) + 1):
        alike = np.flatnonzero(doublings == busyness)
        room = [share * len(alike) for share in shares]
        decided = ranked[alike, -1] - ranked[alike, -2]
        for user in alike[np.lexsort((random.random(len(alike)), -decided))].tolist():
            found[user] = chosen = _best_split(leaning[user].tolist(), room, shares)
            room[chosen] -= 1
    return found


def _leanings(weights: Numbers, shares: tuple[float, ...]) -> Numbers:
    """Return the part of each user's judgments in each split, rounded so that small differences are left to chance."""
    parts = weights / np.maximum(weights.sum(axis=0), 1)
    parts[:, np.array(shares) == 0] = 0
    parts = parts / np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    leanings: Numbers = np.where(parts > 0, np.maximum(np.round(parts, 1), 0.05), 0.0)
    return leanings


def _best_split(leaning: list[float], room: list[float], shares: tuple[float, ...]) -> int:
    open_to = [split for split, lean in enumerate(leaning) if lean > 0]
    return max(open_to, key=lambda split: (room[split] > 0, leaning[split], room[split] / shares[split]))


def _units(items: MirrorItems, weights: Numbers, links: tuple[Indices, Indices], shares: tuple[float, ...]) -> Indices:
    """Return the units that must stay together; one that fits into no split is taken apart into its texts."""
    units = _connect(items, links)
    needed = sum(share > 0 for share in shares)
    while True:
        held = np.bincount(units, weights, minlength=int(units.max()) + 1)
        fits = held.max() <= max(shares) * held.sum() and (held > 0).sum() >= needed
        members = units == held.argmax()
        texts, part = np.unique(items.same_text[members], return_inverse=True)
        if fits or len(texts) == 1:
            return units
        units[members] = units.max() + 1 + part
        units = np.unique(units, return_inverse=True)[1].astype(np.int64)


def _connect(items: MirrorItems, links: tuple[Indices, Indices]) -> Indices:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    everyone = np.arange(len(items), dtype=np.int64)
    edges = [(everyone, items.same_text)]
    if any(items.groups):
        first: dict[str, int] = {}
        same_group = [first.setdefault(group, i) if group else i for i, group in enumerate(items.groups)]
        edges.append((everyone, np.array(same_group, dtype=np.int64)))
    else:
        edges.append(links)
    start, end = (np.concatenate([edge[side] for edge in edges]) for side in (0, 1))
    graph = coo_array((np.ones(len(start)), (start, end)), shape=(len(items), len(items)))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _cut(weights: Numbers, shares: tuple[float, ...], random: np.random.Generator) -> Indices:
    """Units in a random order, cut where the shares are full."""
    order = random.permutation(len(weights))
    ends = np.cumsum(weights[order])
    middles = (ends - weights[order] / 2) / max(ends[-1], 1)
    found = np.empty(len(weights), dtype=np.int64)
    positive = [split for split, share in enumerate(shares) if share > 0]
    borders = np.cumsum([shares[split] for split in positive])[:-1]
    found[order] = np.array(positive, dtype=np.int64)[np.searchsorted(borders, middles, side="right")]
    return found
