"""Choice of the waiting items that make the next batch: those that share the most, within what a batch may cost.

Candidates for one question share user, posts and question, which a causal model then computes once; questions of one
user share the posts. So a batch is filled user by user and question by question, in the order in which the first of
each stands in the queue. The item that stands first is always among them; what would make the batch last too long for
those who come after is left for a later one, and so are candidates of whom so few would fit that what they share costs
more than their answers.
"""

import math
from collections.abc import Hashable, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

from prbench.serve.items import ScoreItem
from prbench.types import Post


class Waiting(NamedTuple):
    """An item in the queue: with whom it shares a prompt, and what it adds, in characters or in seconds."""

    user: Hashable
    """Equal where the same posts are shown."""
    question: Hashable
    own: float = 0
    """Cost of the answer."""
    shared: float = 0
    """Cost of question and posts: computed once for all candidates of a question."""
    answer: Hashable = None
    """Key that is equal for equal answers."""


class Load(NamedTuple):
    """Cost of items together: what they share is counted once."""

    own: float
    shared: float


def next_batch(waiting: Sequence[Waiting], most: int, budget: float = math.inf) -> list[int]:
    """The places of at most `most` items in the order of the queue, that cost at most `budget` together.

    A question's candidates are left together for the next batch, rather than cut, once a batch is half full. An item
    that is over the budget by itself is taken when it stands first, with candidates whose answers cost no more than
    what they share with it.

    Example:
        >>> next_batch([Waiting(*one) for one in [("ann", 1), ("bob", 2), ("ann", 1), ("eve", 2), ("ann", 3)]], most=4)
        [0, 2, 4, 1]
        >>> next_batch([Waiting("ann", 1, own=10), Waiting("bob", 2, own=900), Waiting("eve", 3, own=10)], 4, 100)
        [0, 2]
    """
    if not waiting:
        return []
    left = max(budget, waiting[0].own + 2.0 * waiting[0].shared)
    users: dict[Hashable, dict[Hashable, list[int]]] = {}
    for place, one in enumerate(waiting):
        users.setdefault(one.user, {}).setdefault(one.question, []).append(place)
    taken: list[int] = []
    for questions in users.values():
        for places in questions.values():
            room = most - len(taken)
            if len(places) > room and 2 * len(taken) >= most:
                continue
            shared = waiting[places[0]].shared
            fitting = _fitting([waiting[place].own for place in places[:room]], left - shared)
            answers = sum(waiting[place].own for place in places[:fitting])
            if not fitting or (taken and fitting < min(room, len(places)) and answers < shared):
                continue
            left -= shared + answers
            taken += places[:fitting]
    return taken


def _fitting(costs: Sequence[float], left: float) -> int:
    """Return how many of these, from the first, cost no more than is left."""
    return sum(1 for _ in takewhile(lambda total: total <= left, accumulate(costs)))


def shown_length(posts: Sequence[Post], most: int | None = None) -> int:
    """Characters of the posts that are shown where at most so many are: as many of average length.

    Example:
        >>> shown_length([Post(id="1", text="Tea."), Post(id="2", text="Coffee, black.")], most=1)
        9
    """
    total = sum(len(post.text) for post in posts)
    return total if most is None or len(posts) <= most else total * most // len(posts)


def waiting_of(item: ScoreItem, most_posts: int | None = None) -> Waiting:
    """Return the cost of an item by what it brings along, in characters.

    Args:
        item: Item to be scored.
        most_posts: The most posts that are shown of a user, where not all are.
    """
    texts = tuple(post.text for post in item.posts or ())
    brought = shown_length(item.posts or (), most_posts) + sum(map(len, item.plan))
    person = hash((item.user, item.posts is None, texts, item.plan))
    return Waiting(person, item.question, len(item.answer) + 1, len(item.question) + brought, hash(item.answer))


def load_of(waiting: Sequence[Waiting]) -> Load:
    """Return the cost of items together.

    Example:
        >>> load_of([Waiting("ann", "Tea?", 10, 100), Waiting("ann", "Tea?", 20, 100), Waiting("bob", "Tea?", 5, 50)])
        Load(own=35, shared=150)
    """
    shared = {(one.user, one.question): one.shared for one in waiting}
    return Load(sum(one.own for one in waiting), sum(shared.values()))
