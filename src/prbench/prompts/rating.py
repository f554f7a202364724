"""Reads the reply to `rate.jinja`: one number on the scale that was asked for, or a reason why there is none.

Read: a last line `Rating: 7`, `Rating: 7.5` or `Rating: 7/10`, with or without emphasis, brackets or a final full
stop; or a reply that is nothing but such a value. Refused: numbers off the scale, another scale than the one asked for,
ranges, lists (`[2,2,2]` is not a rating), and any number in prose.
"""

import re

from prbench.prompts._reply import ReplyResult, UnreadableReply, excerpt, find_result

__all__ = ["UnreadableReply", "parse_rating"]

_NUMBER = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"
_RATING = re.compile(rf"(-?){_NUMBER}(?:\s?(?:/|out of)\s?{_NUMBER})?", re.IGNORECASE)


def parse_rating(text: str, low: float = 1, high: float = 10) -> float | UnreadableReply:
    r"""Read a rating from `low` to `high`.

    Example:
        >>> parse_rating("Fits well.\nRating: 7/10")
        7.0
        >>> parse_rating("Rating: 11")
        UnreadableReply(reason='the rating 11 is not between 1 and 10')
    """
    result = find_result(text, "rating")
    return result if isinstance(result, UnreadableReply) else agreed_rating(result, low, high)


def agreed_rating(result: ReplyResult, low: float, high: float) -> float | UnreadableReply:
    """The number that all lines of a result give."""
    ratings: set[float] = set()
    for value in result.values:
        rating = _number(value, low, high)
        if isinstance(rating, UnreadableReply):
            return rating
        ratings.add(rating)
    if len(ratings) > 1:
        return UnreadableReply("the rating lines contradict each other")
    return ratings.pop()


def _number(value: str, low: float, high: float) -> float | UnreadableReply:
    match = _RATING.fullmatch(value)
    if match is None:
        return UnreadableReply(f"the rating is not one number: {excerpt(value)}")
    sign, number, scale = match.groups()
    if scale is not None and float(scale) != high:
        return UnreadableReply(f"the rating {value} is not on a scale up to {high:g}")
    rating = -float(number) if sign else float(number)
    if not low <= rating <= high:
        return UnreadableReply(f"the rating {sign}{number} is not between {low:g} and {high:g}")
    return rating
