"""Readings of a chat model's reply: a verdict, a rating, a ranking or a text, or why there is none."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

from prbench.models.remote.completions import Completion
from prbench.prompts import UnreadableReply, parse_ranking, parse_rating, parse_verdict
from prbench.types import Choice, Outcome

T = TypeVar("T")
_SCHEMAS: dict[str, dict[str, Any]] = {
    "compare": {"result": {"type": "string", "enum": ["A", "B", "tie"]}},
    "rate": {"rating": {"type": "number"}},
    "rank": {"ranking": {"type": "array", "items": {"type": "integer"}}},
}


def verdict_schema(mode: str) -> dict[str, Any]:
    """A verdict after a few words of reasoning, as JSON."""
    properties = {"reasoning": {"type": "string"}, **_SCHEMAS[mode]}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def read_verdict(completion: Completion) -> Outcome:
    """A verdict on a pair, with its margin where the endpoint gives log-probabilities."""
    verdict: Choice | UnreadableReply = _parsed(completion, parse_verdict)
    if isinstance(verdict, UnreadableReply):
        return _invalid(completion, verdict)
    return Outcome.judged(verdict, _margin(completion, verdict), raw=completion.text, **completion.usage)


def _margin(completion: Completion, verdict: Choice) -> float | None:
    """Log-odds of A against B at the verdict's own token; None where the endpoint does not tell, or they contradict."""
    letter = {"first": "A", "second": "B"}.get(verdict)
    for token, rivals in reversed(completion.tokens):
        if token.strip().strip('"*`[]().') != letter or letter is None:
            continue
        odds = {name: [value for rival, value in rivals.items() if rival.strip() == name] for name in "AB"}
        if not (odds["A"] and odds["B"]):
            return None
        margin = max(odds["A"]) - max(odds["B"])
        return margin if math.isfinite(margin) and (margin > 0) == (letter == "A") else None
    return None


def read_rating(completion: Completion) -> Outcome:
    """A rating of one answer."""
    rating = _parsed(completion, parse_rating)
    if isinstance(rating, UnreadableReply):
        return _invalid(completion, rating)
    return Outcome.scored(rating, raw=completion.text, **completion.usage)


def read_ranking(completion: Completion, answers: int) -> Outcome:
    """The scores of a list of so many answers, from their order."""
    scores = _parsed(completion, lambda text: parse_ranking(text, answers))
    if isinstance(scores, UnreadableReply):
        return _invalid(completion, scores)
    return Outcome.ranked(scores, raw=completion.text, **completion.usage)


def _parsed(completion: Completion, parse: Callable[[str], T | UnreadableReply]) -> T | UnreadableReply:
    """Parse a reply unless it was cut off: the last line that came need not be the last line that was meant."""
    return UnreadableReply(completion.cut_off) if completion.finish == "length" else parse(completion.text)


def _invalid(completion: Completion, unreadable: UnreadableReply) -> Outcome:
    return Outcome.invalid(unreadable.reason, raw=completion.text, **completion.usage)


def read_text(completion: Completion) -> Outcome:
    """A text as it was written; one that was cut off says so."""
    reason = completion.cut_off if completion.finish == "length" else ""
    return Outcome.model_validate({"status": "ok", "reason": reason, "raw": completion.text, **completion.usage})
