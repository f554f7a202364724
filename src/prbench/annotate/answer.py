"""Answer of an annotator about one pair, and its reading from a form: whole, or not at all."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from pydantic import Field

from prbench.types import Frozen

DIMENSIONS = ("factuality", "relevance", "helpfulness")
"""Dimensions that the paper's human check rates in each answer, blind to who asked."""
SCALE = (1, 2, 3, 4, 5)
MAX_REASON = 2_000

Preference = Literal["first", "second", "unsure"]
Position = Literal["first", "second"]
PLACES: tuple[Position, ...] = ("first", "second")
Form = Mapping[str, Sequence[str]]
"""The fields of a form; a field may stand more than once."""


class Scores(Frozen):
    """General quality of one answer, from 1 (poor) to 5 (excellent)."""

    factuality: int = Field(ge=1, le=5)
    relevance: int = Field(ge=1, le=5)
    helpfulness: int = Field(ge=1, le=5)


class AnnotatorAnswer(Frozen):
    """Answer of an annotator about one pair; places are as shown, not as labelled.

    Example:
        >>> AnnotatorAnswer(preference="first").first is None
        True
    """

    preference: Preference
    first: Scores | None = None
    second: Scores | None = None
    """Scores are asked for in mode `pairs` only."""
    reason: str = Field(default="", max_length=MAX_REASON)


def read_answer(form: Form, *, scored: bool) -> AnnotatorAnswer | list[str]:
    """Read a form; what is missing comes back as a list of field names, and nothing is guessed.

    Args:
        form: The fields, as a browser sends them.
        scored: Whether each answer must be rated.

    Example:
        >>> read_answer({"preference": ["second"]}, scored=False).preference
        'second'
        >>> read_answer({"preference": ["third"]}, scored=False)
        ['preference']
    """
    missing = [] if _one(form, "preference") in get_args(Preference) else ["preference"]
    names = [f"{place}_{dimension}" for place in PLACES for dimension in DIMENSIONS] if scored else []
    missing = [name for name in names if _one(form, name) not in map(str, SCALE)] + missing
    if missing:
        return missing
    scores = {
        place: {dimension: int(_one(form, f"{place}_{dimension}")) for dimension in DIMENSIONS} if scored else None
        for place in PLACES
    }
    reason = clean(_one(form, "reason"))[:MAX_REASON]
    return AnnotatorAnswer.model_validate({"preference": _one(form, "preference"), "reason": reason, **scores})


def clean(text: str) -> str:
    r"""A text as a person meant it: plain line ends, no control characters, nothing around it.

    Example:
        >>> clean(" one\r\ntwo\x00 ")
        'one\ntwo'
    """
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text.replace("\r\n", "\n")).strip()


def _one(form: Form, name: str) -> str:
    values = form.get(name, ())
    return values[0] if len(values) == 1 else ""
