"""Outcomes and records: what a model answers, and what is kept of it."""

import math
from collections.abc import Sequence
from typing import Literal

from prbench.types.pairs import Count, Frozen

Choice = Literal["first", "second", "tie"]
JurorVerdict = Literal["first", "second", "tie", "invalid"]
Status = Literal["ok", "invalid", "failed"]


class Outcome(Frozen):
    """Outcome of one model call. A failure is a status here, never a score."""

    status: Status
    score: float | None = None
    """A Rater's score, higher is better."""
    verdict: Choice | None = None
    """Verdict of a Comparer."""
    margin: float | None = None
    """A Comparer's preference for the first answer in log-odds, where it has one."""
    scores: tuple[float, ...] = ()
    """A Ranker's scores of all answers of a list, in the list's order."""
    reason: str = ""
    """Reason why the outcome is invalid (answered, but unreadable) or failed (no answer)."""
    raw: str = ""
    """The model's words, where it has any."""
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_cached: Count = 0
    """Tokens of the prompt that the provider read from its cache."""
    tokens_stored: Count = 0
    """Tokens of the prompt that the provider put into its cache."""
    latency_ms: float = 0.0
    cost_usd: float = 0.0

    @classmethod
    def scored(cls, score: float, **usage: float | str) -> "Outcome":
        """A Rater's answer; a score that is not finite is invalid.

        Example:
            >>> Outcome.scored(float("nan")).status
            'invalid'
        """
        score = float(score)
        if not math.isfinite(score):
            return cls.invalid(f"score is {score}", **usage)
        return cls.model_validate({"status": "ok", "score": score, **usage})

    @classmethod
    def judged(cls, verdict: Choice, margin: float | None = None, **usage: float | str) -> "Outcome":
        """Return the outcome of a Comparer's answer."""
        if margin is not None and not math.isfinite(margin):
            return cls.invalid(f"margin is {margin}", **usage)
        return cls.model_validate({"status": "ok", "verdict": verdict, "margin": margin, **usage})

    @classmethod
    def ranked(cls, scores: Sequence[float], **usage: float | str) -> "Outcome":
        """A Ranker's answer, one score for each answer of the list; one that is not finite makes all invalid.

        Example:
            >>> Outcome.ranked([1.0, 0.0]).scores, Outcome.ranked([1.0, float("inf")]).reason
            ((1.0, 0.0), 'score 2 is inf')
        """
        for place, score in enumerate(scores, 1):
            if not math.isfinite(score):
                return cls.invalid(f"score {place} is {score}", **usage)
        return cls.model_validate({"status": "ok", "scores": tuple(map(float, scores)), **usage})

    @classmethod
    def invalid(cls, reason: str, **usage: float | str) -> "Outcome":
        """The model answered, but not with a score, a verdict or a ranking."""
        return cls.model_validate({"status": "invalid", "reason": reason, **usage})

    @classmethod
    def failed(cls, reason: str, **usage: float | str) -> "Outcome":
        """The model did not answer. Asked again when the run is continued."""
        return cls.model_validate({"status": "failed", "reason": reason, **usage})


Order = Literal["rated", "chosen-first", "chosen-second"]


class CallUse(Frozen):
    """One model call behind a record. Records may share a call; what it took counts once."""

    key: str
    """Content hash over who was asked and what."""
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_cached: Count = 0
    latency_ms: float = 0.0
    cost_usd: float = 0.0
    cached: bool = False
    """Whether the answer was there already from an earlier run, so that nothing was spent on it in this one."""


class Record(Frozen):
    """One line of `records.jsonl`: what a model made of one pair, in one context, order and repeat."""

    pair: str
    context: str
    order: Order
    """`rated` where each answer was scored alone, else which answer the Comparer saw first."""
    repeat: Count = 0
    status: Status
    reason: str = ""
    verdict: Choice | None = None
    """`first` and `second` are positions as shown; under `rated` the chosen answer is first."""
    chosen_score: float | None = None
    rejected_score: float | None = None
    margin: float | None = None
    """Preference for the *chosen* answer, in the model's own units."""
    shown_user: str | None = None
    """User whose posts the model saw; differs from the pair's user under `other` and `opposite`."""
    posts: Count = 0
    """Number of posts that the model saw."""
    dropped: tuple[str, ...] = ()
    """Ids of posts left out because they did not fit."""
    raw: tuple[str, ...] = ()
    jurors: tuple[JurorVerdict, ...] = ()
    """Verdict of each juror of a jury, by positions as shown."""
    calls: tuple[CallUse, ...] = ()
    """The model calls behind this record; equal rendered inputs share one."""

    @property
    def slot(self) -> tuple[str, str, str, int]:
        """The place this record fills; a later record for the same slot replaces an earlier one."""
        return (self.pair, self.context, self.order, self.repeat)

    @property
    def latency_ms(self) -> float:
        """Time of all calls behind this record."""
        return sum(call.latency_ms for call in self.calls)

    @property
    def credit(self) -> float | None:
        """1 if the chosen answer won, ½ for a tie, 0 if it lost; None if there is no verdict."""
        return credit(self.status, self.verdict, self.order)

    @property
    def asked(self) -> bool:
        """Whether the model was asked for it now, so that not all of it was there from an earlier run."""
        return not self.calls or not all(call.cached for call in self.calls)


def credit(status: str, verdict: str | None, order: str) -> float | None:
    """Return the credit of a verdict: 1 if the chosen answer won, ½ for a tie, 0 if it lost; None without a verdict."""
    if status != "ok" or verdict is None:
        return None
    if verdict == "tie":
        return 0.5
    return 1.0 if verdict == ("second" if order == "chosen-second" else "first") else 0.0
