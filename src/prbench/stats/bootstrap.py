"""The clustered bootstrap: draw users and questions with replacement, weigh each row by the product of its two counts.

This is the pigeonhole bootstrap of McCullagh (2000) and Owen (2007). Rows are first summed into (user, question) cells;
the sums of a block of resamples are then one matrix product. Blocks bound the memory, whatever the number of rows.
"""

from collections.abc import Iterator

import numpy as np

from prbench.stats.arrays import Codes, Floats
from prbench.stats.clusters import Clusters, count

_BLOCK = 320_000  # weights held at once: small enough for the processor's cache, where this is fastest


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
    blocks = [sums @ weights for weights in _weights(dimensions, rng, resamples)]
    totals = np.concatenate(blocks, axis=1)
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


def _weights(dimensions: tuple[Codes, ...], rng: np.random.Generator, resamples: int) -> Iterator[Floats]:
    cells = len(dimensions[0])
    width = max(1, min(resamples, _BLOCK // max(cells, 1)))
    for start in range(0, resamples, width):
        size = min(width, resamples - start)
        weights = _multiplicities(count(dimensions[0]), size, rng)[dimensions[0]]
        for codes in dimensions[1:]:
            weights *= _multiplicities(count(codes), size, rng)[codes]
        yield weights


def _multiplicities(groups: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Draw how often each group is in each resample, shape (groups, resamples)."""
    drawn = rng.integers(0, groups, size=(resamples, groups), dtype=np.int64)
    drawn += np.arange(resamples, dtype=np.int64)[:, None] * groups
    counts = np.bincount(drawn.ravel(), minlength=resamples * groups)
    return np.ascontiguousarray(counts.reshape(resamples, groups).T, dtype=np.float64)
