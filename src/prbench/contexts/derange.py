"""Users shown in place of the right one: a fixed derangement for `other`, the couple's other half for `opposite`."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

from prbench.data import Suite
from prbench.errors import ContextError
from prbench.types import Pair, read_stances


def derangement(users: Iterable[str], seed: int) -> dict[str, str]:
    """Send every user to a different one: a seeded order, each to the next.

    Example:
        >>> derangement(["ann", "bob"], seed=0)
        {'ann': 'bob', 'bob': 'ann'}
    """
    order = sorted(set(users), key=lambda user: hashlib.sha256(f"{seed}\x00{user}".encode()).digest())
    if len(order) < 2:
        raise ContextError(
            f"context 'other' needs at least two users in a split, found {len(order)}",
            hint="leave it out, or take a suite with more users",
        )
    following = dict(zip(order, [*order[1:], order[0]], strict=True))
    return {user: following[user] for user in sorted(following)}


def other_users(pairs: Sequence[Pair], seed: int) -> dict[tuple[str, str], str]:
    """Return the user of the same split who is shown instead, for each (split, user)."""
    suite = pairs if isinstance(pairs, Suite) else Suite.of(pairs)
    by_split: dict[str, set[str]] = defaultdict(set)
    for split, user in zip(suite.tag("split"), suite.column("user"), strict=True):
        by_split[split or ""].add(user)
    return {
        (split, user): other for split, users in by_split.items() for user, other in derangement(users, seed).items()
    }


def mirror_twins(pairs: Sequence[Pair]) -> dict[str, Pair]:
    """Return the pair with the same answers and the opposite label, for each pair of a mirrored suite."""
    halves: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if mirror := pair.tags.get("mirror"):
            halves[mirror].append(pair)
    twins: dict[str, Pair] = {}
    for group in halves.values():
        if len(group) == 2:
            one, two = group
            twins[one.id], twins[two.id] = two, one
    return twins


def user_stances(pairs: Iterable[Pair]) -> dict[str, dict[str, str]]:
    """Return the pole that each user wants on each axis, read off the tags of the user's own pairs."""
    held: dict[str, dict[str, str]] = defaultdict(dict)
    suite = pairs if isinstance(pairs, Suite) else Suite.of(pairs)
    last: dict[tuple[str, str | None, str | None], None] = {}
    for label in zip(suite.column("user"), suite.tag("axis"), suite.tag("pole"), strict=True):
        last.pop(label, None)  # what a user's later pairs say counts
        last[label] = None
    labels = list(dict.fromkeys(zip(suite.column("user"), suite.tag("axis"), suite.tag("pole"), strict=True)))
    for user, axis, pole in [*labels, *last]:  # in the order in which they first appear
        held[user].update(read_stances({"axis": axis or "", "pole": pole or ""}))
    return {user: held[user] for user in dict.fromkeys(suite.column("user"))}
