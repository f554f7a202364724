"""Whole files: each is written beside its place, synced and renamed, so that it is there whole or not at all."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prbench.files.trouble import disk_errors


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the place of a temporary file, and let it take the place of `path` when the block ends well.

    Missing folders are made. When the block fails, an earlier file stays as it was and nothing is left beside it.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder, "a.txt")) as partial:
        ...         _ = partial.write_text("whole")
        ...     Path(folder, "a.txt").read_text(), os.listdir(folder)
        ('whole', ['a.txt'])
    """
    with disk_errors(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part")
        os.close(descriptor)
        partial = Path(name)
        try:
            yield partial
            sync(partial)
            partial.chmod(0o644)  # a temporary file is private; files of a run, a suite or a model are not
            partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise
        sync_name(path)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write text or bytes so that they are there whole or not at all."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with replacing(path) as partial:
        partial.write_bytes(data)


def write_json(path: Path, data: Any, *, indent: int = 2) -> None:
    """Write JSON whole, readable by people; NaN and infinity are refused."""
    write_whole(path, json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False) + "\n")


def sync(path: Path) -> None:
    """Make the content of a file survive a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_name(path: Path) -> None:
    """Make the name of a new file survive a crash: it is on disk only when its folder is."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # some file systems do not sync folders; the file itself is on disk
        sync(path.parent)
