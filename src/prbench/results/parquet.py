"""`records.parquet`: the records as one table, for other tools."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prbench import files
from prbench.errors import RunError
from prbench.types import Record

TABLE = "records.parquet"
_FLOATS = ("chosen_score", "rejected_score", "margin")
_INTEGERS = ("repeat", "posts")
_LISTS = ("dropped", "raw", "jurors", "calls")


def write_parquet(path: Path, records: Iterable[Record]) -> None:
    """Write all records; of a call only its key."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    rows = [table_row(record) for record in records]
    columns = {name: arrow.array([row[name] for row in rows], _type(name)) for name in Record.model_fields}
    with files.replacing(path) as partial:
        parquet.write_table(arrow.table(columns), partial)


def read_table(path: Path) -> list[dict[str, Any]]:
    """Read all rows and all columns, whatever they are called."""
    return list(files.parquet_rows(path, raises=RunError, hint="the command that made the run writes it anew"))


def table_row(record: Record) -> dict[str, Any]:
    """A record as a row of the table."""
    row: dict[str, Any] = json.loads(record.model_dump_json())
    row["calls"] = [call["key"] for call in row["calls"]]
    return row


def _type(name: str) -> Any:
    import pyarrow as arrow

    if name in _LISTS:
        return arrow.list_(arrow.string())
    if name in _FLOATS:
        return arrow.float64()
    return arrow.int64() if name in _INTEGERS else arrow.string()
