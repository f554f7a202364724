"""The identity of a set of pairs: a hash over what they say, not over the bytes or the order in which they came."""

import hashlib
import json
from collections.abc import Iterable

from prbench.types import Pair, Post


def fingerprint(pairs: Iterable[Pair]) -> str:
    """Hash the content of pairs; the same pairs from JSONL, Parquet or CSV, in any order, give the same hash.

    Example:
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")
        >>> other = pair.model_copy(update={"id": "2"})
        >>> fingerprint([pair, other]) == fingerprint([other, pair]) != fingerprint([pair])
        True
    """
    profiles: dict[int, str] = {}
    kept = list(pairs)  # holds the profiles, whose identity is the key, until the end
    return hash_text("\n".join(sorted(_hash_pair(pair, profiles) for pair in kept)))


def hash_text(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _hash_pair(pair: Pair, profiles: dict[int, str]) -> str:
    key = id(pair.profile)
    if key not in profiles:
        profiles[key] = _hash_profile(pair.profile)
    aspects = [[aspect.aspect, aspect.evidence, aspect.reason] for aspect in pair.rubric_aspects]
    texts = [pair.id, pair.user, pair.question, pair.narrative, pair.category, pair.chosen, pair.rejected]
    turns = [[list(turn) for turn in pair.turns]] if pair.turns else []
    return hash_text(json.dumps([texts, profiles[key], aspects, sorted(pair.tags.items()), *turns]))


def _hash_profile(profile: tuple[Post, ...]) -> str:
    return hash_text(json.dumps([[post.id, post.text, post.category] for post in profile]))
