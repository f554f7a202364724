r"""Reads the reply to `rank.jinja`: every answer of the list once, best first, or a reason why there is no ranking.

Read: a last line `Ranking: 3 > 1 > 2`, with `=` between answers that are equally good, with or without emphasis,
brackets, a final full stop or the word "Answer"; commas in place of all signs; a JSON object with a list under
`ranking` at the end; or a short reply that is nothing but a ranking. Refused: a ranking that leaves an answer out,
names one twice or names one that was not shown, signs that point the other way, commas beside signs, every guess.
"""

import re
from itertools import pairwise

from prbench.prompts._reply import UnreadableReply, excerpt, find_result

__all__ = ["UnreadableReply", "parse_ranking"]

_SIGN = re.compile(r"\s*([>=,])\s*")
_ANSWER = re.compile(r"[\[(]?\s*(?:(?:answer|response|option)\s+)?#?([0-9]{1,4})\s*[\])]?", re.IGNORECASE)


def parse_ranking(text: str, answers: int) -> tuple[float, ...] | UnreadableReply:
    r"""Read a ranking of so many answers as one score for each: the share of the others that it beats, a tie being ½.

    Example:
        >>> parse_ranking("The second is brief.\nRanking: 2 > 1 = 3", 3)
        (0.25, 1.0, 0.25)
        >>> parse_ranking("Ranking: 2 > 1", 3)
        UnreadableReply(reason='the ranking leaves out answer 3')
    """
    result = find_result(text, "ranking")
    if isinstance(result, UnreadableReply):
        return result
    rankings: set[tuple[float, ...]] = set()
    for value in result.values:
        scores = _scores(value, answers)
        if isinstance(scores, UnreadableReply):
            return scores
        rankings.add(scores)
    return UnreadableReply("the ranking lines contradict each other") if len(rankings) > 1 else rankings.pop()


def _scores(value: str, answers: int) -> tuple[float, ...] | UnreadableReply:
    groups = _groups(value)
    if isinstance(groups, UnreadableReply):
        return groups
    seen: set[int] = set()
    for number in (number for group in groups for number in group):
        if not 1 <= number <= answers:
            return UnreadableReply(f"the ranking names answer {number}, and {answers} were shown")
        if number in seen:
            return UnreadableReply(f"the ranking names answer {number} twice")
        seen.add(number)
    if missing := sorted(set(range(1, answers + 1)) - seen):
        return UnreadableReply(f"the ranking leaves out answer {missing[0]}")
    scores: dict[int, float] = {}
    below = answers
    for group in groups:
        below -= len(group)
        scores |= dict.fromkeys(group, (below + (len(group) - 1) / 2) / max(answers - 1, 1))
    return tuple(scores[number] for number in range(1, answers + 1))


def _groups(value: str) -> list[list[int]] | UnreadableReply:
    """The answers from best to worst; equal ones together."""
    parts = _SIGN.split(value)
    named, signs = [_ANSWER.fullmatch(part) for part in parts[::2]], parts[1::2]
    if None in named or ("," in signs and set(signs) != {","}):
        return UnreadableReply(f"the ranking is not a list of answers from best to worst: {excerpt(value)}")
    numbers = [int(match[1]) for match in named if match is not None]
    groups = [[numbers[0]]]
    for (_, number), sign in zip(pairwise(numbers), signs, strict=True):
        if sign == "=":
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups
