"""Labelled pairs as a user's history: which pairs `pairs@K` shows of each user.

They are never pairs that the run scores, and never about a question that it scores for the same user. They come from
the user's other splits, or from what a limit leaves out; where a user has none of these, whole questions are set aside.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from prbench.config import digest
from prbench.data import Suite
from prbench.types import Judgment, Post

_MOST_ASIDE = 0.5
"""Largest share of the questions that is set aside."""


def questions_aside(everything: Suite, scored: Suite, k: int, seed: int) -> set[str]:
    """Questions not to be scored, so that every user has some judged pairs; none where all have some already.

    They are the same for all users, so that couples of a mirrored suite stay whole.
    """
    own: dict[str, list[str]] = defaultdict(list)
    for user, question in zip(scored.column("user"), scored.column("question"), strict=True):
        own[user].append(question)
    if own.keys() <= _outside(everything, scored).keys():
        return set()
    questions = _shuffled(set(scored.column("question")), seed)
    aside: set[str] = set()
    for question in questions[: int(len(questions) * _MOST_ASIDE)]:
        if all(sum(one in aside for one in asked) >= k for asked in own.values()):
            break
        aside.add(question)
    return aside


def judged_pairs(everything: Suite, scored: Suite, k: int, seed: int) -> dict[str, tuple[Judgment, ...]]:
    """Up to `k` judged pairs of each user of the scored pairs, about different questions first."""
    ids, questions = everything.column("id"), everything.column("question")
    found: dict[str, tuple[Judgment, ...]] = {}
    for user, places in _outside(everything, scored).items():
        named = {ids[place]: place for place in places}
        seen: dict[str, int] = defaultdict(int)
        ranked: list[tuple[int, int, int]] = []
        for turn, name in enumerate(_shuffled(named, seed)):
            place = named[name]
            ranked.append((seen[questions[place]], turn, place))
            seen[questions[place]] += 1
        first = [everything[place] for _, _, place in sorted(ranked)[:k]]
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


def _outside(everything: Suite, scored: Suite) -> Mapping[str, list[int]]:
    """Return the places of each scored user's pairs that are not scored, nor about a question scored for them."""
    ids = set(scored.column("id"))
    asked: dict[str, set[str]] = defaultdict(set)
    for user, question in zip(scored.column("user"), scored.column("question"), strict=True):
        asked[user].add(question)
    found: dict[str, list[int]] = defaultdict(list)
    columns = zip(*(everything.column(name) for name in ("user", "id", "question")), strict=True)
    for place, (user, name, question) in enumerate(columns):
        if user in asked and name not in ids and question not in asked[user]:
            found[user].append(place)
    return found


def _shuffled(names: Iterable[str], seed: int) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(f"judged\0{seed}\0{name}".encode()).digest())
