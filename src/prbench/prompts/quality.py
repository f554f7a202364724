"""Reads the reply to `quality.jinja`: three ratings in the last three lines, or a reason why there are none.

Read: `Factuality: 8`, `Relevance: 7/10`, `Helpfulness: 9`, in this order, with or without emphasis or bullets. Refused:
fewer or more lines, another order, numbers off the scale, ranges, words, and any text after the last line.
"""

from typing import NamedTuple

from prbench.prompts._reply import UnreadableReply, find_result, reply_lines
from prbench.prompts.rating import agreed_rating

__all__ = ["HIGHEST", "LOWEST", "Quality", "UnreadableReply", "parse_quality"]

LOWEST, HIGHEST = 1, 10


class Quality(NamedTuple):
    """Ratings of an answer's general quality, for no particular user, 1 to 10 each."""

    factuality: float
    relevance: float
    helpfulness: float


def parse_quality(text: str) -> Quality | UnreadableReply:
    r"""Read the three ratings of an answer's general quality.

    Example:
        >>> parse_quality("Sound advice.\nFactuality: 9\nRelevance: 8/10\n**Helpfulness:** 7")
        Quality(factuality=9.0, relevance=8.0, helpfulness=7.0)
        >>> parse_quality("Fine.\nFactuality: 9\nHelpfulness: 7")
        UnreadableReply(reason="factuality: the last line is not a factuality line: 'Fine'")
    """
    lines = reply_lines(text)
    if isinstance(lines, UnreadableReply):
        return lines
    ratings: list[float] = []
    for back, dimension in zip(range(len(Quality._fields) - 1, -1, -1), Quality._fields, strict=True):
        result = find_result("\n".join(lines[: max(len(lines) - back, 0)]), dimension, bare=False)
        rating = result if isinstance(result, UnreadableReply) else agreed_rating(result, LOWEST, HIGHEST)
        if isinstance(rating, UnreadableReply):
            return UnreadableReply(f"{dimension}: {rating.reason}")
        ratings.append(rating)
    return Quality(*ratings)
