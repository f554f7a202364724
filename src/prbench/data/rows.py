"""Rows of a file, one at a time, each knowing where it stands.

JSONL and CSV (plain or gzipped) are read line by line, Parquet by record batches, so a file never has to fit in
memory. Nothing is repaired here: bad UTF-8, bad JSON, a line past the size limit or a ragged CSV row is a `DataError`
that names file, line and, where there is one, the byte or the column.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from prbench import files
from prbench.errors import DataError, did_you_mean
from prbench.files import MAX_LINE_BYTES

SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet", ".csv", ".csv.gz")


_BATCH = 4096
"""Rows that are put together at once."""
NAMED_SUFFIXES = (".json", ".json.gz", ".tsv", ".tsv.gz")
"""Files that are read where the user names them, but not looked for in a folder."""


class Place(NamedTuple):
    """Place of a row: its file, and its line or number there.

    Example:
        >>> str(Place("pairs.jsonl", "line", 3))
        'pairs.jsonl, line 3'
    """

    file: str
    unit: Literal["line", "row"]
    number: int

    def __str__(self) -> str:
        return f"{self.file}, {self.unit} {self.number}"


class SourceRow(NamedTuple):
    """One row as it was read; `split` is what its file or table says, and the row's own tag may overrule it."""

    values: dict[str, Any]
    place: Place
    split: str = ""


class RowBatch(NamedTuple):
    """Rows of one file that have the same columns, by column."""

    columns: dict[str, list[Any]]
    file: str
    unit: Literal["line", "row"]
    numbers: Sequence[int]
    """Line or number of each row in the file."""
    split: str = ""

    def rows(self) -> Iterator[SourceRow]:
        """The rows one by one."""
        for row, number in enumerate(self.numbers):
            values = {name: column[row] for name, column in self.columns.items()}  # a row may be without any
            yield SourceRow(values, Place(self.file, self.unit, number), self.split)


def batches(rows: Iterable[SourceRow]) -> Iterator[RowBatch]:
    """Put neighbours that have the same columns together, some thousands at a time."""
    for (names, file, unit, split), same in groupby(rows, _kind):
        while some := list(islice(same, _BATCH)):
            columns = {name: [row.values[name] for row in some] for name in names}
            yield RowBatch(columns, file, unit, [row.place.number for row in some], split)


def _kind(row: SourceRow) -> tuple[tuple[str, ...], str, Literal["line", "row"], str]:
    return tuple(row.values), row.place.file, row.place.unit, row.split


