"""Power of a correlation study by simulation: the chance to see a true relation, given spread, error and lineages.

Reward models have a true score; the benchmark measures it with an error, downstream use follows it with a true
correlation and is measured with an error of its own. Models of one lineage share a part of their true score. The
printed chance is that of a two-sided permutation p below the level, with the relation in the right direction.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prbench.stats.correlation.lineages import over_lineages

Floats = NDArray[np.float64]


class Design(NamedTuple):
    """A study as it could be run; spreads and errors in points of accuracy, or of gain."""

    models: int
    spread: float
    """Standard deviation of the models' true accuracy."""
    benchmark_error: float
    """Standard error of one measured accuracy."""
    gain_spread: float
    """Standard deviation of the models' true gains downstream."""
    gain_error: float
    """Standard error of one measured gain."""
    lineages: int | None = None
    """Groups of models that share half of the variance of their score; None: all independent."""


class Power(NamedTuple):
    """Findings to expect of a study of one design."""

    power: float
    """Share of studies with p below the level in the right direction."""
    mean: float
    """Mean of the rank correlation that they would print."""
    low: float
    high: float
    """Upper end of the middle 90 % of it; `low` is the lower end."""


def simulated_power(
    design: Design, true: float, rng: np.random.Generator, *, studies: int = 2000, level: float = 0.05
) -> Power:
    """Simulate studies of one design under a true correlation.

    Args:
        design: Design of the studies.
        true: Correlation of the true scores with the true gains.
        rng: Where draws are taken from.
        studies: Number of studies that are simulated.
        level: Level of the two-sided test.

    Example:
        >>> wide = Design(24, spread=12, benchmark_error=1.5, gain_spread=12, gain_error=2)
        >>> narrow = Design(24, spread=3, benchmark_error=3, gain_spread=3, gain_error=5)
        >>> rng = np.random.default_rng(0)
        >>> simulated_power(wide, 0.9, rng, studies=200).power > simulated_power(narrow, 0.9, rng, studies=200).power
        True
    """
    if not -1 <= true <= 1:
        raise ValueError(f"a correlation of {true} is not between -1 and 1")
    if design.models < 4:
        raise ValueError(f"{design.models} models are too few to rank")
    scores = _scores(design, rng, studies)
    own = rng.standard_normal((studies, design.models))
    gains = true * scores + math.sqrt(1 - true**2) * own
    measured = design.spread * scores + design.benchmark_error * rng.standard_normal(scores.shape)
    found = design.gain_spread * gains + design.gain_error * rng.standard_normal(scores.shape)
    rho = _spearman(measured, found)
    needed = _critical(design.models, level, rng)
    low, high = np.quantile(rho, [0.05, 0.95])
    return Power(float((rho >= needed).mean()), float(rho.mean()), float(low), float(high))


def lineage_power(
    design: Design, true: float, rng: np.random.Generator, *, studies: int = 200, level: float = 0.05
) -> float:
    """The chance that such a relation is seen where lineages are drawn whole, and share half of what is left as well.

    Args:
        design: What is run, with its lineages.
        true: Correlation of the true scores with the true gains.
        rng: Where draws are taken from.
        studies: Number of studies that are simulated.
        level: Level of the two-sided p.
    """
    kinds = [str(place % (design.lineages or design.models)) for place in range(design.models)]
    scores, left = _scores(design, rng, studies), _scores(design, rng, studies)
    gains = true * scores + math.sqrt(1 - true**2) * left
    measured = design.spread * scores + design.benchmark_error * rng.standard_normal(scores.shape)
    found = design.gain_spread * gains + design.gain_error * rng.standard_normal(scores.shape)
    seen = 0
    for x, y in zip(measured, found, strict=True):
        told = over_lineages("spearman", x, y, kinds, rng, resamples=400, permutations=100)
        seen += told.p is not None and told.p < level and (told.value.value or 0.0) > 0
    return seen / studies


def _scores(design: Design, rng: np.random.Generator, studies: int) -> Floats:
    own = rng.standard_normal((studies, design.models))
    if design.lineages is None:
        return own
    shared = rng.standard_normal((studies, design.lineages))
    lineage = np.arange(design.models) % design.lineages
    return math.sqrt(0.5) * (own + shared[:, lineage])


def _spearman(one: Floats, two: Floats) -> Floats:
    ranks = [values.argsort(axis=1).argsort(axis=1).astype(float) for values in (one, two)]
    centred = [rank - rank.mean(axis=1, keepdims=True) for rank in ranks]
    sizes = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.asarray((centred[0] * centred[1]).sum(axis=1) / sizes, dtype=np.float64)


def _critical(models: int, level: float, rng: np.random.Generator, draws: int = 20_000) -> float:
    """The rank correlation that chance alone reaches in half the level of studies."""
    noise = rng.standard_normal((2, draws, models))
    return float(np.quantile(_spearman(noise[0], noise[1]), 1 - level / 2))
