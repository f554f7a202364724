"""Statements that a correlation allows. The word "significant" is earned by the data or does not appear.

It takes a two-sided permutation p below alpha (corrected, where several were asked) *and* an interval over reward
models on the same side of nothing. A bare coefficient of six models, however high, never gets there.
"""

import math
from dataclasses import dataclass

from prbench.stats.correlation.power import models_needed
from prbench.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class CorrelationVerdict:
    """A sentence, and whether the data carry the claim."""

    significant: bool
    sentence: str


def verdict(correlation: Estimate, p: float | None, *, alpha: float = 0.05) -> CorrelationVerdict:
    """Judge one rank correlation.

    Args:
        correlation: Spearman's ρ with its interval over models.
        p: Two-sided permutation p, corrected for the number of outcomes looked at.
        alpha: The chance of a false claim that is put up with.

    Example:
        >>> found = verdict(Estimate(0.2571, -0.7, 0.9, 6), 0.66)
        >>> found.significant, "significant" in found.sentence
        (False, False)
        >>> print(found.sentence)
        ρ = 0.26 over 6 models does not show that the ranking carries over: chance alone gives as much with p = 0.66; a
        true correlation of this size would need 124 models
        >>> verdict(Estimate(0.9, 0.7, 0.98, 14), 0.0004).sentence
        'ρ = 0.90 [0.70, 0.98] over 14 models is significant (two-sided p < 0.001)'
    """
    value, models = correlation.value, correlation.n
    if value is None or p is None:
        return CorrelationVerdict(
            False, f"nothing can be said: over {models} models one of the two rankings does not vary"
        )
    least_p = 2 / math.factorial(min(models, 20))
    if least_p >= alpha:
        return CorrelationVerdict(
            False,
            f"{models} models are too few: even a perfect agreement has p = {least_p:.2f}; take at least 5",
        )
    said = f"ρ = {value:.2f}"
    if p < alpha and _one_sided_of_nothing(correlation):
        direction = "" if value > 0 else ", in the wrong direction: what the benchmark prefers does worse"
        interval = f"[{correlation.low:.2f}, {correlation.high:.2f}]"
        return CorrelationVerdict(
            True, f"{said} {interval} over {models} models is significant (two-sided p {_p(p)}){direction}"
        )
    return CorrelationVerdict(
        False, f"{said} over {models} models does not show that the ranking carries over: {_why(value, p, alpha)}"
    )


def rivalry_verdict(difference: Estimate, p: float | None, *, alpha: float = 0.05) -> CorrelationVerdict:
    """Judge whether one benchmark predicts better than another.

    Example:
        >>> rivalry_verdict(Estimate(0.2, -0.3, 0.6, 12), 0.4).sentence
        'neither is shown to predict better: difference of ρ +0.20 [-0.30, +0.60] over 12 models, p = 0.40'
    """
    if difference.value is None or p is None:
        return CorrelationVerdict(False, "nothing can be said: one of the rankings does not vary")
    interval = "" if difference.low is None else f" [{difference.low:+.2f}, {difference.high:+.2f}]"
    facts = f"difference of ρ {difference.value:+.2f}{interval} over {difference.n} models"
    if p < alpha and _one_sided_of_nothing(difference):
        better = "the benchmark predicts better" if difference.value > 0 else "the rival predicts better"
        return CorrelationVerdict(True, f"{better}: {facts} is significant (p {_p(p)})")
    return CorrelationVerdict(False, f"neither is shown to predict better: {facts}, p {_p(p)}")


def _one_sided_of_nothing(estimate: Estimate) -> bool:
    if estimate.low is None or estimate.high is None:
        return False
    return estimate.low > 0 or estimate.high < 0


def _why(value: float, p: float, alpha: float) -> str:
    if p < alpha:
        return f"p {_p(p)}, but with other models it could well be nothing (no interval excludes 0)"
    needed = models_needed(value)
    power = "" if needed is None else f"; a true correlation of this size would need {needed} models"
    return f"chance alone gives as much with p {_p(p)}{power}"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.01 else f"= {p:.2f}"
