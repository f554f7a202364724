"""Best-of-k from N scored candidates, exactly: what the pick of a reward model is worth, averaged over all subsets.

With candidates sorted by the reward model's score (the proxy), the one of rank i is the best of a random k-subset with
probability C(i − 1, k − 1) / C(N, k); ties share theirs. Nothing is resampled, the order in which candidates were drawn
does not matter, and k above N gives no number: the item is left out and counted (the paper's scripts take the first k
samples and repeat k = N beyond).
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.clusters import Clusters
from prbench.stats.estimate import Estimate
from prbench.stats.intervals import RESAMPLES, Range, difference_interval, mean_interval

_DIGITS = 9
"""Digits of a mean that count; what differs less differs by rounding."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The answers to one user's question: what a reward model made of each, and what each is truly worth.

    None stands for what could not be scored or judged; such a candidate is invalid and reduces N for this item.
    """

    user: str
    """User who asks, or on mirrored suites the couple: the unit that is independent of the others."""
    question: str
    proxy: Sequence[float | None]
    true: Sequence[float | None]

    def valid(self) -> tuple[Floats, Floats]:
        """Proxy and true scores of the candidates that have both.

        Example:
            >>> proxy, true = Candidates("ann", "tea", [0.1, None, 0.3], [2, 1, None]).valid()
            >>> proxy.tolist(), true.tolist()
            ([0.1], [2.0])
        """
        pairs = zip(self.proxy, self.true, strict=True)
        both = [(proxy, true) for proxy, true in pairs if proxy is not None and true is not None]
        return as_floats("proxy", [proxy for proxy, _ in both]), as_floats("true", [true for _, true in both])


@dataclass(frozen=True, slots=True)
class BestOf:
    """One point of a best-of-k curve: means over the items that have at least k valid candidates."""

    k: int
    true: Estimate
    """True score of the pick."""
    proxy: Estimate
    """The reward model's own score of its pick; together with `true` the over-optimisation curve."""
    random: Estimate
    """True score of a random candidate of the same items: what any k gives without a reward model."""
    oracle: Estimate
    """True score of the pick by the true score itself."""
    regret: Estimate
    """Regret of the pick: oracle − true."""
    gain: Estimate
    """Gain of the pick: true − random."""
    dropped: int
    """Items with fewer than k valid candidates."""


@dataclass(frozen=True, slots=True)
class UserGain:
    """Effect of selection for one user."""

    user: str
    gain: float
    """Mean over the user's items of the true score of the pick − that of a random candidate."""
    items: int


@dataclass(frozen=True, slots=True)
class OverOptimisation:
    """Whether more selection makes answers worse: the true score at the largest k against its peak."""

    peak_k: int
    last_k: int
    drop: Estimate
    """True score at the peak − at the last k, over the items that reach the last k. The peak is chosen from the same
    data, so the value is never negative and a drop whose interval touches 0 is none."""


def selection_probabilities(proxy: ArrayLike, k: int) -> Floats:
    """Return the probability that each candidate is the best of a random k-subset; ties share it equally.

    Example:
        >>> selection_probabilities([0.3, 0.9, 0.1, 0.9], 2).round(4).tolist()
        [0.1667, 0.4167, 0.0, 0.4167]
    """
    scores = as_floats("proxy", proxy)
    _check_k(k, len(scores))
    order = np.argsort(scores, kind="stable")
    probabilities = np.empty_like(scores)
    probabilities[order] = _averaged_over_ties(_rank_probabilities(len(scores), k), scores[order])
    return probabilities


def expected_best_of(proxy: ArrayLike, true: ArrayLike, k: int) -> float:
    """The expected true score of the candidate with the highest proxy score among k drawn without replacement.

    Example:
        >>> expected_best_of([1, 2, 3], [0.0, 0.5, 1.0], 2)
        0.8333333333333333
        >>> expected_best_of([1, 2, 3], [0.0, 0.5, 1.0], 4)
        Traceback (most recent call last):
            ...
        ValueError: best of 4 needs 4 candidates, there are 3
    """
    scores = as_floats("proxy", proxy)
    return float(selection_probabilities(scores, k) @ as_floats("true", true, len(scores)))


def best_of_curve(
    items: Sequence[Candidates],
    ks: Sequence[int],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    bounds: Range | None = None,
) -> tuple[BestOf, ...]:
    """Best-of-k over many items, with random and oracle lines, regret and gain, all with clustered intervals.

    Args:
        items: The candidates of every (user, question).
        ks: How many candidates to choose among; where no item has that many, all estimates are undefined.
        rng: Where resampling takes its draws from.
        resamples: Number of bootstrap resamples.
        level: Confidence level.
        bounds: The values a true score can have, to clip the intervals to.

    Example:
        >>> items = [Candidates(user, "tea", [1, 2, 3], [0, 1, 2]) for user in "abc"]
        >>> points = best_of_curve(items, [1, 3, 4], np.random.default_rng(0))
        >>> [(point.k, point.true.value, point.random.value, point.dropped) for point in points]
        [(1, 1.0, 1.0, 0), (3, 2.0, 1.0, 0), (4, None, None, 3)]
    """
    scored = [item.valid() for item in items]
    clip = _line_bounds(bounds)
    points = []
    for k in ks:
        kept = [index for index, (proxy, _) in enumerate(scored) if len(proxy) >= k]
        lines = _lines([scored[index] for index in kept], k)
        clusters = Clusters.of([items[index].user for index in kept], [items[index].question for index in kept])
        estimates = {
            name: mean_interval(values, clusters, rng, resamples=resamples, level=level, bounds=clip.get(name))
            for name, values in lines.items()
        }
        points.append(BestOf(k=k, dropped=len(items) - len(kept), **estimates))
    return tuple(points)


