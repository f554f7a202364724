"""A run on disk: one folder, one writer, records that survive `kill -9`.

`records.jsonl` is append-only and synced in batches; a torn last line is cut off when the run is continued, so at most
the unsynced batch is lost. Small files are replaced whole (written beside, then renamed). A second process is refused.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import tomli_w
from pydantic import BaseModel

from prbench import files
from prbench.columns import ModelColumns
from prbench.errors import RunError
from prbench.results.records import Records
from prbench.types import Record

M = TypeVar("M", bound=BaseModel)
LOCK = "run.lock"
_AGAIN = "run the same command again"


class RunFolder:
    """The files of one run. Reading needs no lock; who writes holds `locked`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records_path = path / "records.jsonl"

    @classmethod
    def existing(cls, path: Path | str) -> "RunFolder":
        """Open a run that must be there already."""
        folder = cls(Path(path))
        if not files.exists(folder.path / "config.toml", raises=RunError):
            raise RunError(
                f"{str(path)!r} is not a run folder: it has no config.toml",
                hint="a run is made by `prbench run … -o FOLDER`; without -o it is below runs/",
            )
        return folder

    def records(self) -> Records:
        """All whole records; a later one replaces an earlier one of the same slot."""
        hint = "remove the line, and the same command makes that record again"
        return Records(files.read_models(self.records_path, Record, raises=RunError, hint=hint))

    def lines(self, name: str, model: type[M]) -> Iterator[M]:
        """Read one of the JSONL files that are written whole; one that is missing has no lines."""
        hint = "the command that made the run writes the file anew"
        return files.read_models(self.path / name, model, raises=RunError, hint=hint)

    def read_json(self, name: str) -> Any:
        """Read one of the small JSON files."""
        return files.read_json(self._named(name), raises=RunError, hint=_AGAIN)

    def read_model(self, name: str, model: type[M]) -> M:
        """Read one of the small JSON files as a model."""
        return files.read_model(self._named(name), model, raises=RunError, hint=_AGAIN)

    def read_config(self) -> dict[str, Any]:
        """Return the content of `config.toml`."""
        return files.read_toml(self.path / "config.toml", raises=RunError, hint="give this run a new folder with -o")

    def write_json(self, name: str, data: Any) -> None:
        """Replace a small JSON file whole."""
        files.write_json(self.path / name, data)

    def write_lines(self, name: str, rows: Iterable[BaseModel]) -> None:
        """Replace a JSONL file whole, line by line."""
        with files.replacing(self.path / name) as partial, partial.open("wb") as file:
            if isinstance(rows, ModelColumns):
                file.writelines(rows.jsonl())
            else:
                file.writelines(row.model_dump_json(exclude_defaults=True).encode() + b"\n" for row in rows)

    def write_config(self, data: dict[str, Any]) -> None:
        """Write `config.toml` whole, in place of the old one."""
        files.write_whole(self.path / "config.toml", tomli_w.dumps(_without_none(data)))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock; a folder with foreign files in it, or with another writer, is refused."""
        files.make_folder(self.path, raises=RunError, hint="choose another -o")
        with files.disk_errors(self.path, "read", raises=RunError, hint="choose another -o"):
            foreign = any(self.path.iterdir()) and not any(
                (self.path / name).exists() for name in (LOCK, "config.toml")
            )
        if foreign:
            raise RunError(
                f"{str(self.path)!r} is not empty and not a run: nothing in it was touched",
                hint="give this run a folder of its own with -o",
            )
        busy = RunError(
            f"another process is writing to {str(self.path)!r}",
            hint="wait for it, or give this run its own folder with -o",
        )
        with files.locked(self.path / LOCK, busy):
            yield

    def set_aside(self, names: Iterable[str]) -> None:
        """Keep old files under a name with the time in it, so that a run starts anew and nothing is lost."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        for name in names:
            path = self.path / name
            if path.is_file():
                with files.disk_errors(path, "write", raises=RunError):
                    path.rename(path.with_name(f"{path.stem}.{stamp}{path.suffix}"))

    def _named(self, name: str) -> Path:
        path = self.path / name
        if not files.exists(path, raises=RunError):
            raise RunError(f"{str(self.path)!r} has no {name}", hint=f"was the run finished? {_AGAIN}")
        return path


def _without_none(data: Any) -> Any:
    """TOML has no null: a key without a value is left out."""
    if isinstance(data, dict):
        return {key: _without_none(value) for key, value in data.items() if value is not None}
    if isinstance(data, list | tuple):
        return [_without_none(value) for value in data]
    return data