def read_batches(path: Path, *, split: str = "", max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[RowBatch]:
    """Read a file as `read_rows` does, by column; Parquet never becomes rows."""
    if suffix_of(path, named=True) != ".parquet":
        yield from batches(read_rows(path, split=split, max_line_bytes=max_line_bytes))
        return
    number = 1
    for columns in files.parquet_batches(path, raises=DataError):
        rows = len(next(iter(columns.values()), ()))
        yield RowBatch(columns, str(path), "row", range(number, number + rows), split)
        number += rows
    if number == 1:
        raise _no_rows(path)


def suffix_of(path: Path, *, named: bool = False) -> str | None:
    """The supported suffix that a file name ends with, or None.

    Args:
        path: A file.
        named: Whether the user named this very file: then `.json` and `.tsv` are tables as well. In a folder a JSON
            file may be anything.

    Example:
        >>> suffix_of(Path("a.b.JSONL.gz")), suffix_of(Path("a.json")), suffix_of(Path("a.json"), named=True)
        ('.jsonl.gz', None, '.json')
    """
    name = path.name.lower()
    known = (*SUFFIXES, *NAMED_SUFFIXES) if named else SUFFIXES
    return next((suffix for suffix in known if name.endswith(suffix) and len(name) > len(suffix)), None)


def stem_of(path: Path) -> str:
    """A file's name without its supported suffix."""
    suffix = suffix_of(path, named=True)
    return path.name[: -len(suffix)] if suffix else path.stem


def read_rows(
    path: Path, *, split: str = "", max_line_bytes: int = MAX_LINE_BYTES, suffix: str | None = None
) -> Iterator[SourceRow]:
    """Read a JSONL, JSON, Parquet, CSV or TSV file row by row; `suffix` says which it is where its name does not."""
    suffix = suffix_of(path, named=True) or suffix
    if suffix is None:
        supported = ", ".join((*SUFFIXES, *NAMED_SUFFIXES))
        raise DataError(f"{str(path)!r} has an unsupported extension {path.suffix!r}", hint=f"supported: {supported}")
    kind = suffix.removesuffix(".gz")
    if kind == ".parquet":
        rows = _read_parquet(path)
    elif kind == ".json":
        rows = _read_json(path, max_line_bytes)
    elif kind in (".csv", ".tsv"):
        rows = _read_csv(path, max_line_bytes, "\t" if kind == ".tsv" else ",")
    else:
        rows = _read_jsonl(path, max_line_bytes)
    empty = True
    for place, values in rows:
        empty = False
        yield SourceRow(values, place, split)
    if empty:
        raise _no_rows(path)


def _no_rows(path: Path) -> DataError:
    return DataError(f"{str(path)!r} has no rows", hint="each pair is one line or row; is the file complete?")


def parse_json(text: str, where: str) -> Any:
    """Parse JSON text, with the column of what is wrong in the message."""
    return files.parse_json(text, where, raises=DataError)


def _read_jsonl(path: Path, max_line_bytes: int) -> Iterator[tuple[Place, dict[str, Any]]]:
    for number, line in files.read_lines(path, max_line_bytes=max_line_bytes, raises=DataError):
        if not line.strip():
            continue
        place = Place(str(path), "line", number)
        values = parse_json(line, str(place))
        if not isinstance(values, dict):
            raise DataError(
                f"{place}: expected an object, found {_name_type(values)}", hint="write one object, {…}, per line"
            )
        yield place, values


def _read_json(path: Path, max_line_bytes: int) -> Iterator[tuple[Place, dict[str, Any]]]:
    """A list of objects, or an object that holds nothing but one such list; read whole, so it must fit in memory."""
    lines = files.read_lines(path, max_line_bytes=max_line_bytes, raises=DataError)
    found = parse_json("\n".join(line.rstrip("\n") for _, line in lines), str(path))
    if isinstance(found, dict):
        lists = [value for value in found.values() if isinstance(value, list)]
        found = lists[0] if len(lists) == 1 else found
    if not isinstance(found, list):
        raise DataError(
            f"{str(path)!r} holds {_name_type(found)}, expected a list of pairs", hint="write [{…}, {…}], or JSONL"
        )
    for number, values in enumerate(found, start=1):
        place = Place(str(path), "row", number)
        if not isinstance(values, dict):
            raise DataError(f"{place}: expected an object, found {_name_type(values)}", hint="each pair is an object")
        yield place, values


def _read_csv(path: Path, max_line_bytes: int, delimiter: str) -> Iterator[tuple[Place, dict[str, Any]]]:
    # The limit is global to the csv module, and 128 KiB is less than one long profile: only ever raise it.
    csv.field_size_limit(max(csv.field_size_limit(), max_line_bytes))
    lines = files.read_lines(path, max_line_bytes=max_line_bytes, raises=DataError)
    reader = csv.reader((line for _, line in lines), strict=True, delimiter=delimiter)
    place, header = Place(str(path), "line", 1), None
    try:
        for cells in reader:
            if header is None:
                header = _check_header(cells, place)
            elif cells:
                yield place, _pair_up(header, cells, place)
            place = place._replace(number=reader.line_num + 1)
    except csv.Error as error:
        raise DataError(
            f"{place}: not CSV: {error}", hint='is a quotation mark left open? inside a field, write ""'
        ) from error


def _check_header(cells: list[str], place: Place) -> list[str]:
    if repeated := sorted({name for name in cells if cells.count(name) > 1}):
        raise DataError(f"{place}: column {repeated[0]!r} stands twice in the header", hint="rename one of the two")
    if len(cells) == 1 and (found := next((mark for mark in (";", "\t", "|") if mark in cells[0]), None)):
        raise DataError(
            f"{place}: the header is one column, {cells[0]!r}: the file seems to be separated by {found!r}",
            hint="save it with commas between the columns",
        )
    return cells


def _pair_up(header: list[str], cells: list[str], place: Place) -> dict[str, Any]:
    if len(cells) != len(header):
        raise DataError(
            f"{place}: {len(cells)} fields under a header of {len(header)}",
            hint="put fields that hold commas or line breaks in quotation marks",
        )
    return dict(zip(header, cells, strict=True))


def _read_parquet(path: Path) -> Iterator[tuple[Place, dict[str, Any]]]:
    for number, values in enumerate(files.parquet_rows(path, raises=DataError), start=1):
        yield Place(str(path), "row", number), values


def _name_type(value: Any) -> str:
    names = {list: "a list", dict: "an object", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def wrong_type(value: Any, field: str, wanted: str, place: Place) -> DataError:
    """The error for a value of another type than its field has."""
    return DataError(f"{place}: field {field!r} is {_name_type(value)}, expected {wanted}")


def missing_field(field: str, columns: Iterable[str], place: Place) -> DataError:
    """The error for a field that a row lacks, with the nearest of the row's columns."""
    return DataError(
        f"{place}: field {field!r} is missing",
        hint=f"{did_you_mean(field, columns)}; map it with --column {field}=COLUMN (in Python columns=)",
    )
