"""A run on disk: one folder, one writer, records that survive `kill -9`.

`records.jsonl` is append-only and synced in batches; a torn last line is cut off when the run is continued, so at most
the unsynced batch is lost. Small files are replaced whole (written beside, then renamed). A second process is refused.
"""

import json
import os
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import tomli_w
from filelock import FileLock, Timeout
from pydantic import BaseModel

from prbench.errors import RunError
from prbench.types import Record

SYNC_RECORDS = 200
SYNC_SECONDS = 1.0
LOCK = "run.lock"


class RunFolder:
    """The files of one run. Reading needs no lock; who writes holds `locked`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records_path = path / "records.jsonl"

    @classmethod
    def existing(cls, path: Path | str) -> "RunFolder":
        """Open a run that must be there already."""
        folder = cls(Path(path))
        if not (folder.path / "config.toml").is_file():
            raise RunError(
                f"{str(path)!r} is not a run folder: it has no config.toml",
                hint="a run is made by `prbench run … -o FOLDER`; without -o it is below runs/",
            )
        return folder

    def records(self) -> dict[tuple[str, str, str, int], Record]:
        """All whole records by slot; a later one replaces an earlier one."""
        found: dict[tuple[str, str, str, int], Record] = {}
        for number, line in whole_lines(self.records_path):
            try:
                record = Record.model_validate_json(line)
            except ValueError as error:
                raise RunError(f"{self.records_path}, line {number} is damaged: {error}") from error
            found[record.slot] = record
        return found

    def read_json(self, name: str) -> Any:
        """Read one of the small JSON files."""
        path = self.path / name
        if not path.is_file():
            raise RunError(f"{str(self.path)!r} has no {name}", hint="was the run finished? run the same command again")
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunError(f"{path} is damaged: {error}", hint="run the same command again") from error

    def read_config(self) -> dict[str, Any]:
        """Read `config.toml`."""
        path = self.path / "config.toml"
        try:
            return tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RunError(f"{path} is damaged: {error}", hint="give this run a new folder with -o") from error

    def write_json(self, name: str, data: Any) -> None:
        """Replace a small JSON file whole."""
        text = json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)
        write_whole(self.path / name, text + "\n")

    def write_lines(self, name: str, rows: Iterable[BaseModel]) -> None:
        """Replace a JSONL file whole."""
        write_whole(self.path / name, "".join(row.model_dump_json(exclude_defaults=True) + "\n" for row in rows))

    def write_config(self, data: dict[str, Any]) -> None:
        """Replace `config.toml` whole."""
        write_whole(self.path / "config.toml", tomli_w.dumps(_without_none(data)))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock; a folder with somebody else's files in it, or another writer, is refused."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            foreign = any(self.path.iterdir()) and not any(
                (self.path / name).exists() for name in (LOCK, "config.toml")
            )
        except OSError as error:
            raise RunError(f"cannot write to {str(self.path)!r}: {error.strerror}", hint="choose another -o") from error
        if foreign:
            raise RunError(
                f"{str(self.path)!r} is not empty and not a run: nothing in it was touched",
                hint="give this run a folder of its own with -o",
            )
        lock = FileLock(self.path / LOCK, blocking=False)
        try:
            lock.acquire()
        except Timeout:
            raise RunError(
                f"another process is writing to {str(self.path)!r}",
                hint="wait for it, or give this run its own folder with -o",
            ) from None
        try:
            yield
        finally:
            lock.release()

    def set_aside(self, names: Iterable[str]) -> None:
        """Keep old files under a name with the time in it, so that a run starts anew and nothing is lost."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        for name in names:
            path = self.path / name
            if path.is_file():
                path.rename(path.with_name(f"{path.stem}.{stamp}{path.suffix}"))


class Appender:
    """Appends lines to a file, synced to disk in batches; a torn last line is cut off first."""

    def __init__(self, path: Path) -> None:
        cut_torn_line(path)
        self._handle = path.open("ab")
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def append(self, record: BaseModel) -> None:
        """Write one line."""
        line = record.model_dump_json(exclude_defaults=True)
        self._handle.write(line.encode() + b"\n")
        self._unsynced += 1
        if self._unsynced >= SYNC_RECORDS or time.monotonic() - self._synced_at > SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Make everything written so far survive a crash."""
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sync()
        self._handle.close()


def whole_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that end in a newline, numbered; a torn last line is passed over."""
    if not path.is_file():
        return
    with path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            if line.endswith(b"\n") and line.strip():
                yield number, line.decode("utf-8")


def cut_torn_line(path: Path) -> None:
    """Cut off what follows the last newline: the trace of a process killed while it wrote."""
    if not path.is_file():
        return
    with path.open("rb+") as handle:
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


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place, sync it, and rename it: it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _without_none(data: Any) -> Any:
    """TOML has no null: a key without a value is left out."""
    if isinstance(data, dict):
        return {key: _without_none(value) for key, value in data.items() if value is not None}
    if isinstance(data, list | tuple):
        return [_without_none(value) for value in data]
    return data
