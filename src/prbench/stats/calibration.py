"""Whether a model's probabilities mean what they say."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.bootstrap import bootstrap_means
from prbench.stats.clusters import Clusters
from prbench.stats.estimate import Estimate
from prbench.stats.intervals import RESAMPLES, mean_interval, percentiles

_BINS = 10


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Pairs of similar confidence, one point of a reliability chart."""

    confidence: float
    """Mean probability of the answer that the model prefers."""
    accuracy: float
    """Share of pairs in which that answer is the chosen one; ½ where the model prefers neither."""
    n: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Distance between confidence and accuracy."""

    ece: Estimate
    """Expected calibration error over ten bins of equal width on [½, 1]."""
    brier: Estimate
    """Mean squared distance of the chosen answer's probability from 1."""
    bins: tuple[CalibrationBin, ...]
    """Bins from low to high confidence; empty bins are left out."""


def calibration(
    probability_of_chosen: ArrayLike,
    clusters: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Calibration:
    """Compare a model's confidence with how often it is right.

    Example:
        >>> clusters = Clusters.of(users="aabb", questions="wxyz")
        >>> result = calibration([0.9, 0.9, 0.9, 0.1], clusters, np.random.default_rng(0))
        >>> [(round(bin.confidence, 3), bin.accuracy, bin.n) for bin in result.bins]
        [(0.9, 0.75, 4)]
        >>> round(result.ece.value, 3), round(result.brier.value, 3)
        (0.15, 0.21)
    """
    chosen = as_floats("probability_of_chosen", probability_of_chosen, clusters.n)
    if ((chosen < 0) | (chosen > 1)).any():
        raise ValueError("probabilities must lie in [0, 1]")
    confidence = np.maximum(chosen, 1 - chosen)
    correct = (1 + np.sign(chosen - 0.5)) / 2
    edges = np.linspace(0.5, 1.0, _BINS + 1)
    inside = np.searchsorted(edges[1:-1], confidence, side="right") == np.arange(_BINS)[:, None]
    return Calibration(
        ece=_ece(inside * (confidence - correct), clusters, rng, resamples, level),
        brier=mean_interval((1 - chosen) ** 2, clusters, rng, resamples=resamples, level=level, bounds=(0.0, 1.0)),
        bins=tuple(
            CalibrationBin(float(confidence[rows].mean()), float(correct[rows].mean()), int(rows.sum()))
            for rows in inside
            if rows.any()
        ),
    )


def _ece(gaps: Floats, clusters: Clusters, rng: np.random.Generator, resamples: int, level: float) -> Estimate:
    """Return the error from the gap of every row, laid out by bin; the interval is shifted by the bias."""
    if clusters.n == 0:
        return Estimate.undefined()
    value = float(np.abs(gaps.mean(axis=1)).sum())
    if clusters.units < 2:
        return Estimate(value, None, None, clusters.n)
    resampled = np.abs(bootstrap_means(gaps, clusters, rng, resamples)).sum(axis=0)
    # A sum of absolute values only grows with noise, so resamples lie above the value by about as much as it does above
    # the truth.
    low, high = percentiles(resampled - (resampled.mean() - value), level)
    return Estimate(value, max(0.0, min(low, value)), min(1.0, max(high, value)), clusters.n)
