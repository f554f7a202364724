"""Vectors of distinct texts, each computed once per encoder and kept as a memory-mapped array.

Two files in a folder named after the encoder: `vectors.f32` (rows) and `keys.bin` (the hash of each row's text). Rows
are appended, keys after them, so a crash leaves at most rows without a key, and those are written again. Processes may
share a folder: texts are embedded a chunk at a time, each under a lock.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from prbench import files
from prbench.config import cache_folder
from prbench.errors import ModelError
from prbench.rank import TextEncoder

Vectors = npt.NDArray[np.float32]
_KEY_BYTES = 16
_WIDEST = 2**20
MOST_HELD = 50_000
"""Vectors that a server keeps in memory: some 77 MB at MiniLM's width."""
_CHUNK = 1024
"""Texts embedded between two writes: what an interruption can cost, and how long another process waits."""


def encoder_revision(encoder: Any) -> str:
    """Return the revision of an encoder's weights: their hash where it has a checkpoint, else its name."""
    inner = getattr(encoder, "encoder", encoder)
    return str(getattr(getattr(inner, "checkpoint", None), "revision", "") or inner.name)


@runtime_checkable
class Forgetting(Protocol):
    """An encoder that keeps what it made of texts."""

    def release(self) -> None:
        """Drop the vectors of all texts that were embedded."""

    def forget(self) -> None:
        """Drop all that was made of texts."""


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

    def __init__(self, encoder: TextEncoder, folder: Path | None = None) -> None:
        self.encoder = encoder
        digest = hashlib.sha256(encoder.name.encode()).hexdigest()[:16]
        self.folder = folder or cache_folder() / "features" / digest
        self._rows: dict[bytes, int] = {}
        self._read = 0
        self._table: Vectors | None = None
        self._held: dict[bytes, Vectors] | None = None
        self._most = 0

    @property
    def name(self) -> str:
        """Name of the encoder, with its revision."""
        return self.encoder.name

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vector of each text, from the store where it is there."""
        keys = [_key(text) for text in texts]
        if self._held is not None:
            return self._from_memory(keys, texts, self._held)
        if any(key not in self._rows for key in keys):
            self._add(dict(zip(keys, texts, strict=True)))
        if self._table is None:
            return np.zeros((0, 0), dtype=np.float32)
        return np.asarray(self._table[[self._rows[key] for key in keys]])

    def missing(self, texts: Iterable[str]) -> set[str]:
        """Return those of some texts whose vectors are still to be computed."""
        if self.folder.is_dir():
            with files.locked(self.folder / "lock"):
                self._refresh()
        return {text for text in texts if _key(text) not in self._rows}

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that computing the vectors of texts of so many tokens would take here."""
        inner: Any = self.encoder
        return float(inner.foreseen_seconds(tokens, length)) if hasattr(inner, "foreseen_seconds") else 0.0

    def hold_back(self, most: int = MOST_HELD) -> None:
        """Write nothing from now on: at most so many new vectors are kept, in memory, the oldest dropped first.

        What is on disk already is still read. Meant for servers, which meet new texts for weeks.
        """
        if self.folder.is_dir():
            with files.locked(self.folder / "lock"):
                self._refresh()
        self._held, self._most = {}, most

    def forget(self) -> None:
        """Drop all vectors that were computed since `hold_back`, and what the encoder made of texts."""
        if self._held is not None:
            self._held.clear()
        if isinstance(self.encoder, Forgetting):
            self.encoder.forget()

    def _from_memory(self, keys: Sequence[bytes], texts: Sequence[str], held: dict[bytes, Vectors]) -> Vectors:
        missing = {
            key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows and key not in held
        }
        if missing:
            held.update(zip(missing, np.asarray(self.encoder.encode(list(missing.values())), np.float32), strict=True))
            if isinstance(self.encoder, Forgetting):
                self.encoder.release()  # else it would keep them too, without a bound
        found = [held[key] if key in held else np.asarray(self._disk_row(key)) for key in keys]
        while len(held) > self._most:
            del held[next(iter(held))]
        return np.stack(found) if found else np.zeros((0, 0), dtype=np.float32)

    def _disk_row(self, key: bytes) -> Vectors:
        if self._table is None:
            raise KeyError(key)
        return np.asarray(self._table[self._rows[key]])

    def _add(self, texts: dict[bytes, str]) -> None:
        wanted = list(texts.items())
        for start in range(0, len(wanted), _CHUNK):
            with files.locked(self.folder / "lock"):
                self._refresh()
                missing = {key: text for key, text in wanted[start : start + _CHUNK] if key not in self._rows}
                if missing:
                    rows = np.asarray(self.encoder.encode(list(missing.values())), dtype=np.float32)
                    self._append(list(missing), rows)
                    self._refresh()

    def _append(self, keys: Sequence[bytes], rows: Vectors) -> None:
        width = rows.shape[1]
        if not np.isfinite(rows).all():  # kept, it would spoil every training to come
            raise ModelError(
                f"{self.name}: gives vectors that are no numbers", hint="its weights are damaged; take another encoder"
            )
        if self._table is not None and width != self._table.shape[1]:
            raise ModelError(
                f"{self.name}: gives vectors of width {width}, but {str(self.folder)!r} holds {self._table.shape[1]}",
                hint="another encoder wrote under this name; remove that folder, and its texts are embedded again",
            )
        if self._table is None:
            files.write_whole(self.folder / "width", str(width))
        _append_after(self.folder / "vectors.f32", self._read * width * 4, rows.tobytes())
        _append_after(self.folder / "keys.bin", self._read * _KEY_BYTES, b"".join(keys))

    def _refresh(self) -> None:
        """Read the keys that are new and map the rows; forget all where the files were removed."""
        named, keyed, table = (self.folder / name for name in ("width", "keys.bin", "vectors.f32"))
        width, keys, count = 0, b"", 0
        hint = "remove that folder, and its texts are embedded again"
        with files.disk_errors(self.folder, "read", raises=ModelError, hint=hint):
            if named.exists() and keyed.exists() and table.exists():
                with files.checked(named, raises=ModelError, hint=hint):
                    width = int(files.read_text(named, raises=ModelError, hint=hint) or 0)
                keys = files.read_bytes(keyed, raises=ModelError, hint=hint)
            if not 0 <= width <= _WIDEST:
                raise files.damaged(named, f"a vector has no {width:,} values", raises=ModelError, hint=hint)
            if width:
                count = min(len(keys) // _KEY_BYTES, table.stat().st_size // (4 * width))
        if count < self._read:
            self._rows, self._read, self._table = {}, 0, None
        if count > self._read:
            for row in range(self._read, count):
                self._rows[keys[row * _KEY_BYTES : (row + 1) * _KEY_BYTES]] = row
            self._read = count
            with files.disk_errors(table, "read", raises=ModelError, hint=hint):
                self._table = np.memmap(table, np.float32, "r", shape=(count, width))


def _append_after(path: Path, size: int, content: bytes) -> None:
    """Write behind the first `size` bytes; what a crash left there goes. On disk when it returns."""
    with files.disk_errors(path, "write"), path.open("ab") as file:
        file.truncate(size)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_KEY_BYTES]
