"""Everyday posts among a user's own: what `diluted@K` adds to a profile.

A post is silent if no rubric of its author's pairs names it as evidence. The silent posts that dilute a user's
history depend on the seed and on the couple (or the user, where users come alone), never on the pair: posts that
were chosen for being silent on what decides this pair would give it away. So both halves of a couple, and all their
pairs, get the same posts at the same places. They come from other people of the same split, and fewer of them are
always among more.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from prbench.errors import ContextError
from prbench.types import Pair, Post

_SEPARATOR = re.compile(r"[,;\s]+")

Pool = Mapping[str, Sequence[tuple[str, Post]]]
"""Silent posts of each split, with the unit (couple or user) of their author."""


def silent_posts(pairs: Iterable[Pair]) -> Pool:
    """The posts of each split that are evidence of nothing; none of users whose rubrics name no posts.

    Example:
        >>> from prbench.types import Aspect
        >>> posts = (Post(id="p1", text="I love it short."), Post(id="p2", text="The bus was late."))
        >>> aspect = Aspect(aspect="Short", evidence="p1")
        >>> pair = Pair(
        ...     id="1", user="ann", question="Tea?", profile=posts, rubric_aspects=(aspect,), chosen="A", rejected="B"
        ... )
        >>> [(unit, post.id) for unit, post in silent_posts([pair])[""]]
        [('ann', 'p2')]
    """
    authors: dict[tuple[str, str], Pair] = {}
    shown: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        authors.setdefault((pair.tags.get("split", ""), pair.user), pair)
        for aspect in pair.rubric_aspects:
            shown[pair.user].update(_SEPARATOR.split(aspect.evidence))
    pool: dict[str, list[tuple[str, Post]]] = defaultdict(list)
    for (split, user), pair in authors.items():
        if any(post.id in shown[user] for post in pair.profile):
            pool[split] += [(unit_of(pair), post) for post in pair.profile if post.id not in shown[user]]
    return pool


def unit_of(pair: Pair) -> str:
    """Return the unit that must be treated alike: the couple where users come in couples, else the user."""
    return pair.tags.get("couple", pair.user)


def dilute(pair: Pair, k: int, pool: Pool, seed: int) -> tuple[Post, ...]:
    """The user's own posts in their order, with K silent posts of others between them.

    Raises:
        ContextError: If the split has fewer such posts.
    """
    split, unit = pair.tags.get("split", ""), unit_of(pair)
    others = [post for author, post in pool.get(split, ()) if author != unit]
    if len(others) < k:
        raise ContextError(
            f"context 'diluted@{k}' needs {k} posts of other users that show nothing, and split {split!r} has "
            f"{len(others)} of them for {pair.user!r}",
            hint="take a smaller K; a post shows nothing where rubrics name others as evidence, as in `mirror`",
        )
    added = sorted(others, key=lambda post: _draw(seed, unit, post.id))[:k]
    # Each added post has its own draw of a gap, and they stand in the order of these draws: neither changes when others
    # join, or with the number of own posts.
    gaps: dict[int, list[Post]] = defaultdict(list)
    for draw, post in sorted(((_draw(seed, unit, "gap", post.id), post) for post in added), key=lambda pair: pair[0]):
        gaps[draw * (len(pair.profile) + 1) >> 64].append(post)
    found: list[Post] = []
    for place in range(len(pair.profile) + 1):
        found += gaps[place]
        found += pair.profile[place : place + 1]
    return tuple(found)


def _draw(seed: int, *words: str) -> int:
    return int.from_bytes(hashlib.sha256("\x00".join((str(seed), *words)).encode()).digest()[:8], "big")
