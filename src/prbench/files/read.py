"""Whole files: text, JSON, TOML, models, tables, tensors and databases, read at once or refused with their name."""

import hashlib
import json
import sqlite3
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from prbench.errors import FileError, PrbenchError
from prbench.files.trouble import FileOrLine, damaged, database_errors, describe, disk_errors

M = TypeVar("M", bound=BaseModel)
_RESTORE = "restore or remove the file"
_BATCH_ROWS = 1024


def exists(path: Path, *, raises: type[PrbenchError] = FileError) -> bool:
    """Whether there is something at a path; a folder that may not be looked into is refused."""
    with disk_errors(path, "read", raises=raises):
        return path.exists()


def read_bytes(path: Path, *, raises: type[PrbenchError] = FileError, hint: str = "") -> bytes:
    """Return the content of a file as bytes."""
    with disk_errors(path, "read", raises=raises, hint=hint):
        return path.read_bytes()


def read_text(path: Path, *, raises: type[PrbenchError] = FileError, hint: str = "") -> str:
    """Read a file of UTF-8 text."""
    data = read_bytes(path, raises=raises, hint=hint)
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        at = f"not UTF-8 at byte {error.start} ({data[error.start]:#04x})"
        raise damaged(path, at, raises=raises, hint=hint or "save the file as UTF-8") from error


def checksum(path: Path, *, raises: type[PrbenchError] = FileError) -> str:
    """The SHA-256 of a file of any size, in hexadecimal digits."""
    with disk_errors(path, "read", raises=raises), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def parse_json(text: str, where: FileOrLine, *, raises: type[PrbenchError] = FileError, hint: str = "") -> Any:
    """Parse JSON text; what is wrong is said with its line and column.

    Example:
        >>> parse_json('{"a": }', "a.json")
        Traceback (most recent call last):
        prbench.errors.FileError: a.json: not JSON at column 7: Expecting value
    """
    try:
        value = json.loads(text.rstrip("\r\n"))  # else what a line lacks is missed on the next one
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise raises(f"{where}: not JSON at {at}: {error.msg}", hint=hint) from error
    except (RecursionError, ValueError) as error:
        raise raises(f"{where}: JSON that cannot be read: {describe(error)}", hint=hint) from error
    if "\\ud" in text or "\\uD" in text:
        _refuse_lone_surrogate(value, where, raises, hint)
    return value


def read_json(path: Path, *, raises: type[PrbenchError] = FileError, hint: str = _RESTORE) -> Any:
    """Read a JSON file of any layout."""
    text = read_text(path, raises=raises, hint=hint)
    try:
        value = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise damaged(path, error, raises=raises, hint=hint) from error
    if "\\ud" in text or "\\uD" in text:
        _refuse_lone_surrogate(value, path, raises, hint)
    return value


def read_toml(path: Path, *, raises: type[PrbenchError] = FileError, hint: str = _RESTORE) -> dict[str, Any]:
    """Read a TOML file."""
    text = read_text(path, raises=raises, hint=hint)
    try:
        return tomllib.loads(text)
    except (RecursionError, ValueError) as error:
        raise damaged(path, f"not TOML: {describe(error)}", raises=raises, hint=hint) from error


def read_model(path: Path, model: type[M], *, raises: type[PrbenchError] = FileError, hint: str = _RESTORE) -> M:
    """Read a JSON file as a model, and refuse what does not have its fields."""
    return check_model(read_bytes(path, raises=raises, hint=hint), model, path, raises=raises, hint=hint)


def check_model(
    data: Any, model: type[M], where: FileOrLine, *, raises: type[PrbenchError] = FileError, hint: str = _RESTORE
) -> M:
    """Make a model of JSON (text or bytes) or of values that were read before."""
    try:
        return model.model_validate_json(data) if isinstance(data, str | bytes) else model.model_validate(data)
    except PrbenchError as error:  # a validator that refuses in its own words
        raise damaged(where, error.message, raises=raises, hint=error.hint or hint) from error
    except (ValidationError, RecursionError, UnicodeError) as error:
        raise damaged(where, error, raises=raises, hint=hint) from error


def parquet_rows(
    path: Path, *, columns: Sequence[str] | None = None, raises: type[PrbenchError] = FileError, hint: str = ""
) -> Iterator[dict[str, Any]]:
    """Rows of a Parquet file; two columns of one name are refused. The arguments are those of `parquet_batches`."""
    for batch in parquet_batches(path, columns=columns, raises=raises, hint=hint):
        names = list(batch)
        yield from [dict(zip(names, values, strict=True)) for values in zip(*batch.values(), strict=True)]


