"""Division of what is known: judged pairs are drawn from one half of each user's questions, evaluation is the other.

Users whose pairs mirror each other are divided together, so both halves of a couple keep a question on the same side,
and they are shown the same judged pairs with opposite labels. Hence on a mirrored suite a model that ignores posts
and labels stays at exactly 50 %, with any number of shots. More shots always include fewer ones; the same with posts.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from prbench.data import hash_text
from prbench.types import Judgment, Pair, Post

SHOTS = (0, 1, 2, 4, 8, 16)
POSTS = (0, 1, 2, 4, 8, None)
"""Numbers of posts shown; None for all of them."""


class ShotDivision(NamedTuple):
    """Pairs that may be shown as judged, by user and in the order they are drawn, and pairs to evaluate."""

    shots: Mapping[str, tuple[Pair, ...]]
    evaluated: tuple[Pair, ...]

    def judgments(self, count: int) -> dict[str, tuple[Judgment, ...]]:
        """The first so many judged pairs of each user who is evaluated; a user with fewer gives all."""
        return {
            user: tuple(map(_judgment, self.shots.get(user, ())[:count]))
            for user in sorted({pair.user for pair in self.evaluated})
        }

    def given(self, count: int) -> float:
        """Return the number of judged pairs that an evaluated pair's user gives, on average."""
        found = self.judgments(count)
        return sum(len(found[pair.user]) for pair in self.evaluated) / max(len(self.evaluated), 1)


def divide(pairs: Sequence[Pair], seed: int) -> ShotDivision:
    """Divide each user's questions by seed.

    Example:
        >>> pairs = [
        ...     Pair(id=f"{n}", user="ann", question=f"Tea {n}?", chosen="Green.", rejected="Black.") for n in range(6)
        ... ]
        >>> division = divide(pairs, seed=0)
        >>> len(division.shots["ann"]), len(division.evaluated), len(division.judgments(2)["ann"])
        (3, 3, 2)
    """
    together = _together(pairs)
    items: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        items[together[pair.user]].add(item_of(pair))
    shown = {
        (group, item) for group, found in items.items() for item in _ordered(found, seed, group)[: len(found) // 2]
    }
    shots: dict[str, list[Pair]] = defaultdict(list)
    evaluated = []
    for pair in pairs:
        if (together[pair.user], item_of(pair)) in shown:
            shots[pair.user].append(pair)
        else:
            evaluated.append(pair)
    return ShotDivision({user: _drawn(found, seed) for user, found in shots.items()}, tuple(evaluated))


def some_posts(user: str, posts: Sequence[Post], count: int | None, seed: int) -> tuple[Post, ...]:
    """A random subset of a user's posts by seed, in their own order; None for all of them.

    Example:
        >>> posts = [Post(id=f"{n}", text=f"post {n}") for n in range(9)]
        >>> fewer, more = (some_posts("ann", posts, count, seed=0) for count in (2, 4))
        >>> len(fewer), set(fewer) <= set(more)
        (2, True)
    """
    if count is None:
        return tuple(posts)
    kept = set(_ordered({post.id for post in posts}, seed, user)[:count])
    return tuple(post for post in posts if post.id in kept)


def item_of(pair: Pair) -> str:
    """Return the item that is asked: the pair of items where a suite says so, else the question.

    All pairs of such a suite may share a question.
    """
    return pair.tags.get("item_pair", pair.question)


def _together(pairs: Iterable[Pair]) -> dict[str, str]:
    """Each user's group: users are in one group if pairs of theirs mirror each other, directly or through others."""
    leader: dict[str, str] = {}

    def find(user: str) -> str:
        while leader.setdefault(user, user) != user:
            leader[user] = leader[leader[user]]
            user = leader[user]
        return user

    first: dict[str, str] = {}
    for pair in pairs:
        one = find(pair.user)
        two = find(first.setdefault(pair.tags.get("mirror") or f"\0{pair.id}", pair.user))
        leader[max(one, two)] = min(one, two)
    return {user: find(user) for user in leader}


def _drawn(pairs: Sequence[Pair], seed: int) -> tuple[Pair, ...]:
    """Return the pairs in the order of a hash that both halves of a couple share."""
    return tuple(sorted(pairs, key=lambda pair: hash_text(f"{seed}\0shot\0{pair.tags.get('mirror') or pair.id}")))


def _ordered(names: Iterable[str], seed: int, salt: str) -> list[str]:
    return sorted(names, key=lambda name: hash_text(f"{seed}\0{salt}\0{name}"))


def _judgment(pair: Pair) -> Judgment:
    return Judgment(question=pair.question, chosen=pair.chosen, rejected=pair.rejected)
