"""Published datasets as named tables of rows, from a local copy or from the hub.

A table is what the hub calls a config. A recipe asks for tables and knows nothing of where they are. In a local copy
a table is looked for under all layouts in which these datasets are found: `TABLE/test-00000-of-00001.parquet`,
`data/TABLE/test.jsonl`, `TABLE/test/0000.parquet`, `TABLE_test.jsonl`, `TABLE.jsonl`; a dataset with one table has
its files in `data/` or at the root.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from prbench.data.rows import SourceRow, read_rows, stem_of, suffix_of
from prbench.errors import DataError
from prbench.files import MAX_LINE_BYTES

WHOLE = ""
"""The name of the only table of a dataset that has one."""

KNOWN_SPLITS = ("train", "validation", "valid", "val", "dev", "test")
_SHARD = re.compile(r"-\d+-of-\d+(-[0-9a-f]+)?$")


class Tables(Protocol):
    """Source of the rows that a recipe reads."""

    def rows(self, table: str) -> Iterator[SourceRow]:
        """All rows of a table, each with its split."""
        ...


class TableFile(NamedTuple):
    """One file of a table."""

    path: Path
    split: str


class FolderTables:
    """Tables in a local copy of a dataset."""

    def __init__(self, folder: Path, *, split: str, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        """Look into `folder`; `split` is what a file without a split in its name belongs to, as on the hub."""
        self._folder = folder
        self._split = split
        self._max_line_bytes = max_line_bytes

    def rows(self, table: str) -> Iterator[SourceRow]:
        """All rows of a table, file after file in the order of their names."""
        for file in self.files(table):
            yield from read_rows(file.path, split=file.split, max_line_bytes=self._max_line_bytes)

    def files(self, table: str) -> list[TableFile]:
        """The files of a table, with their splits."""
        paths = sorted(path for path in self._folder.rglob("*") if _is_data_file(path, self._folder))
        found = [TableFile(path, self._split_of(path, table)) for path in paths if _belongs(path, self._folder, table)]
        if not found:
            wanted = f"table {table!r}" if table else "data file"
            seen = ", ".join(str(path.relative_to(self._folder)) for path in paths[:5]) or "nothing readable"
            example = f"{table}/{self._split}.parquet" if table else f"data/{self._split}.parquet"
            raise DataError(
                f"no {wanted} in {str(self._folder)!r} (found {seen})", hint=f"expected for example {example}"
            )
        return found

    def _split_of(self, path: Path, table: str) -> str:
        name = split_name(path).removeprefix(table).lstrip("_-")
        if name.isdigit():  # TABLE/test/0000.parquet, as the hub's own conversion writes it
            name = path.parent.name
        return name if name in KNOWN_SPLITS else self._split


class FileTable:
    """The only table of a dataset, in a file that the user names."""

    def __init__(self, path: Path, *, split: str, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        """Read `path`; its rows belong to `split` unless one says another."""
        self._path, self._split, self._max_line_bytes = path, split, max_line_bytes

    def rows(self, table: str) -> Iterator[SourceRow]:
        """All rows of the file."""
        return read_rows(self._path, split=self._split, max_line_bytes=self._max_line_bytes)


def split_name(path: Path) -> str:
    """The name of a file without its suffix and shard number.

    Example:
        >>> split_name(Path("data/test-00000-of-00001.parquet"))
        'test'
    """
    return _SHARD.sub("", stem_of(path))


def list_splits(folder: Path) -> list[TableFile]:
    """The files of a folder of one's own, where a file's name is its split; of one that was built, its pairs."""
    if (folder / "pairs.parquet").is_file():  # what `prbench build` writes, beside files that are no pairs
        return [TableFile(folder / "pairs.parquet", "test")]
    paths = sorted(path for path in folder.iterdir() if path.is_file() and suffix_of(path) and path.name[0] != ".")
    if not paths:
        raise DataError(
            f"no JSONL, Parquet or CSV file in {str(folder)!r}",
            hint=f"a local copy of a registered suite is given as NAME=DIR, for example prb={folder}",
        )
    return [TableFile(path, split_name(path)) for path in paths]


def guess_split(path: Path) -> str:
    """The split of a single file: what its name says, else `test`, since it was given to be tested on."""
    name = split_name(path).lower()
    return name if name in KNOWN_SPLITS else "test"


def _is_data_file(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and suffix_of(path) is not None and path.is_file()


def _belongs(path: Path, folder: Path, table: str) -> bool:
    if table == WHOLE:
        return True
    stem = split_name(path)
    return table in path.relative_to(folder).parts[:-1] or stem == table or stem.startswith((f"{table}_", f"{table}-"))
