"""The few array moves that every step of a build is made of: groups of equal keys, ranks and pairs inside them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]


class PairIndices(NamedTuple):
    """Positions of the first and the second member of each pair."""

    first: Indices
    second: Indices


def starts_group(*sorted_keys: Indices) -> Flags:
    """Return where a new combination of keys begins, in rows that are sorted by them.

    Example:
        >>> starts_group(np.array([3, 3, 5])).tolist()
        [True, False, True]
    """
    new = np.ones(len(sorted_keys[0]), dtype=np.bool_)
    if len(new):
        new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in sorted_keys])
    return new


def rank_within(*sorted_keys: Indices) -> Indices:
    """The place of each row in its group, from 0, in rows that are sorted by the keys.

    Example:
        >>> rank_within(np.array([3, 3, 5])).tolist()
        [0, 1, 0]
    """
    new = starts_group(*sorted_keys)
    positions = np.arange(len(new), dtype=np.int64)
    return positions - np.maximum.accumulate(np.where(new, positions, 0))


def pairs_within(*sorted_keys: Indices) -> PairIndices:
    """Every pair of rows that stand in the same group, in rows that are sorted by the keys.

    Example:
        >>> first, second = pairs_within(np.array([3, 3, 3, 5]))
        >>> list(zip(first.tolist(), second.tolist()))
        [(0, 1), (0, 2), (1, 2)]
    """
    new = starts_group(*sorted_keys)
    sizes = np.diff(np.append(np.flatnonzero(new), len(new)))
    later = np.repeat(sizes, sizes) - 1 - rank_within(*sorted_keys)  # how many rows of the group follow each row
    first = np.repeat(np.arange(len(new), dtype=np.int64), later)
    begin = np.repeat(np.cumsum(later) - later, later)
    return PairIndices(first, first + 1 + np.arange(len(first), dtype=np.int64) - begin)


def stage(seed: int, number: int) -> np.random.Generator:
    """The random numbers of one step, so that a change in one step leaves the others alone."""
    return np.random.default_rng((seed % 2**64, number))
