"""Vectors of distinct texts, each computed once per encoder and kept as a memory-mapped array.

Two files in a folder named after the encoder: `vectors.f32` (rows) and `keys.bin` (the hash of each row's text). Rows
are appended, keys after them, so a crash leaves at most rows without a key, and those are written again.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from prbench.config import cache_folder

Vectors = npt.NDArray[np.float32]
_KEY_BYTES = 16


class Encoder(Protocol):
    """Maps texts to vectors, one row each."""

    @property
    def name(self) -> str:
        """Which encoder, with its revision."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed each text."""
        ...


class FeatureStore:
    """An encoder whose vectors outlive the process.

    Args:
        encoder: Computes what is not there yet.
        folder: Where vectors are kept; default: under the cache folder, by the encoder's name.

    Example:
        >>> import tempfile
        >>> class Length:
        ...     name = "length"
        ...     def encode(self, texts):
        ...         return np.array([[len(text)] for text in texts], dtype=np.float32)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(Length(), Path(folder)).encode(["tea", "green tea", "tea"]).tolist()
        [[3.0], [9.0], [3.0]]
    """

    def __init__(self, encoder: Encoder, folder: Path | None = None) -> None:
        self.encoder = encoder
        digest = hashlib.sha256(encoder.name.encode()).hexdigest()[:16]
        self.folder = folder or cache_folder() / "features" / digest
        self._rows: dict[bytes, int] = {}
        self._read = 0
        self._table: Vectors | None = None

    @property
    def name(self) -> str:
        """Which encoder, with its revision."""
        return self.encoder.name

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vector of each text, from the store where it is there."""
        keys = [_key(text) for text in texts]
        if any(key not in self._rows for key in keys):
            self._add(dict(zip(keys, texts, strict=True)))
        if self._table is None:
            return np.zeros((0, 0), dtype=np.float32)
        return np.asarray(self._table[[self._rows[key] for key in keys]])

    def _add(self, texts: dict[bytes, str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / "lock"):
            self._refresh()
            missing = {key: text for key, text in texts.items() if key not in self._rows}
            if missing:
                self._append(list(missing), np.asarray(self.encoder.encode(list(missing.values())), dtype=np.float32))
                self._refresh()

    def _append(self, keys: Sequence[bytes], rows: Vectors) -> None:
        known = len(self._rows)
        with (self.folder / "vectors.f32").open("ab") as file:
            file.truncate(known * rows.shape[1] * 4)  # rows that a crash left without a key
            file.write(rows.tobytes())
        with (self.folder / "keys.bin").open("ab") as file:
            file.truncate(known * _KEY_BYTES)
            file.write(b"".join(keys))
        (self.folder / "width").write_text(str(rows.shape[1]))

    def _refresh(self) -> None:
        """Read the keys that are new and map the rows."""
        path = self.folder / "keys.bin"
        if not path.is_file() or not (self.folder / "width").is_file():
            return
        width = int((self.folder / "width").read_text())
        keys = path.read_bytes()
        count = min(len(keys) // _KEY_BYTES, (self.folder / "vectors.f32").stat().st_size // (4 * width))
        for row in range(self._read, count):
            self._rows[keys[row * _KEY_BYTES : (row + 1) * _KEY_BYTES]] = row
        self._read = count
        if count:
            self._table = np.memmap(self.folder / "vectors.f32", np.float32, "r", shape=(count, width))


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_KEY_BYTES]
