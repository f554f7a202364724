"""Project files are read and written by `prbench.files` alone: nothing else opens, replaces, locks or connects."""

import ast
from pathlib import Path

import prbench

ROOT = Path(prbench.__file__).parent
FORBIDDEN = {
    "write_text",
    "write_bytes",
    "read_text",
    "read_bytes",
    "mkstemp",
    "mkdtemp",
    "NamedTemporaryFile",
    "FileLock",
    "fsync",
    "read_table",
    "load_file",
    "load",
    "connect",
    "ParquetFile",
}
MODULES = {"json", "tomllib", "sqlite3", "os", "tempfile", "filelock", "gzip", "parquet", "pq", "pickle"}
"""Of `load` and `connect` only those of these modules are meant."""
ALLOWED = {
    "config.py": "the content of a template or a file of plans is part of what a run is; `files` stands beside it",
    "data/compact.py": "suites that ship with the package, with dictionaries that rows would lose",
    "models/personal/features.py": "rows of a fixed width behind a known offset",
    "scorecard/machine.py": "what the kernel says of the machine",
}


def test_no_other_room_reads_or_writes_files() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{call.lineno} {name}"
        for path in ROOT.rglob("*.py")
        if path.parent.name != "files" and str(path.relative_to(ROOT)) not in ALLOWED
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and (name := _touches_a_file(call))
    }
    assert found == set()


def test_the_exceptions_are_still_there() -> None:
    assert all((ROOT / name).is_file() for name in ALLOWED)


def _touches_a_file(call: ast.Call) -> str:
    """The name of a call that reads or writes a file; empty for one that reads what ships with the package."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id if function.id in ("open", "FileLock", "load_file", "mkstemp", "mkdtemp") else ""
    if not isinstance(function, ast.Attribute) or function.attr not in FORBIDDEN:
        return ""
    owner = function.value
    if function.attr in ("load", "connect"):
        return function.attr if isinstance(owner, ast.Name) and owner.id in MODULES else ""
    return "" if "joinpath" in ast.dump(owner) or _is_ours(owner) else function.attr


def _is_ours(owner: ast.expr) -> bool:
    return isinstance(owner, ast.Name) and owner.id == "files"
