"""Identity of a model folder, as one hash: two folders with the same weights, config and tokenizer are the same model.

Files that training leaves behind (optimizer, logs, notes) do not change an answer and are left out. Checksums of large
files are kept in the cache folder for as long as the file system says that nothing was written to them: reading
gigabytes at each start would take longer than many a run.
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from prbench.config import cache_folder
from prbench.errors import ModelError, PrbenchError
from prbench.files import checksum, read_text, write_whole

_SUFFIXES = frozenset({".bin", ".jinja", ".json", ".model", ".pt", ".safetensors", ".tiktoken", ".txt"})
_LEFT_BY_TRAINING = frozenset(
    {"all_results.json", "eval_results.json", "optimizer.bin", "optimizer.pt", "requirements.txt", "scaler.pt"}
    | {"scheduler.bin", "scheduler.pt", "train_results.json", "trainer_state.json", "training_args.bin"}
    | {"delta.safetensors", "prbench_scale.json", "tuning.json"}  # where weights come from, how scores are read
)
_LARGE = 2**24
"""Bytes from which on a checksum is kept between processes."""
_SETTLED_NS = 2 * 10**9
"""Age of the last write from which on a further one has another time."""
_CHECKSUM = re.compile("[0-9a-f]{64}")


class FileState(NamedTuple):
    """What the file system says of a file; whoever writes to it changes this."""

    path: str
    inode: int
    size: int
    written_ns: int
    changed_ns: int
    """Time of the last change of content or state; on POSIX no program can choose its date."""


_known: dict[FileState, str] = {}
"""Checksums by the state of the file."""


def folder_revision(folder: Path, only: Collection[str] | None = None) -> str:
    """Hash the files of a model folder that can change an answer: names and contents, not dates or place.

    A file is read once for as long as its size and times stay the same, a large one once for all processes. With
    `only`, no other files than these are looked at.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     _ = Path(name, "config.json").write_text("{}")
        ...     before = folder_revision(Path(name))
        ...     _ = Path(name, "README.md").write_text("notes")
        ...     before == folder_revision(Path(name))
        True
    """
    total = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if _matters(file) and (only is None or file.name in only):
            total.update(f"{file.name}\0{_digest(file)}\n".encode())
    return total.hexdigest()


def _matters(file: Path) -> bool:
    if file.name in _LEFT_BY_TRAINING or file.name.startswith(("rng_state", ".")):
        return False
    return file.suffix in _SUFFIXES and file.is_file()


def _digest(file: Path) -> str:
    began, state = time.time_ns(), _state(file)
    if state not in _known:
        large = state.size >= _LARGE and os.name == "posix"
        _known[state] = _kept_digest(file, state, began) if large else checksum(file, raises=ModelError)
    return _known[state]


def _state(file: Path) -> FileState:
    status = file.stat()
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return FileState(str(file.resolve()), status.st_ino, status.st_size, *times)


def _kept_digest(file: Path, state: FileState, began_ns: int) -> str:
    """The checksum of a large file, from the cache folder where it was read in the same state before."""
    kept = cache_folder() / "checksums" / hashlib.sha256(repr(tuple(state)).encode()).hexdigest()
    with contextlib.suppress(PrbenchError):
        if _CHECKSUM.fullmatch(found := read_text(kept)):
            return found
    found = checksum(file, raises=ModelError)
    settled = began_ns - max(state.written_ns, state.changed_ns) > _SETTLED_NS
    if settled and _state(file) == state:
        with contextlib.suppress(PrbenchError):  # where the cache cannot be written, the file is read again
            write_whole(kept, found)
    return found
