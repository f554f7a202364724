"""Agreement of two rankings where reward models come in lineages: one method over one encoder, trained in many ways.

Models of a lineage are no independent witnesses. So whole lineages are drawn anew for intervals and p, and the
coefficient is told apart into what holds between lineages (their means) and within them (what is left).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.correlation.coefficients import Coefficient, batch, coefficient
from prbench.stats.correlation.permutation import PERMUTATIONS, permutation_test, tail
from prbench.stats.correlation.resampling import ItemScores, enclosed, resampled_scores
from prbench.stats.estimate import Estimate
from prbench.stats.intervals import RESAMPLES

LEAST_LINEAGES = 3
"""Fewest lineages that can be drawn anew."""


@dataclass(frozen=True, slots=True)
class LineageAgreement:
    """A coefficient with its uncertainty over lineages."""

    lineages: int
    value: Estimate
    """Coefficient with its percentile interval over lineages drawn whole."""
    p: float | None
    """Two-sided: twice the share of such draws that fall on the other side of 0."""
    between: float | None
    """Coefficient over the lineages' means."""
    between_p: float | None
    within: float | None
    """Coefficient over what is left of each model once its lineage's mean is taken off."""
    within_p: float | None
    """P-value of `within`, from shuffles within lineages."""


@dataclass(frozen=True, slots=True)
class LineageDifference:
    """A benchmark's coefficient less a rival's, over lineages and items drawn anew together."""

    difference: Estimate
    p: float | None


def over_lineages(
    name: Coefficient,
    benchmark: ArrayLike,
    downstream: ArrayLike,
    lineages: Sequence[str],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    permutations: int = PERMUTATIONS,
    level: float = 0.95,
) -> LineageAgreement:
    """A coefficient over models of known lineages.

    Args:
        name: Name of the coefficient.
        benchmark: Score of each model on the benchmark.
        downstream: Score of each model downstream.
        lineages: The lineage of each model.
        rng: Where draws are taken from.
        resamples: Number of bootstrap resamples.
        permutations: Number of drawn orders.
        level: Confidence level.

    Example:
        >>> x, kinds = [1, 2, 3, 4, 5, 6, 7, 8], ["a", "a", "b", "b", "c", "c", "d", "d"]
        >>> found = over_lineages("spearman", x, [2, 1, 4, 3, 6, 5, 8, 7], kinds, np.random.default_rng(0))
        >>> round(found.value.value, 2), round(found.between, 6), round(found.within, 6)
        (0.9, 1.0, -1.0)
    """
    x = as_floats("benchmark", benchmark)
    y = as_floats("downstream", downstream, len(x))
    members = _members(lineages, len(x))
    value = coefficient(name, x, y)
    drawn = _drawn(name, x[None, :], y[None, :], members, rng, resamples)
    means = [np.array([scores[places].mean() for places in members]) for scores in (x, y)]
    between = permutation_test(name, means[0], means[1], rng, permutations=permutations)
    left = [scores - _spread(members, mean) for scores, mean in zip((x, y), means, strict=True)]
    return LineageAgreement(
        lineages=len(members),
        value=enclosed(value, drawn, len(x), level),
        p=_other_side(drawn, value),
        between=coefficient(name, *means),
        between_p=between.two_sided,
        within=coefficient(name, *left),
        within_p=_within_p(name, left[0], left[1], members, rng, permutations),
    )


