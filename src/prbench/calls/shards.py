"""Cutting open calls into shards: what shares a prefix stays together, and no worker is left without work.

All calls that show one user's posts are in one shard, or in as few as its size allows; where no user is shown, all
calls of one question are. A shard is what is handed to a worker, and what is asked again if that worker dies.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from prbench.types import AnswerView, ListView, PairView

View = AnswerView | PairView | ListView

MOST_CALLS = 512
"""Largest number of calls in one shard: local models look for shared prefixes among so many prompts at once, so more
would share no more."""
FEWEST_CALLS = 64
"""A user's calls are not cut into smaller pieces than this: each piece computes the profile again."""
SMALLEST = 16
"""Shards are filled up to so many calls, unless that leaves a worker without any: what is shared is seldom less, and
a rounded model is held against the exact one on the first of them."""
SHARDS_PER_WORKER = 8
"""Number of shards per worker: enough of them that a slow one at the end keeps no worker waiting for long."""


class Shard(NamedTuple):
    """Calls to be answered by one worker, by key."""

    number: int
    calls: tuple[tuple[str, View], ...]
    whole: bool = True
    """Whether the shard is as it was cut, answered calls aside; False for one call of a shard that was tried in vain.
    """

    def without(self, answered: "set[str]") -> "Shard":
        """The same shard with the calls that are still open."""
        return self._replace(calls=tuple(call for call in self.calls if call[0] not in answered))


def cut(calls: Mapping[str, View], workers: int, most_calls: int = MOST_CALLS) -> list[Shard]:
    """Cut calls into shards, the heaviest first: what does not fit into memory then fails at the start of a run.

    Example:
        >>> views = {f"{user}{n}": AnswerView("Tea?", "Green.", user=user) for user in "ab" for n in range(40)}
        >>> [[key[0] for key, _ in shard.calls] for shard in cut(views, workers=2)] == [["a"] * 40, ["b"] * 40]
        True
        >>> few = {user: AnswerView("Tea?", "Green.", user=user) for user in "abcd"}
        >>> len(cut(few, workers=2))  # nobody waits while another answers all
        2
    """
    fair = max(-(-len(calls) // (workers * SHARDS_PER_WORKER)), min(SMALLEST, -(-len(calls) // workers)))
    fair = min(most_calls, fair)
    filled: list[list[tuple[str, View]]] = []
    for piece in _pieces(calls, min(most_calls, max(FEWEST_CALLS, fair))):
        if filled and len(filled[-1]) + len(piece) <= fair:
            filled[-1] += piece
        else:
            filled.append(piece)
    heaviest_first = sorted(filled, key=lambda shard: -sum(_characters(view) for _, view in shard))
    return [Shard(number, tuple(shard)) for number, shard in enumerate(heaviest_first)]


def singles(calls: Sequence[tuple[str, View]], first_number: int) -> list[Shard]:
    """Every call as a shard of its own, numbered from `first_number` on."""
    return [Shard(first_number + place, (call,), whole=False) for place, call in enumerate(calls)]


def _pieces(calls: Mapping[str, View], most: int) -> Iterator[list[tuple[str, View]]]:
    """One user's or one question's calls at a time, in equal pieces where there are too many."""
    groups: dict[tuple[str | None, str], list[tuple[str, View]]] = defaultdict(list)
    for key, view in calls.items():
        groups[view.user, "" if view.user is not None else view.question].append((key, view))
    for group in groups.values():
        size = -(-len(group) // -(-len(group) // most))
        group.sort(key=lambda call: call[1].question)  # stable: a question's answers share more than its user
        yield from (group[start : start + size] for start in range(0, len(group), size))


def _characters(view: View) -> int:
    answers = (
        (view.answer,)
        if isinstance(view, AnswerView)
        else view.answers
        if isinstance(view, ListView)
        else (view.first, view.second)
    )
    shown = (view.question, *answers, *view.plan, *(post.text for post in view.posts))
    return sum(map(len, shown))
