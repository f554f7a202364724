"""Arrow arrays made from buffers, a few hundred nanoseconds a value.

`pyarrow.array` gives the same, but imports pandas where that is installed, which takes longer than a small run.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_BYTES = 2**31 - 1
"""Bytes that one array of texts can hold."""


def number_array(values: "NDArray[Any]") -> Any:
    """An array of whole numbers, or of floats in which NaN becomes null.

    Example:
        >>> number_array(np.array([1.0, np.nan])).to_pylist()
        [1.0, None]
    """
    import pyarrow as pa

    there = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), dtype=np.bool_)
    kind = pa.float64() if values.dtype.kind == "f" else pa.int64()
    data = np.ascontiguousarray(values, dtype=np.float64 if values.dtype.kind == "f" else np.int64)
    return pa.Array.from_buffers(kind, len(data), [_bitmap(there), pa.py_buffer(data)])


def text_array(values: Sequence[str | None]) -> Any:
    """An array of texts; None becomes null.

    Example:
        >>> text_array(["tea", None, "µ"]).to_pylist()
        ['tea', None, 'µ']
    """
    import pyarrow as pa

    texts = [value or "" for value in values] if None in values else values
    joined = "".join(texts)  # type: ignore[arg-type]
    data = joined.encode()
    if len(data) > _MOST_BYTES:
        half = len(values) // 2
        return pa.chunked_array([text_array(values[:half]), text_array(values[half:])])
    sizes = map(len, texts) if len(data) == len(joined) else (len(text.encode()) for text in texts)  # type: ignore
    there = None if texts is values else _bitmap(np.array([value is not None for value in values], dtype=np.bool_))
    return pa.Array.from_buffers(pa.string(), len(values), [there, _offsets(sizes, len(values)), pa.py_buffer(data)])


def texts_array(values: Sequence[Sequence[str]]) -> Any:
    """An array of lists of texts.

    Example:
        >>> texts_array([("tea", "milk"), ()]).to_pylist()
        [['tea', 'milk'], []]
    """
    import pyarrow as pa

    inside = text_array(list(chain.from_iterable(values)))
    if isinstance(inside, pa.ChunkedArray):
        half = len(values) // 2
        return pa.chunked_array([texts_array(values[:half]), texts_array(values[half:])])
    offsets = _offsets(map(len, values), len(values))
    return pa.Array.from_buffers(pa.list_(pa.string()), len(values), [None, offsets], children=[inside])


def _offsets(sizes: Iterable[int], count: int) -> Any:
    import pyarrow as pa

    offsets = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(np.fromiter(sizes, dtype=np.int32, count=count), out=offsets[1:])
    return pa.py_buffer(offsets)


def _bitmap(there: "NDArray[np.bool_]") -> Any:
    import pyarrow as pa

    return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
