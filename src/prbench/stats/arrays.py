"""Form of the numbers in this room: one-dimensional arrays of finite floats of one length.

A missing value is a status on a record and never reaches a statistic, so a NaN here is a bug of the caller and raises.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]


def as_floats(name: str, values: ArrayLike, n: int | None = None) -> Floats:
    """Read a vector of finite numbers, of length `n` where one is given.

    Example:
        >>> as_floats("credits", [1, 0.5])
        array([1. , 0.5])
    """
    floats = np.asarray(values, dtype=np.float64)
    if floats.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, not of shape {floats.shape}")
    if n is not None and len(floats) != n:
        raise ValueError(f"{name} has {len(floats)} values where {n} are needed")
    if not np.isfinite(floats).all():
        raise ValueError(f"{name} has {int((~np.isfinite(floats)).sum())} values that are not finite; drop them first")
    return floats
