"""Biases of a verdict that should not depend on the length of an answer or its place in the prompt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.clusters import Clusters
from prbench.stats.estimate import Estimate
from prbench.stats.intervals import RESAMPLES, correlation_interval, mean_interval, ratio_interval

Verdict = Literal["first", "second", "tie"]


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Dependence of a model's preference on length."""

    longer_wins: Estimate
    """Share of pairs, among those whose answers differ in length, in which the longer one wins (ties ½)."""
    correlation: Estimate
    """Pearson's r of the preference with the log ratio of lengths; undefined where one of them does not vary."""


def length_bias(
    preference_for_chosen: ArrayLike,
    chosen_words: ArrayLike,
    rejected_words: ArrayLike,
    clusters: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> LengthBias:
    """Measure whether the longer answer wins.

    Args:
        preference_for_chosen: 1 where the chosen answer wins, ½ for a tie, 0 where it loses.
        chosen_words: Length of each chosen answer.
        rejected_words: Length of each rejected answer.
        clusters: Labels of the rows.
        rng: Where resampling takes its draws from.
        resamples: Number of bootstrap resamples.
        level: Confidence level.

    Example:
        >>> clusters = Clusters.of(users="aabb", questions="wxyz")
        >>> bias = length_bias([1, 0, 1, 1], [20, 10, 30, 5], [10, 20, 20, 5], clusters, np.random.default_rng(0))
        >>> bias.longer_wins.value, bias.longer_wins.n
        (1.0, 3)
    """
    preference = as_floats("preference_for_chosen", preference_for_chosen, clusters.n)
    # An answer without a word still has a finite logarithm.
    chosen = np.maximum(as_floats("chosen_words", chosen_words, clusters.n), 1)
    rejected = np.maximum(as_floats("rejected_words", rejected_words, clusters.n), 1)
    differ = chosen != rejected
    longer = np.where(chosen > rejected, preference, 1 - preference)[differ]
    return LengthBias(
        mean_interval(longer, clusters.take(differ), rng, resamples=resamples, level=level, bounds=(0.0, 1.0)),
        correlation_interval(preference, np.log(chosen / rejected), clusters, rng, resamples=resamples, level=level),
    )


@dataclass(frozen=True, slots=True)
class PositionBias:
    """Dependence of a comparer's verdict on the order in which it saw the answers."""

    flip_rate: Estimate
    """Share of the pairs with a valid verdict in both orders whose two verdicts name different answers."""
    first_preferred: Estimate
    """Share of verdicts for the first position, among those that are no tie; ½ is fair."""


def position_bias(
    chosen_first: Sequence[Verdict | None],
    chosen_second: Sequence[Verdict | None],
    clusters: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> PositionBias:
    """Measure what swapping the answers changes.

    Args:
        chosen_first: The verdict on each pair with the chosen answer shown first, None where there is no valid one.
        chosen_second: The verdict with the chosen answer shown second.
        clusters: Labels of the pairs.
        rng: Where resampling takes its draws from.
        resamples: Number of bootstrap resamples.
        level: Confidence level.

    Example:
        >>> clusters = Clusters.of(users="abcd", questions="wxyz")
        >>> one, two = ["first", "first", "second", None], ["second", "first", "tie", "first"]
        >>> bias = position_bias(one, two, clusters, np.random.default_rng(0))
        >>> round(bias.flip_rate.value, 3), bias.flip_rate.n
        (0.333, 3)
        >>> round(bias.first_preferred.value, 3), bias.first_preferred.n
        (0.667, 6)
    """
    if not len(chosen_first) == len(chosen_second) == clusters.n:
        raise ValueError(f"{len(chosen_first)} and {len(chosen_second)} verdicts for {clusters.n} pairs")
    orders = np.array([chosen_first, chosen_second], dtype=object)
    first, second, tie = orders == "first", orders == "second", orders == "tie"
    both = (first | second | tie).all(axis=0)
    # The same place named twice is two different answers.
    flipped = (first.all(axis=0) | second.all(axis=0))[both]
    return PositionBias(
        mean_interval(flipped, clusters.take(both), rng, resamples=resamples, level=level, bounds=(0.0, 1.0)),
        _share(first.sum(axis=0), (first | second).sum(axis=0), clusters, rng, resamples, level),
    )


def _share(
    part: Floats, whole: Floats, clusters: Clusters, rng: np.random.Generator, resamples: int, level: float
) -> Estimate:
    n = int(whole.sum())
    if n == 0:
        return Estimate.undefined()
    estimate = ratio_interval(part, whole, clusters, rng, resamples=resamples, level=level)
    if estimate is None or estimate.low is None or estimate.high is None:
        return Estimate(float(part.sum() / n), None, None, n)
    return replace(estimate, low=max(0.0, estimate.low), high=min(1.0, estimate.high), n=n)
