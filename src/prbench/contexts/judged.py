"""Labelled pairs as a user's history: which pairs `pairs@K` shows of each user.

They are never pairs that the run scores, and never about a question that it scores for the same user. They come from
the user's other splits, or from what a limit leaves out; where a user has none of these, whole questions are set aside.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from prbench.config import digest
from prbench.types import Judgment, Pair, Post

_MOST_ASIDE = 0.5
"""Largest share of the questions that is set aside."""


def questions_aside(everything: Sequence[Pair], scored: Sequence[Pair], k: int, seed: int) -> set[str]:
    """Questions not to be scored, so that every user has some judged pairs; none where all have some already.

    They are the same for all users, so that couples of a mirrored suite stay whole.
    """
    if all(_outside(everything, scored).get(user) for user in {pair.user for pair in scored}):
        return set()
    own: dict[str, list[str]] = defaultdict(list)
    for pair in scored:
        own[pair.user].append(pair.question)
    questions = _shuffled({pair.question for pair in scored}, seed)
    aside: set[str] = set()
    for question in questions[: int(len(questions) * _MOST_ASIDE)]:
        if all(sum(one in aside for one in asked) >= k for asked in own.values()):
            break
        aside.add(question)
    return aside


def judged_pairs(
    everything: Sequence[Pair], scored: Sequence[Pair], k: int, seed: int
) -> dict[str, tuple[Judgment, ...]]:
    """Up to `k` judged pairs of each user of the scored pairs, about different questions first."""
    found: dict[str, tuple[Judgment, ...]] = {}
    for user, pairs in _outside(everything, scored).items():
        order = {name: place for place, name in enumerate(_shuffled((pair.id for pair in pairs), seed))}
        seen: dict[str, int] = defaultdict(int)
        ranked: list[tuple[int, int, Pair]] = []
        for pair in sorted(pairs, key=lambda one: order[one.id]):
            ranked.append((seen[pair.question], order[pair.id], pair))
            seen[pair.question] += 1
        first = [pair for _, _, pair in sorted(ranked, key=lambda one: one[:2])[:k]]
        found[user] = tuple(Judgment(question=p.question, chosen=p.chosen, rejected=p.rejected) for p in first)
    return found


def as_posts(judgments: Sequence[Judgment]) -> tuple[Post, ...]:
    """Judged pairs as texts, for models that read.

    Example:
        >>> print(as_posts([Judgment(question="Tea?", chosen="Green.", rejected="Black.")])[0].text)
        To the question: Tea?
        I preferred: Green.
        I did not prefer: Black.
    """
    return tuple(
        Post(
            id=f"judged/{number}",
            text=f"To the question: {one.question}\nI preferred: {one.chosen}\nI did not prefer: {one.rejected}",
            category="judged pair",
        )
        for number, one in enumerate(judgments, start=1)
    )


def known_as(user: str, judgments: Sequence[Judgment]) -> str:
    """The name under which an adaptive model knows a user by these judgments alone."""
    return f"{user}\0judged\0{digest([one.model_dump() for one in judgments])[:16]}"


def _outside(everything: Sequence[Pair], scored: Sequence[Pair]) -> Mapping[str, list[Pair]]:
    """Return the pairs of each scored user that are not scored, nor about a question scored for them."""
    ids = {pair.id for pair in scored}
    asked: dict[str, set[str]] = defaultdict(set)
    for pair in scored:
        asked[pair.user].add(pair.question)
    found: dict[str, list[Pair]] = defaultdict(list)
    for pair in everything:
        if pair.user in asked and pair.id not in ids and pair.question not in asked[pair.user]:
            found[pair.user].append(pair)
    return found


def _shuffled(names: Iterable[str], seed: int) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(f"judged\0{seed}\0{name}".encode()).digest())
