"""The one factory of pairs: a test names the fields that it is about."""

from typing import Any

from prbench.types import Pair

_ORDINARY: dict[str, Any] = {"user": "ann", "question": "Tea?", "chosen": "Green.", "rejected": "Black."}


def make_pair(id: str = "1", **fields: Any) -> Pair:  # the field's name
    """A pair of Ann's about tea, with these fields instead."""
    return Pair(id=id, **{**_ORDINARY, **fields})
