"""Append-only files of lines, which survive `kill -9` and a full disk without half a line."""

import contextlib
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import BaseModel

from prbench.files.trouble import disk_errors
from prbench.files.write import sync_name

SYNC_LINES = 2000
SYNC_SECONDS = 1.0


class Appender:
    """Appends lines to a file, synced to disk in batches; a torn last line is cut off first.

    A line that cannot be written whole, as on a full disk, is taken back, so that what is there stays readable. Use it
    in a `with` block.

    Args:
        path: Made where it is missing, with its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with disk_errors(path, "write"):
            path.parent.mkdir(parents=True, exist_ok=True)
        cut_torn_line(path)
        with disk_errors(path, "write"):
            new = not path.exists()
            self._handle = path.open("ab", buffering=0)
        if new:
            sync_name(path)
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def append(self, model: BaseModel) -> None:
        """Write a model as one line of JSON, without the fields that have their default."""
        self.add(model.model_dump_json(exclude_defaults=True) + "\n")

    def add(self, lines: str, count: int = 1) -> None:
        """Write whole lines, all of them or none, and sync where a batch is full or a second has passed."""
        self._write(lines.encode(), count)
        if self._unsynced >= SYNC_LINES or time.monotonic() - self._synced_at > SYNC_SECONDS:
            self.sync()

    def write(self, line: str) -> None:
        """Write one line; it is synced with the batch."""
        self._write(line.encode() + b"\n", 1)

    def _write(self, data: bytes, count: int) -> None:
        rest = memoryview(data)
        with disk_errors(self.path, "write"):
            before = os.fstat(self._handle.fileno()).st_size
            try:
                while rest:
                    rest = rest[self._handle.write(rest) :]
            except OSError:
                with contextlib.suppress(OSError):
                    self._handle.truncate(before)
                raise
        self._unsynced += count

    def sync(self) -> None:
        """Make everything written so far survive a crash."""
        with disk_errors(self.path, "write"):
            os.fsync(self._handle.fileno())
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.sync()
        finally:
            self._handle.close()


def append_line(path: Path, line: str) -> None:
    """Append one line and sync it: it is on disk, whole, when this returns."""
    with Appender(path) as lines:
        lines.write(line)


def cut_torn_line(path: Path) -> None:
    """Cut off what follows the last newline: the trace of a process that was killed while it wrote."""
    with disk_errors(path, "write"):
        if not path.exists():
            return
        handle = path.open("rb+")
    with disk_errors(path, "write"), handle:
        size = handle.seek(0, os.SEEK_END)
        position = size
        while position > 0:
            step = min(position, 65536)
            position -= step
            handle.seek(position)
            newline = handle.read(step).rfind(b"\n")
            if newline >= 0:
                position += newline + 1
                break
        if position < size:
            handle.truncate(position)
