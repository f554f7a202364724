"""`records.parquet`: the records as one table, for other tools."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prbench import files
from prbench.errors import RunError
from prbench.files.arrow import number_array, text_array, texts_array
from prbench.results.records import Records
from prbench.types import Record

TABLE = "records.parquet"
_FLOATS = ("chosen_score", "rejected_score", "margin")
_INTEGERS = ("repeat", "posts")
_LISTS = ("dropped", "raw", "jurors", "calls")


def write_parquet(path: Path, records: Iterable[Record]) -> None:
    """Write all records; of a call only its key."""
    import pyarrow.parquet as parquet

    with files.replacing(path) as partial:
        parquet.write_table(as_table(Records.of(records)), partial)


def as_table(records: Records) -> Any:
    """All records as an Arrow table."""
    import pyarrow as arrow

    return arrow.table({name: _array(records, name) for name in Record.model_fields})


def read_table(path: Path) -> Any:
    """Read the table of a run, whatever its columns are called."""
    return files.read_parquet(path, raises=RunError, hint="the command that made the run writes it anew")


def _array(records: Records, name: str) -> Any:
    if name in (*_FLOATS, *_INTEGERS):
        return number_array(records.numbers(name))
    column = records.column(name)
    if name == "calls":
        return texts_array([[key for key, _ in calls] for calls in column])
    return texts_array(column) if name in _LISTS else text_array(column)