def user_gains(items: Sequence[Candidates], k: int) -> tuple[UserGain, ...]:
    """Return the gain of best-of-k over a random candidate for each user, worst first.

    Example:
        >>> user_gains([Candidates("ann", "tea", [1, 2], [0, 1]), Candidates("bob", "tea", [1, 2], [1, 0])], 2)
        (UserGain(user='bob', gain=-0.5, items=1), UserGain(user='ann', gain=0.5, items=1))
    """
    gains: dict[str, list[float]] = defaultdict(list)
    for item in items:
        proxy, true = item.valid()
        if len(proxy) >= k:
            gains[item.user].append(expected_best_of(proxy, true, k) - float(true.mean()))
    found = [UserGain(user, math.fsum(values) / len(values), len(values)) for user, values in gains.items()]
    return tuple(sorted(found, key=lambda gain: (gain.gain, gain.user)))


def over_optimisation(
    items: Sequence[Candidates],
    ks: Sequence[int],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> OverOptimisation | None:
    """Compare the true score at its peak with that at the largest k that any item reaches; None where none does.

    Example:
        >>> items = [Candidates(user, "tea", [1, 2, 3], [1, 2, 0]) for user in "abc"]
        >>> found = over_optimisation(items, [1, 2, 3], np.random.default_rng(0))
        >>> found.peak_k, found.last_k, found.drop.value
        (1, 3, 1.0)
    """
    scored = [item.valid() for item in items]
    reached = sorted(k for k in set(ks) if any(len(proxy) >= k for proxy, _ in scored))
    if not reached:
        return None
    last = reached[-1]
    kept = [index for index, (proxy, _) in enumerate(scored) if len(proxy) >= last]
    curve = {k: _lines([scored[index] for index in kept], k)["true"] for k in reached}
    peak = max(reached, key=lambda k: (round(float(curve[k].mean()), _DIGITS), -k))
    clusters = Clusters.of([items[index].user for index in kept], [items[index].question for index in kept])
    drop = difference_interval(curve[peak], curve[last], clusters, rng, resamples=resamples, level=level, bounds=None)
    return OverOptimisation(peak, last, _without_dust(drop))


def best_of_divergence(k: int) -> float:
    """Return the divergence of best-of-k from its policy: log k − (k − 1)/k nats, an upper bound of the KL divergence.

    Example:
        >>> round(best_of_divergence(16), 3)
        1.835
    """
    return math.log(k) - (k - 1) / k


def _lines(scored: Sequence[tuple[Floats, Floats]], k: int) -> dict[str, Floats]:
    """Per item, the value of every line at k."""
    picked = [selection_probabilities(proxy, k) for proxy, _ in scored]
    true = np.array([p @ true for p, (_, true) in zip(picked, scored, strict=True)], dtype=np.float64)
    proxy = np.array([p @ proxy for p, (proxy, _) in zip(picked, scored, strict=True)], dtype=np.float64)
    random = np.array([true.mean() for _, true in scored], dtype=np.float64)
    oracle = np.array([expected_best_of(true, true, k) for _, true in scored], dtype=np.float64)
    return {
        "true": true,
        "proxy": proxy,
        "random": random,
        "oracle": oracle,
        "regret": oracle - true,
        "gain": true - random,
    }


def _line_bounds(bounds: Range | None) -> dict[str, Range]:
    """Return the range of each line where true scores have bounds; the proxy has its own scale."""
    if bounds is None:
        return {}
    width = bounds[1] - bounds[0]
    return {"true": bounds, "random": bounds, "oracle": bounds, "regret": (0.0, width), "gain": (-width, width)}


@lru_cache(maxsize=256)
def _rank_probabilities(n: int, k: int) -> Floats:
    """C(i − 1, k − 1) / C(n, k) for i = 1 … n, without ever forming a binomial coefficient.

    The chance that all k lie among the i lowest, F(i) = C(i, k) / C(n, k), follows from F(n) = 1 by
    F(i − 1) = F(i) (i − k) / i, and rank i is the best with F(i) k / i: products only, so nothing cancels.
    """
    ranks = np.arange(1.0, n + 1)
    below = np.ones(n)
    factors = np.maximum(ranks[1:] - k, 0.0) / ranks[1:]
    below[:-1] = np.cumprod(factors[::-1])[::-1]
    probabilities: Floats = below * k / ranks
    probabilities.setflags(write=False)  # shared by all callers
    return probabilities


def _averaged_over_ties(values: Floats, ordered: Floats) -> Floats:
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    group = np.cumsum(starts) - 1
    averaged: Floats = (np.bincount(group, weights=values) / np.bincount(group))[group]
    return averaged


def _without_dust(found: Estimate) -> Estimate:
    """Set to 0 what adding up floats leaves: it is no drop, and has no sign."""

    def tidy(value: float | None) -> float | None:
        return 0.0 if value is not None and abs(value) < 10.0**-_DIGITS else value

    return Estimate(tidy(found.value), tidy(found.low), tidy(found.high), found.n)


def _check_k(k: int, n: int) -> None:
    if k < 1:
        raise ValueError(f"best of {k}: k starts at 1")
    if k > n:
        raise ValueError(f"best of {k} needs {k} candidates, there are {n}")
