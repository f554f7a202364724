"""The clustered bootstrap: draw users and questions with replacement, weigh each row by the product of its two counts.

This is the pigeonhole bootstrap of McCullagh (2000) and Owen (2007). Rows are first summed into (user, question) cells;
the sums of a block of resamples are then products of sparse matrices with the counts, in one thread: BLAS would use
all of them for products this small, and most of their time to wait. Blocks bound the memory.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from prbench.stats.arrays import Codes, Floats
from prbench.stats.clusters import Clusters, count

_BLOCK = 320_000
"""Cells times resamples of a block. It decides in which order numbers are drawn, and so every interval."""


def bootstrap_means(columns: Floats, clusters: Clusters, rng: np.random.Generator, resamples: int) -> Floats:
    """The means of several columns in each resample, drawn jointly.

    The result depends on the generator and on the rows as a set, not on their order.

    Args:
        columns: Values of shape (columns, rows).
        clusters: The labels of the rows.
        rng: Where the draws come from.
        resamples: Number of resamples to draw.

    Returns:
        Means of shape (columns, resamples); a resample that drew no row at all is left out.

    Example:
        >>> clusters = Clusters.of(users="aabb", questions="wxyz")
        >>> means = bootstrap_means(np.array([[1.0, 1.0, 0.0, 0.0]]), clusters, np.random.default_rng(0), 100)
        >>> sorted(set(means[0].tolist()))
        [0.0, 0.5, 1.0]
    """
    sums, dimensions = _cell_sums(columns, clusters)
    totals = np.concatenate(list(_totals(sums, dimensions, rng, resamples)), axis=1)
    totals = totals[:, totals[-1] > 0]
    means: Floats = totals[:-1] / totals[-1]
    return means


def _cell_sums(columns: Floats, clusters: Clusters) -> tuple[Floats, tuple[Codes, ...]]:
    """Sum the columns, and the number of rows below them, over rows that always get the same weight."""
    cells = clusters.dimensions[0] if clusters.nested else clusters.cells
    size = count(cells)
    first_row = np.unique(cells, return_index=True)[1]
    sums = [np.bincount(cells, weights=column, minlength=size) for column in columns]
    sums.append(np.bincount(cells, minlength=size).astype(np.float64))
    return np.stack(sums), tuple(codes[first_row] for codes in clusters.dimensions)


def _totals(sums: Floats, dimensions: tuple[Codes, ...], rng: np.random.Generator, resamples: int) -> Iterator[Floats]:
    """The sums of every column over the rows that each resample of a block has drawn."""
    products = _products(sums, dimensions)
    width = max(1, min(resamples, _BLOCK // max(sums.shape[1], 1)))
    for start in range(0, resamples, width):
        size = min(width, resamples - start)
        first, *second = (_multiplicities(count(codes), size, rng) for codes in dimensions)
        if second:
            yield np.stack([np.einsum("ur,ur->r", first, product @ second[0]) for product in products])
        else:
            yield np.concatenate([product @ first for product in products])


def _products(sums: Floats, dimensions: tuple[Codes, ...]) -> list[Any]:
    """Each column of cell sums as a sparse matrix: users by questions where these are crossed, else one row."""
    from scipy.sparse import csr_array

    rows = dimensions[0] if len(dimensions) == 2 else np.zeros_like(dimensions[0])
    shape = (count(rows), count(dimensions[-1]))
    return [csr_array((column, (rows, dimensions[-1])), shape=shape) for column in sums]


def _multiplicities(groups: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Draw how often each group is in each resample, shape (groups, resamples)."""
    drawn = rng.integers(0, groups, size=(resamples, groups), dtype=np.int64)
    drawn += np.arange(resamples, dtype=np.int64)[:, None] * groups
    counts = np.bincount(drawn.ravel(), minlength=resamples * groups)
    return np.ascontiguousarray(counts.reshape(resamples, groups).T, dtype=np.float64)
