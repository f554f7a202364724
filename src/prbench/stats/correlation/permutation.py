"""Permutation test of a coefficient against chance: all orders of up to 8 models, drawn orders beyond."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations as all_orders

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.correlation.coefficients import Coefficient, batch, chance_level, defined

EXACT_UP_TO = 8
"""Models; 8! = 40,320 orders are looked at one by one."""

PERMUTATIONS = 10_000

ROUNDING = 1e-9
"""Two coefficients closer than this are equal: the same number reached by sums in another order."""


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """An observed coefficient against its distribution over random orders."""

    one_sided: float | None
    """Share of orders that agree at least as well; None where the coefficient is undefined."""
    two_sided: float | None
    """Twice the smaller tail, at most 1: for coefficients whose chance level is not 0 as well."""
    exact: bool
    orders: int
    chance: float
    """Mean over all orders: in closed form, or over those looked at where only some models change places."""
    chance_high: float | None
    """Value that 95 % of orders do not exceed."""


def permutation_test(
    name: Coefficient,
    benchmark: ArrayLike,
    downstream: ArrayLike,
    rng: np.random.Generator,
    *,
    permutations: int = PERMUTATIONS,
    among: Sequence[int] | None = None,
) -> PermutationTest:
    """Test one coefficient by shuffling which downstream score belongs to which model.

    Args:
        name: Name of the coefficient.
        benchmark: Score of each model on the benchmark.
        downstream: Score of each model downstream.
        rng: Where orders are drawn from, beyond 8 models.
        permutations: Number of orders that are drawn.
        among: The models whose scores change hands; the others keep theirs. For models that are tied by construction:
            no chance could have parted them, so orders in which they part are no part of what chance does.

    Example:
        >>> found = permutation_test("spearman", [6, 5, 4, 3, 2, 1], [6, 2, 4, 3, 1, 5], np.random.default_rng(0))
        >>> round(found.one_sided, 2), found.exact, found.orders
        (0.33, True, 720)
    """
    x = as_floats("benchmark", benchmark)
    y = as_floats("downstream", downstream, len(x))
    observed = defined(float(batch(name, x[None, :], y[None, :])[0]))
    moving = np.arange(len(x)) if among is None else np.array(among, dtype=np.int64)
    exact = len(moving) <= EXACT_UP_TO
    moved = moving[_every_order(len(moving)) if exact else _drawn_orders(len(moving), rng, permutations)]
    orders = np.tile(np.arange(len(x)), (len(moved), 1))
    orders[:, moving] = moved
    null = batch(name, x[None, :], y[orders])
    chance = chance_level(name, len(x)) if among is None else float(np.nanmean(null)) if observed is not None else 0.0
    if observed is None:
        return PermutationTest(None, None, exact, len(orders), chance, None)
    upper, lower = (tail(null, observed, exact), tail(-null, -observed, exact))
    high = float(np.quantile(null, 0.95))
    return PermutationTest(upper, min(1.0, 2 * min(upper, lower)), exact, len(orders), chance, high)


def tail(null: Floats, observed: float, exact: bool) -> float:
    """The share of a null distribution that reaches the observed value; drawn orders count the observed one too.

    Example:
        >>> tail(np.array([0.1, 0.2, 0.3, 0.4]), 0.3, exact=True), tail(np.array([0.1, 0.2, 0.3]), 0.5, exact=False)
        (0.5, 0.25)
    """
    reached = int((null >= observed - ROUNDING).sum())
    return reached / len(null) if exact else (reached + 1) / (len(null) + 1)


@lru_cache(maxsize=EXACT_UP_TO)
def _every_order(models: int) -> NDArray[np.int64]:
    orders = np.array(list(all_orders(range(models))), dtype=np.int64).reshape(-1, models)
    orders.setflags(write=False)
    return orders


def _drawn_orders(models: int, rng: np.random.Generator, permutations: int) -> NDArray[np.int64]:
    return rng.permuted(np.tile(np.arange(models, dtype=np.int64), (permutations, 1)), axis=1)
