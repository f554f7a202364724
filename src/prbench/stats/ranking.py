"""Ranks that say only what the data say: models in groups that cannot be told apart.

A letter stands for a largest set of models no two of which differ significantly (a compact letter display), so two
models share a letter if and only if their difference is not significant.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prbench.stats.arrays import Floats, as_floats
from prbench.stats.clusters import Clusters
from prbench.stats.comparison import holm
from prbench.stats.variance import clustered_p


@dataclass(frozen=True, slots=True)
class Standing:
    """One model's place in a ranking."""

    name: str
    mean: float
    """Mean over all its own rows."""
    letters: tuple[str, ...]
    """Groups of the model: models that share one of them are not distinguishable."""
    best_rank: int
    """One more than the number of models that are significantly better."""
    worst_rank: int
    """The number of models that are not significantly worse, itself included."""


def significance_groups(
    credits: Mapping[str, Iterable[float | None]], clusters: Clusters, *, level: float = 0.05
) -> tuple[Standing, ...]:
    """Rank models, best first, with what separates them.

    Every two models are tested on the rows that both have a credit on (two-way clustered t statistic), so a model with
    few rows takes nothing from the comparison of the others. Tests are Holm-corrected over all of them. With one
    cluster, or without a common row, nothing can be tested and two models share a group.

    Args:
        credits: Per model, its credit on every row; None, in an array NaN, where it has none. A model without any
            credit is left out.
        clusters: The labels of the rows.
        level: The chance, at most, that any two equal models are told apart.

    Example:
        >>> clusters = Clusters.of(users=range(40), questions=range(40))
        >>> credits = {"good": [1] * 39 + [0], "poor": [0] * 39 + [1], "fair": [0, 1] * 20}
        >>> for model in significance_groups(credits, clusters):
        ...     print(model.name, model.mean, "".join(model.letters), model.best_rank, model.worst_rank)
        good 0.975 a 1 1
        fair 0.5 b 2 2
        poor 0.025 c 3 3
    """
    read = {name: _Row.of(name, values, clusters.n) for name, values in credits.items()}
    rows = {name: row for name, row in read.items() if row.there.any()}
    means = {name: float(row.values[row.there].mean()) for name, row in rows.items()}
    ranked = sorted(rows, key=lambda name: (-means[name], name))
    pairs = list(combinations(range(len(ranked)), 2))
    tests = [_test(rows[ranked[i]], rows[ranked[j]], clusters) for i, j in pairs]
    adjusted = holm([test.p for test in tests])
    apart = [
        (i, j) if test.difference > 0 else (j, i)
        for (i, j), test, p in zip(pairs, tests, adjusted, strict=True)
        if p < level
    ]
    letters = letter_display(len(ranked), apart) if ranked else ()
    return tuple(
        Standing(
            name,
            means[name],
            letters[position],
            best_rank=1 + sum(worse == position for _, worse in apart),
            worst_rank=len(ranked) - sum(better == position for better, _ in apart),
        )
        for position, name in enumerate(ranked)
    )


class _Row(NamedTuple):
    """A model's credits, and where it has one."""

    values: Floats
    there: NDArray[np.bool_]

    @classmethod
    def of(cls, name: str, credits: Iterable[float | None], n: int) -> "_Row":
        if isinstance(credits, np.ndarray):
            there = ~np.isnan(credits)
            return cls(as_floats(name, np.where(there, credits, 0.0), n), there)
        found = list(credits)
        values = as_floats(name, [0.0 if value is None else value for value in found], n)
        return cls(values, np.array([value is not None for value in found], dtype=np.bool_))


class _Test(NamedTuple):
    difference: float
    p: float


def _test(one: _Row, two: _Row, clusters: Clusters) -> _Test:
    """The mean difference of two models on their common rows, and the p that it is 0; 1 where it cannot be tested."""
    common = one.there & two.there
    if not common.any():
        return _Test(0.0, 1.0)
    difference = (one.values - two.values)[common]
    p = clustered_p(difference, clusters.take(common))
    return _Test(float(difference.mean()), 1.0 if p is None else p)


def letter_display(size: int, apart: Collection[tuple[int, int]]) -> tuple[tuple[str, ...], ...]:
    """Letters for items 0 … size − 1 such that two of them share one if and only if they are not listed as apart.

    Example:
        >>> letter_display(3, [(0, 2)])
        (('a',), ('a', 'b'), ('b',))
    """
    groups = {frozenset(range(size))}
    for first, second in apart:
        together = {group for group in groups if first in group and second in group}
        split = {group - {item} for group in together for item in (first, second)}
        groups = _largest((groups - together) | split)
    ordered = sorted(groups, key=sorted)
    return tuple(
        tuple(_letter(number) for number, group in enumerate(ordered) if item in group) for item in range(size)
    )


def _largest(groups: Iterable[frozenset[int]]) -> set[frozenset[int]]:
    """Return only the groups that lie in no other."""
    groups = set(groups)
    return {group for group in groups if not any(group < other for other in groups)}


def _letter(number: int) -> str:
    """Count a to z, then aa, ab and so on.

    >>> _letter(0), _letter(25), _letter(26)
    ('a', 'z', 'aa')
    """
    head, tail = divmod(number, 26)
    return (_letter(head - 1) if head else "") + chr(ord("a") + tail)
