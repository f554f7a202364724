"""Fails, partial, wins: the rule that a scorecard judges by, written once, as code and as the sentences beside it."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from pydantic import Field

from prbench.stats import Estimate
from prbench.types import Frozen

Verdict = Literal["fails", "partial", "wins"]


class RuleEvidence(NamedTuple):
    """Evidence that the rule looks at; an estimate that is absent proves nothing."""

    personalized: Estimate | None
    """Accuracy with the user shown, on all pairs."""
    seen_axes: Estimate | None
    """The same on the axes of preference that occur in training; None where the suite does not tell them apart."""
    specificity: Estimate | None
    coverage: Estimate | None
    generic: Estimate | None
    best_generic: float | None
    """The best generic accuracy on the scorecard."""
    without_verdict: float


class RuledVerdict(NamedTuple):
    """A verdict, and what keeps it from being a better one."""

    verdict: Verdict
    misses: tuple[str, ...]


class Rule(Frozen):
    """Thresholds of the verdict.

    Example:
        >>> print(Rule().sentences()[1])
        wins: partial, and accuracy on seen axes ≥ 89.0 %, personas covered ≥ 85.0 %, generic accuracy at most 3.0
        points below the best row, at most 5.0 % of pairs without a verdict.
    """

    accuracy: float = Field(default=0.89, ge=0, le=1)
    coverage: float = Field(default=0.85, ge=0, le=1)
    generic_slack: float = Field(default=0.03, ge=0, le=1)
    without_verdict: float = Field(default=0.05, ge=0, le=1)
    chance: float = Field(default=0.5, ge=0, le=1)

    def judge(self, evidence: RuleEvidence) -> RuledVerdict:
        """Apply the rule to one model."""
        if misses := tuple(self._to_be_partial(evidence)):
            return RuledVerdict("fails", misses)
        if misses := tuple(self._to_win(evidence)):
            return RuledVerdict("partial", misses)
        return RuledVerdict("wins", ())

    def sentences(self) -> tuple[str, ...]:
        """The rule in words."""
        return (
            f"partial: the interval of personalized accuracy lies above {_percent(self.chance)}, "
            "and that of specificity above 0.",
            f"wins: partial, and accuracy on seen axes ≥ {_percent(self.accuracy)}, "
            f"personas covered ≥ {_percent(self.coverage)}, generic accuracy at most {_points(self.generic_slack)} "
            f"points below the best row, at most {_percent(self.without_verdict)} of pairs without a verdict.",
            "fails: everything else. A row that leaks has no verdict.",
        )

    def _to_be_partial(self, evidence: RuleEvidence) -> Iterator[str]:
        if not _above(evidence.personalized, self.chance):
            yield f"personalized accuracy is not clearly above {_percent(self.chance)}"
        if not _above(evidence.specificity, 0.0):
            yield "specificity is not clearly above 0"

    def _to_win(self, evidence: RuleEvidence) -> Iterator[str]:
        accuracy = _value(evidence.seen_axes or evidence.personalized)
        if accuracy is None or accuracy < self.accuracy:
            yield f"accuracy {_percent(accuracy)} < {_percent(self.accuracy)}"
        covered = _value(evidence.coverage)
        if covered is None or covered < self.coverage:
            yield f"personas covered {_percent(covered)} < {_percent(self.coverage)}"
        generic, best = _value(evidence.generic), evidence.best_generic
        if generic is None or best is None:
            yield "no generic accuracy"
        elif round(best - generic, 9) > self.generic_slack:  # 0.91 − 0.88 is a hair more than 0.03 in binary
            yield f"generic accuracy {_points(best - generic)} points below the best"
        if evidence.without_verdict > self.without_verdict:
            yield f"{_percent(evidence.without_verdict)} of pairs without a verdict"


def _above(estimate: Estimate | None, bound: float) -> bool:
    return estimate is not None and estimate.low is not None and estimate.low > bound


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _points(share: float) -> str:
    return f"{100 * share:.1f}"
