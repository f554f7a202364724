"""Agreement of annotators beyond chance: Krippendorff's α and Fleiss' κ, both computed by NLTK.

Fleiss' κ is NLTK's multi-π (Artstein & Poesio 2008): it asks only how often each label was given to each unit, so the
raters of a unit are numbered anew, and units may be rated by different people. Intervals come from the jackknife over
pairs, since NLTK gives none. Where all labels are equal there is nothing to correct for chance: undefined, not 1.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from prbench.errors import MissingExtraError
from prbench.stats import Estimate

GROUPS = 20
"""Largest number of parts that are left out one by one for an interval."""
_FEWEST_GROUPS = 5


class Label(NamedTuple):
    """Label that one rater gave to one unit."""

    rater: Hashable
    unit: str
    label: str | int
    pair: str
    """Pair that the unit belongs to: units of one pair are left out together."""


Coefficient = Callable[[Sequence[Label]], float | None]


def krippendorff_nominal(labels: Sequence[Label]) -> float | None:
    """α of labels without an order; None where it is undefined.

    Example:
        >>> marks = [Label(rater, str(unit), label, str(unit)) for unit, row in enumerate(["aa", "bb", "ab"])
        ...          for rater, label in enumerate(row)]
        >>> round(krippendorff_nominal(marks), 3)
        0.444
    """
    kept = _shared(labels)
    if not _varies(kept):
        return None
    return float(_task(kept, lambda a, b: float(a != b)).alpha())


def krippendorff_ordinal(labels: Sequence[Label]) -> float | None:
    """α of ratings on a scale, by Krippendorff's ordinal distance; None where it is undefined."""
    kept = _shared(labels)
    if not _varies(kept):
        return None
    counts = Counter(int(label.label) for label in kept)

    def distance(a: int, b: int) -> float:
        low, high = min(a, b), max(a, b)
        between = sum(counts[value] for value in range(low, high + 1))
        return (between - (counts[low] + counts[high]) / 2) ** 2

    return float(_task(kept, distance).alpha())


def fleiss(labels: Sequence[Label]) -> float | None:
    """κ over the units with the most common number of raters; None where it is undefined."""
    kept = _equally_rated(labels)
    if not _varies(kept):
        return None
    return float(_task(kept, lambda a, b: float(a != b)).pi())


def with_interval(coefficient: Coefficient, labels: Sequence[Label], *, level: float = 0.95) -> Estimate:
    """A coefficient with its jackknife interval; `n` counts the units that it rests on.

    Too few pairs, or one part without which the coefficient is undefined: no interval.
    """
    from scipy.special import stdtrit

    value = coefficient(labels)
    n = len({label.unit for label in (_equally_rated(labels) if coefficient is fleiss else _shared(labels))})
    if value is None:
        return Estimate.undefined(n)
    pairs = sorted({label.pair for label in _shared(labels)})
    groups = min(GROUPS, len(pairs))
    if groups < _FEWEST_GROUPS:
        return Estimate(value, None, None, n)
    group_of = {pair: number % groups for number, pair in enumerate(pairs)}
    without = [coefficient([label for label in labels if group_of.get(label.pair) != group]) for group in range(groups)]
    if any(found is None for found in without):
        return Estimate(value, None, None, n)
    spread = np.array(without, dtype=np.float64)
    error = float(np.sqrt((groups - 1) / groups * np.square(spread - spread.mean()).sum()))
    reach = float(stdtrit(groups - 1, 0.5 + level / 2)) * error
    return Estimate(value, max(-1.0, value - reach), min(1.0, value + reach), n)


def _shared(labels: Sequence[Label]) -> list[Label]:
    """Labels of units that at least two raters labelled."""
    raters = Counter(label.unit for label in labels)
    return [label for label in labels if raters[label.unit] > 1]


def _equally_rated(labels: Sequence[Label]) -> list[Label]:
    """Units with one number of raters, the number that keeps most labels; raters numbered within each unit."""
    sizes = Counter(label.unit for label in labels)
    kept = Counter(size for size in sizes.values() if size > 1)
    if not kept:
        return []
    size = max(kept, key=lambda raters: (raters * kept[raters], raters))
    places: Counter[str] = Counter()
    found = []
    for label in labels:
        if sizes[label.unit] == size:
            found.append(label._replace(rater=places[label.unit]))
            places[label.unit] += 1
    return found


def _varies(labels: Sequence[Label]) -> bool:
    return len({label.label for label in labels}) > 1


def _task(labels: Sequence[Label], distance: Callable[..., float]):  # type: ignore[no-untyped-def]  # noqa: ANN202
    try:
        from nltk.metrics.agreement import AnnotationTask
    except ImportError as error:
        raise MissingExtraError("agreement between annotators", "annotate") from error
    return AnnotationTask([(label.rater, label.unit, label.label) for label in labels], distance=distance)
