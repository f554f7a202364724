"""Needs for plans: each distinct user, question and profile once, with the aspects that the user truly has.

The true aspects are the scoring standard. They are used here to measure plans and to teach a planner on the training
split; a planner never sees those of the question it plans for.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from prbench.config import digest
from prbench.types import Pair


class Need(NamedTuple):
    """One question of one user."""

    id: str
    """Content hash of question and posts, the same for every planner: plans are found by it."""
    pair: Pair
    """One of the pairs that have it."""
    aspects: tuple[str, ...]
    """All that this user is known to expect here: the aspects of all pairs with this question, each once."""

    @property
    def unit(self) -> str:
        """Unit that is independent of the others: the couple where users come in couples, else the user."""
        return self.pair.tags.get("couple", self.pair.user)


def need_id(pair: Pair) -> str:
    """Content hash of what a planner is shown of a pair.

    Example:
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")
        >>> need_id(pair) == need_id(pair.model_copy(update={"id": "2", "chosen": "White."}))
        True
    """
    return digest([pair.question, [post.text for post in pair.profile]])[:32]


def needs_of(pairs: Iterable[Pair], everything: Iterable[Pair] | None = None) -> list[Need]:
    """The needs of some pairs, in order; `everything` says what a user expects also where `pairs` are a sample of it.

    Example:
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")
        >>> [need.pair.id for need in needs_of([pair, pair.model_copy(update={"id": "2"})])]
        ['1']
    """
    pairs = list(pairs)
    aspects: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for pair in pairs if everything is None else everything:
        aspects[pair.user, need_id(pair)].update((one.aspect, None) for one in pair.rubric_aspects)
    first: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        first.setdefault((pair.user, need_id(pair)), pair)
    return [Need(need, pair, tuple(aspects[user, need])) for (user, need), pair in first.items()]


def limited(needs: Sequence[Need], most: int | None, seed: int) -> list[Need]:
    """Return at most so many needs, a seeded sample in the suite's order; whole questions, so that users compare.

    A smaller limit takes a part of what a larger one takes under the same seed.
    """
    if most is None or most >= len(needs):
        return list(needs)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, need in enumerate(needs):
        groups[need.unit, need.pair.question].append(place)
    kept: set[int] = set()
    for key in sorted(groups, key=lambda key: digest([seed, *key])):
        kept.update(groups[key][: most - len(kept)])
    return [need for place, need in enumerate(needs) if place in kept]
