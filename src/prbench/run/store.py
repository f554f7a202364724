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


class RunFolder:
    """The files of one run. Reading needs no lock; `open_for_writing` takes it."""

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
        return json.loads(path.read_text(encoding="utf-8"))

    def read_config(self) -> dict[str, Any]:
        """Read `config.toml`."""
        return tomllib.loads((self.path / "config.toml").read_text(encoding="utf-8"))

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

    def open_for_writing(self) -> "RecordWriter":
        """Take the folder's lock and open the records for appending."""
        self.path.mkdir(parents=True, exist_ok=True)
        return RecordWriter(self)


class RecordWriter:
    """Holds the lock of a run folder and appends records to it."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._lock = FileLock(folder.path / "run.lock", blocking=False)
        try:
            self._lock.acquire()
        except Timeout:
            raise RunError(
                f"another process is writing to {str(folder.path)!r}",
                hint="wait for it, or give this run its own folder with -o",
            ) from None
        cut_torn_line(folder.records_path)
        self._handle = folder.records_path.open("ab")
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def append(self, record: Record) -> None:
        """Write one record; synced to disk in batches."""
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
        self._lock.release()


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
