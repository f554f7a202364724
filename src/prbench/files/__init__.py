"""Files of the project: the one place that reads and writes them.

Writing is whole or not at all: a file is written beside its place, synced and renamed; lines are appended and synced,
and a torn last line, the trace of a process that was killed, is cut off when the file is continued. Reading refuses
damaged content with an error that names the file, the line and the way out. A full disk, a read-only folder, a missing
permission or a folder in the place of a file are such errors too, never a traceback.

Every function that reads takes `raises`, the kind of `PrbenchError` to raise, so that a damaged suite is a `DataError`
and a damaged run a `RunError`; the default is `FileError`.
"""

from prbench.files.append import Appender, append_line, cut_torn_line
from prbench.files.folders import locked, make_folder, replacing_folder, slug
from prbench.files.lines import MAX_LINE_BYTES, read_lines, read_models, whole_lines
from prbench.files.read import (
    check_model,
    checked,
    checksum,
    exists,
    load_tensors,
    open_database,
    parquet_batches,
    parquet_rows,
    parse_json,
    read_bytes,
    read_json,
    read_model,
    read_parquet,
    read_text,
    read_toml,
)
from prbench.files.trouble import damaged, database_errors, describe, disk_errors
from prbench.files.write import replacing, write_json, write_whole

__all__ = [
    "MAX_LINE_BYTES",
    "Appender",
    "append_line",
    "check_model",
    "checked",
    "checksum",
    "cut_torn_line",
    "damaged",
    "database_errors",
    "describe",
    "disk_errors",
    "exists",
    "load_tensors",
    "locked",
    "make_folder",
    "open_database",
    "parquet_batches",
    "parquet_rows",
    "parse_json",
    "read_bytes",
    "read_json",
    "read_lines",
    "read_model",
    "read_models",
    "read_parquet",
    "read_text",
    "read_toml",
    "replacing",
    "replacing_folder",
    "slug",
    "whole_lines",
    "write_json",
    "write_whole",
]
