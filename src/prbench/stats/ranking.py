"""Ranks that say only what the data say: models in groups that cannot be told apart.

A letter stands for a largest set of models no two of which differ significantly (a compact letter display), so two
models share a letter if and only if their difference is not significant.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from numpy.typing import ArrayLike

from prbench.stats.arrays import as_floats
from prbench.stats.clusters import Clusters
from prbench.stats.comparison import holm
from prbench.stats.variance import clustered_p


@dataclass(frozen=True, slots=True)
class Standing:
    """One model's place in a ranking."""

    name: str
    mean: float
    letters: tuple[str, ...]
    """Its groups: models that share one of them are not distinguishable."""
    best_rank: int
    """One more than the number of models that are significantly better."""
    worst_rank: int
    """The number of models that are not significantly worse, itself included."""


def significance_groups(
    credits: Mapping[str, ArrayLike], clusters: Clusters, *, level: float = 0.05
) -> tuple[Standing, ...]:
    """Rank models on the same pairs, best first, with what separates them.

    All pairs of models are tested (two-way clustered t statistic), Holm-corrected over all of them. With one cluster
    nothing can be tested and all models share a group.

    Args:
        credits: Per model, its credit on every row.
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
    if clusters.n == 0:
        return ()
    rows = {name: as_floats(name, values, clusters.n) for name, values in credits.items()}
    means = {name: float(values.mean()) for name, values in rows.items()}
    ranked = sorted(rows, key=lambda name: (-means[name], name))
    pairs = list(combinations(range(len(ranked)), 2))
    p_values = [clustered_p(rows[ranked[i]] - rows[ranked[j]], clusters) for i, j in pairs]
    adjusted = holm([1.0 if p is None else p for p in p_values])
    apart = [pair for pair, p in zip(pairs, adjusted, strict=True) if p < level]
    letters = letter_display(len(ranked), apart)
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
    """Only the groups that lie in no other."""
    groups = set(groups)
    return {group for group in groups if not any(group < other for other in groups)}


def _letter(number: int) -> str:
    """Count a to z, then aa, ab and so on.

    >>> _letter(0), _letter(25), _letter(26)
    ('a', 'z', 'aa')
    """
    head, tail = divmod(number, 26)
    return (_letter(head - 1) if head else "") + chr(ord("a") + tail)
