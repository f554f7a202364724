"""Data inside a page: columns of numbers and pools of texts, in blocks that the browser unpacks when it needs them.

A block is gzip over parts laid end to end, written in base64 into a `<script>` of a type that no browser runs. Numeric
parts start on multiples of 8 bytes, so that the page can lay a typed array over them without copying; equal parts are
stored once. Base64 and an escaped index hold no `<`: whatever a pair says, it cannot end its block.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

_TYPES = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "f32": np.float32}
_ALIGN = 8
CHUNK_CHARACTERS = 400_000
"""Approximate number of characters that are unpacked at once to show a single pair."""

Array = NDArray[Any]
Part = tuple[str, int, int]
"""Type, first byte, number of bytes."""


class Block(NamedTuple):
    """A packed block: where its parts lie, and its bytes."""

    id: str
    parts: Mapping[str, Part]
    packed: bytes

    def to_html(self) -> Markup:
        """The element that carries it."""
        text = base64.b64encode(self.packed).decode()
        return Markup('<script type="application/vnd.prbench+gzip" id="{}">{}</script>\n').format(self.id, text)


class BlockWriter:
    """Collects parts and packs them.

    Example:
        >>> writer = BlockWriter("numbers")
        >>> writer.array("cups", np.array([1, 2], dtype=np.uint8))
        >>> writer.json("names", ["<ann>", "bob"])
        >>> read_block(writer.pack())["names"]
        ['<ann>', 'bob']
    """

    def __init__(self, id: str) -> None:
        self._id = id
        self._parts: dict[str, Part] = {}
        self._places: dict[tuple[str, bytes], int] = {}
        self._bytes = bytearray()

    def array(self, name: str, values: Array) -> None:
        """Add a column of numbers, of one of the types that a page knows."""
        kind = next((key for key, dtype in _TYPES.items() if values.dtype == dtype), None)
        if kind is None:
            raise TypeError(f"column {name!r} is of type {values.dtype}, not one of {', '.join(_TYPES)}")
        self._add(name, kind, values.astype(values.dtype.newbyteorder("<")).tobytes())

    def json(self, name: str, value: Any) -> None:
        """Add anything that JSON can say."""
        self._add(name, "json", json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    def pack(self) -> Block:
        """Compress what was collected; the same parts give the same bytes."""
        return Block(self._id, self._parts, gzip.compress(bytes(self._bytes), compresslevel=6, mtime=0))

    def _add(self, name: str, kind: str, data: bytes) -> None:
        if name in self._parts:
            raise ValueError(f"block {self._id!r} has a part {name!r} already")
        if (kind, data) not in self._places:
            self._bytes.extend(bytes(-len(self._bytes) % _ALIGN))
            self._places[kind, data] = len(self._bytes)
            self._bytes.extend(data)
        self._parts[name] = (kind, self._places[kind, data], len(data))


def read_block(block: Block) -> dict[str, Any]:
    """Unpack a block as the page does."""
    data = gzip.decompress(block.packed)
    found: dict[str, Any] = {}
    for name, (kind, start, size) in block.parts.items():
        raw = data[start : start + size]
        found[name] = json.loads(raw) if kind == "json" else np.frombuffer(raw, dtype=_TYPES[kind])
    return found


class TextPool:
    """Texts, each kept once, found by number; number 0 is the empty text.

    Example:
        >>> pool = TextPool("answers")
        >>> pool.add("tea"), pool.add("milk"), pool.add("tea"), pool.add("")
        (1, 2, 1, 0)
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self._numbers: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        """The number of a text, new or known."""
        return self._numbers.setdefault(text, len(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def longest(self) -> int:
        """Characters of the longest text."""
        return max(map(len, self._numbers))

    def blocks(self, longest: int | None = None) -> list[Block]:
        """The texts in blocks of bearable size, each at most so long; one that was cut ends in `…`."""
        blocks, chunk, size, first = [], [], 0, 0
        for text in self._numbers:
            kept = text if longest is None or len(text) <= longest else text[:longest] + "…"
            chunk.append(kept)
            size += len(kept)
            if size >= CHUNK_CHARACTERS:
                blocks.append(self._block(first, chunk))
                first, chunk, size = first + len(chunk), [], 0
        return [*blocks, self._block(first, chunk)] if chunk else blocks

    def _block(self, first: int, texts: Sequence[str]) -> Block:
        writer = BlockWriter(f"{self.id}-{first}")
        writer.json("texts", texts)
        return writer.pack()


def smallest(values: Iterable[int]) -> Array:
    """Whole numbers from 0 on, in the smallest type that holds them.

    Example:
        >>> smallest([0, 255]).dtype.name, smallest([256]).dtype.name
        ('uint8', 'uint16')
    """
    column = np.fromiter(values, dtype=np.int64)
    top = int(column.max(initial=0))
    if column.min(initial=0) < 0 or top > np.iinfo(np.uint32).max:
        raise ValueError(f"values from {column.min(initial=0)} to {top} do not fit")
    return column.astype(next(kind for kind in (np.uint8, np.uint16, np.uint32) if top <= np.iinfo(kind).max))


def floats(values: Iterable[float | None]) -> Array:
    """Scores in single precision, NaN where there is none; those beyond its range end at its bounds.

    Example:
        >>> floats([0.5, None])
        array([0.5, nan], dtype=float32)
    """
    column = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    largest = float(np.finfo(np.float32).max)
    return column.clip(-largest, largest).astype(np.float32)


def index_html(index: Mapping[str, Any]) -> Markup:
    """Return what the page must know before it unpacks anything, as an inert element.

    Example:
        >>> "</script><b>" in index_html({"a": "</script><b>"})
        False
    """
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup('<script type="application/json" id="index">{}</script>\n').format(Markup(text))  # noqa: S704
