"""The identity of a set of pairs: a hash over what they say, not over the bytes or the order in which they came."""

import hashlib
import json
from collections.abc import Iterable
from json.encoder import encode_basestring_ascii as _quoted
from typing import TYPE_CHECKING, Any, TypeAlias

from prbench.columns import ModelColumns
from prbench.types import Pair, Post

if TYPE_CHECKING:
    from numpy.typing import NDArray

Hashes: TypeAlias = "NDArray[Any]"
"""A hash of each pair, in hexadecimal digits."""
_MOST_KNOWN = 100_000
"""Distinct rubrics whose text is remembered."""
_TEXTS = ("id", "user", "question", "narrative", "category", "chosen", "rejected")


def fingerprint(pairs: Iterable[Pair]) -> str:
    """Hash the content of pairs; the same pairs from JSONL, Parquet or CSV, in any order, give the same hash.

    Example:
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")
        >>> other = pair.model_copy(update={"id": "2"})
        >>> fingerprint([pair, other]) == fingerprint([other, pair]) != fingerprint([pair])
        True
    """
    columns = ModelColumns(Pair, whole=("profile",))
    columns.extend(pairs)
    return joined_hash(hash_pairs(columns))


def hash_pairs(pairs: ModelColumns[Pair]) -> Hashes:
    """A hash over what each pair says, in hexadecimal digits."""
    import numpy as np

    profiles: dict[int, str] = {}
    rubrics: dict[Any, str] = {}
    orders: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    texts = zip(*(map(_quoted, pairs.column(name)) for name in _TEXTS), strict=True)
    others = zip(*(pairs.column(name) for name in ("profile", "rubric_aspects", "tags", "turns")), strict=True)
    found = np.empty(len(pairs), dtype="S64")
    # Written as `json.dumps` writes lists of these parts.
    for place, (said, (profile, aspects, (names, tags), turns)) in enumerate(zip(texts, others, strict=True)):
        if id(profile) not in profiles:  # the column holds the profiles, whose identity is the key
            profiles[id(profile)] = _quoted(_hash_profile(profile))
        if (rubric := rubrics.get(aspects)) is None:
            rubric = json.dumps([[aspect, *rest] for aspect, rest in aspects])
            if len(rubrics) < _MOST_KNOWN:
                rubrics[aspects] = rubric
        if names not in orders:
            orders[names] = [(_quoted(name), names.index(name)) for name in sorted(names)]
        sorted_tags = ", ".join([f"[{name}, {_quoted(tags[number])}]" for name, number in orders[names]])
        asked = f", {json.dumps([list(turn) for turn in turns])}" if turns else ""
        found[place] = hash_text(f"[[{', '.join(said)}], {profiles[id(profile)]}, {rubric}, [{sorted_tags}]{asked}]")
    return found


def joined_hash(hashes: Hashes) -> str:
    """One hash of many, whatever their order."""
    import numpy as np

    return hashlib.sha256(b"\n".join(np.sort(hashes).tolist())).hexdigest()


def hash_text(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _hash_profile(profile: tuple[Post, ...]) -> str:
    return hash_text(json.dumps([[post.id, post.text, post.category] for post in profile]))