def difference_over_lineages(
    name: Coefficient,
    benchmark: ItemScores,
    rival: ItemScores,
    downstream: ItemScores,
    lineages: Sequence[str],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> LineageDifference:
    """Compare two benchmarks on one outcome, paired: lineages and the couples behind all three are drawn anew.

    Args:
        name: Name of the coefficient.
        benchmark: Scores of the models on the benchmark's items.
        rival: Scores on the rival's items.
        downstream: Scores on the study's items.
        lineages: The lineage of each model.
        rng: Where draws are taken from.
        resamples: Number of bootstrap resamples.
        level: Confidence level.
    """
    models = len(benchmark.scores)
    members = _members(lineages, models)
    one, two = (coefficient(name, scores.means, downstream.means) for scores in (benchmark, rival))
    if one is None or two is None:
        return LineageDifference(Estimate.undefined(models), None)
    parts = [_over_items(scores, rng, resamples, level) for scores in (benchmark, rival, downstream)]
    draws = _draws(members, rng, resamples)
    ours, theirs = (_coefficients(name, part, parts[2], draws) for part in parts[:2])
    return LineageDifference(enclosed(one - two, ours - theirs, models, level), _other_side(ours - theirs, one - two))


def _over_items(scores: ItemScores, rng: np.random.Generator, resamples: int, level: float) -> Floats:
    found = resampled_scores(scores, rng, resamples, level)
    return scores.means[None, :] if found is None else found


def _members(lineages: Sequence[str], models: int) -> list[NDArray[np.int64]]:
    if len(lineages) != models:
        raise ValueError(f"{len(lineages)} lineages for {models} models")
    found: dict[str, list[int]] = defaultdict(list)
    for place, lineage in enumerate(lineages):
        found[lineage].append(place)
    return [np.array(places, dtype=np.int64) for places in found.values()]


def _draws(members: Sequence[NDArray[np.int64]], rng: np.random.Generator, resamples: int) -> list[NDArray[np.int64]]:
    """Models of lineages drawn with replacement; draws are of different sizes, as lineages are."""
    chosen = rng.integers(0, len(members), size=(resamples, len(members)))
    return [np.concatenate([members[place] for place in row]) for row in chosen]


def _drawn(
    name: Coefficient,
    x: Floats,
    y: Floats,
    members: Sequence[NDArray[np.int64]],
    rng: np.random.Generator,
    resamples: int,
) -> Floats:
    return _coefficients(name, x, y, _draws(members, rng, resamples))


def _coefficients(name: Coefficient, x: Floats, y: Floats, draws: Sequence[NDArray[np.int64]]) -> Floats:
    """The coefficient of each draw; rows of x and y are taken in turn, or the only one every time."""
    found = np.full(len(draws), np.nan)
    by_size: dict[int, list[int]] = defaultdict(list)
    for place, models in enumerate(draws):
        by_size[len(models)].append(place)
    for places in by_size.values():
        models = np.array([draws[place] for place in places])
        rows = [np.array(places) % len(scores) for scores in (x, y)]
        one, two = (scores[row[:, None], models] for scores, row in zip((x, y), rows, strict=True))
        found[places] = batch(name, one, two)
    return found


def _spread(members: Sequence[NDArray[np.int64]], means: Floats) -> Floats:
    """Each model's lineage mean."""
    found = np.zeros(sum(map(len, members)))
    for places, mean in zip(members, means, strict=True):
        found[places] = mean
    return found


def _within_p(
    name: Coefficient,
    x: Floats,
    y: Floats,
    members: Sequence[NDArray[np.int64]],
    rng: np.random.Generator,
    permutations: int,
) -> float | None:
    observed = coefficient(name, x, y)
    if observed is None:
        return None
    orders = np.tile(np.arange(len(x)), (permutations, 1))
    for places in members:
        orders[:, places] = rng.permuted(np.tile(places, (permutations, 1)), axis=1)
    null = batch(name, x[None, :], y[orders])
    return min(1.0, 2 * min(tail(null, observed, exact=False), tail(-null, -observed, exact=False)))


def _other_side(drawn: Floats, value: float | None) -> float | None:
    """Twice the smaller share of draws beyond 0, the observed value counted too."""
    known = drawn[np.isfinite(drawn)]
    if value is None or not len(known):
        return None
    lower, upper = ((known <= 0).sum() + 1) / (len(known) + 1), ((known >= 0).sum() + 1) / (len(known) + 1)
    return float(min(1.0, 2 * min(lower, upper)))