def parquet_batches(
    path: Path, *, columns: Sequence[str] | None = None, raises: type[PrbenchError] = FileError, hint: str = ""
) -> Iterator[dict[str, list[Any]]]:
    """Some rows of a Parquet file after the other, by column; two columns of one name are refused.

    Args:
        path: The file.
        columns: Those to read; all of them must be there.
        raises: The kind of error.
        hint: The way out, where the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with disk_errors(path, "read", raises=raises, hint=hint), pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if repeated := sorted({name for name in names if names.count(name) > 1}):
                raise raises(f"{path}: column {repeated[0]!r} stands twice in the table", hint="rename one of the two")
            if missing := [name for name in columns or () if name not in names]:
                raise damaged(path, f"it has no column {missing[0]!r}", raises=raises, hint=hint)
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                if len(batch):
                    yield dict(zip(batch.schema.names, map(python_values, batch.columns), strict=True))
                number += len(batch)
    except GeneratorExit:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, PrbenchError):
            raise
        raise raises(
            f"{str(path)!r} cannot be read as Parquet after row {number}: {describe(error)}", hint=hint
        ) from error


def python_values(column: Any) -> list[Any]:
    """The values of an Arrow column, as `to_pylist` gives them; lists of objects are unfolded column by column.

    Example:
        >>> import pyarrow as pa
        >>> python_values(pa.array([[{"a": 1}], None, []]))
        [[{'a': 1}], None, []]
    """
    import pyarrow as pa
    import pyarrow.compute

    kind = column.type
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        inside = iter(python_values(column.flatten()))
        lengths = pa.compute.list_value_length(column).to_pylist()
        return [None if length is None else list(islice(inside, length)) for length in lengths]
    if pa.types.is_struct(kind) and column.null_count == 0 and kind.num_fields:
        names = [kind.field(place).name for place in range(kind.num_fields)]
        parts = [python_values(part) for part in column.flatten()]
        return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
    values: list[Any] = column.to_pylist()
    return values


def read_parquet(path: Path, *, raises: type[PrbenchError] = FileError, hint: str = "") -> Any:
    """Read a Parquet file whole, as an Arrow table; two columns of one name are refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with disk_errors(path, "read", raises=raises, hint=hint), pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if repeated := sorted({name for name in names if names.count(name) > 1}):
                raise raises(f"{path}: column {repeated[0]!r} stands twice in the table", hint="rename one of the two")
            table = file.read()
            table.validate(full=True)
            return table
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, PrbenchError):
            raise
        raise raises(f"{str(path)!r} cannot be read as Parquet: {describe(error)}", hint=hint) from error


def load_tensors(
    path: Path,
    *,
    kind: Literal["torch", "numpy"] = "torch",
    raises: type[PrbenchError] = FileError,
    hint: str = _RESTORE,
) -> dict[str, Any]:
    """Read a safetensors file as torch tensors, or as numpy arrays where torch is not needed."""
    from safetensors import SafetensorError

    reader = import_module(f"safetensors.{kind}")
    try:
        with disk_errors(path, "read", raises=raises, hint=hint):
            return dict(reader.load_file(path))
    except (SafetensorError, RuntimeError, ValueError, KeyError, OverflowError) as error:
        if isinstance(error, PrbenchError):
            raise
        raise damaged(path, error, raises=raises, hint=hint) from error


def open_database(
    path: Path, *, timeout_s: float, raises: type[PrbenchError] = FileError, hint: str = ""
) -> sqlite3.Connection:
    """Connect to an SQLite file; transactions are begun and ended by the caller."""
    with database_errors(path, raises=raises, hint=hint):
        return sqlite3.connect(path, timeout=timeout_s, isolation_level=None)


@contextmanager
def checked(place: FileOrLine, *, raises: type[PrbenchError] = FileError, hint: str = _RESTORE) -> Iterator[None]:
    """Read values of free layout: a key that is missing or a value of another type means that the file is damaged."""
    try:
        yield
    except PrbenchError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        said = f"no {error}" if isinstance(error, KeyError) else describe(error)
        raise damaged(place, said, raises=raises, hint=hint) from error


def _refuse_lone_surrogate(value: Any, where: FileOrLine, raises: type[PrbenchError], hint: str) -> None:
    """Half a character can be written in JSON, but neither hashed, stored nor shown to a model."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = str(error.object)[error.start]
        raise raises(f"{where}: lone surrogate {half!r}, which is no character", hint=hint) from error
