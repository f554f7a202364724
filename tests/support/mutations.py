"""Ways to damage a file, drawn by a seeded generator: what disks, editors, crashes and people do to project files."""

import json
import random
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

_NESTED = "@@nested@@"
_HUGE = "@@huge@@"
_TOO_LARGE = "@@too large@@"
SENTINELS = {
    f'"{_NESTED}"': "[" * 3000 + "]" * 3000,
    f'"{_HUGE}"': "9" * 400,
    f'"{_TOO_LARGE}"': "1e999",
}
_WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**18,
    1e308,
    float("nan"),
    float("-inf"),
    "",
    "nonsense",
    "\x00",
    "\ud800",
    [],
    {},
    [None],
    {"a": 1},
    [["x"]],
    _NESTED,
    _HUGE,
    _TOO_LARGE,
)


class Damage(NamedTuple):
    """What was done to which file."""

    file: str
    kind: str


def damage(folder: Path, names: Sequence[str], chance: random.Random) -> Damage:
    """Damage one of the named files of a folder."""
    name = chance.choice([name for name in names if (folder / name).is_file()])
    path = folder / name
    ways = [*_WAYS, *(way for suffix, found in _MORE_WAYS.items() if path.suffix == suffix for way in found)]
    way = chance.choice(ways)
    if way is _swap:
        other = folder / chance.choice(names)
        content = other.read_bytes() if other.is_file() else b""
        path.write_bytes(content)
    else:
        way(path, chance)
    return Damage(name, way.__name__.strip("_"))


def _truncate(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data) or 1)])


def _empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def _swap(path: Path, chance: random.Random) -> None:
    """Another file of the folder in its place; done by the caller, which knows the others."""


def _folder_in_its_place(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _remove(path: Path, chance: random.Random) -> None:
    path.unlink()


def _flip_bytes(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 1, 8, 64))):
        if data:
            end = len(data) if chance.random() < 0.5 else min(len(data), 600)
            data[chance.randrange(end)] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(data))


def _zero_a_stretch(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data) or 1)
    length = min(chance.choice((1, 16, 4096)), len(data) - start)
    data[start : start + length] = bytes(length)
    path.write_bytes(bytes(data))


def _bad_utf8(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    place = chance.randrange(len(data) + 1)
    path.write_bytes(data[:place] + chance.choice((b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\x00")) + data[place:])


def _append_garbage(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes() + chance.choice((b"garbage\n", b"\x00" * 100, b"{}\n", b"[1]\n", b'{"a":')))


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def _delete_line(path: Path, chance: random.Random) -> None:
    lines = _lines(path)
    if lines:
        del lines[chance.randrange(len(lines))]
    path.write_bytes(b"".join(lines))


def _repeat_line(path: Path, chance: random.Random) -> None:
    lines = _lines(path)
    if lines:
        lines.insert(chance.randrange(len(lines)), chance.choice(lines))
    path.write_bytes(b"".join(lines))


def _join_lines(path: Path, chance: random.Random) -> None:
    lines = _lines(path)
    if lines:
        place = chance.randrange(len(lines))
        lines[place] = lines[place].rstrip(b"\n")
    path.write_bytes(b"".join(lines))


def _change_value(path: Path, chance: random.Random) -> None:
    """Replace one value of the JSON in a file, or of one line of it, by a wrong one."""
    text = path.read_text(encoding="utf-8")
    by_line = path.suffix == ".jsonl"
    lines = text.splitlines() if by_line else [text]
    if not lines:
        return
    place = chance.randrange(len(lines))
    value = json.loads(lines[place])
    change(value, chance)
    said = json.dumps(value, indent=None if by_line else 1)
    for mark, meant in SENTINELS.items():
        said = said.replace(mark, meant)
    lines[place] = said
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def change(value: Any, chance: random.Random) -> None:
    """Go down to a random place, and put something wrong there; a key may also be lost, or a new one come."""
    inside = [key for key in _keys(value) if isinstance(value[key], dict | list) and value[key]]
    if inside and chance.random() < 0.7:
        change(value[chance.choice(inside)], chance)
        return
    keys = _keys(value)
    if not keys:
        return
    key = chance.choice(keys)
    what = chance.random()
    if what < 0.15:
        del value[key]
    elif what < 0.2 and isinstance(value, dict):
        value["unheard of"] = 1
    elif what < 0.3 and isinstance(value, dict):
        value[chance.choice(("nonsense", "", "\x00"))] = value.pop(key)
    else:
        value[key] = chance.choice(_WRONG)


def _keys(value: Any) -> list[Any]:
    return list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []


def _change_toml(path: Path, chance: random.Random) -> None:
    """Replace what stands behind one equals sign."""
    lines = path.read_text(encoding="utf-8").splitlines()
    places = [place for place, line in enumerate(lines) if re.match(r"[\w\"'.-]+ = ", line)]
    if places:
        place = chance.choice(places)
        wrong = (
            "-1",
            "0",
            "true",
            "nan",
            "inf",
            "1e308",
            '""',
            '"nonsense"',
            "[]",
            "{}",
            "9" * 400,
            "[" * 2000,
            "2024-01-01",
        )
        lines[place] = lines[place].partition(" = ")[0] + " = " + chance.choice(wrong)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _change_cell(path: Path, chance: random.Random) -> None:
    """Replace one cell of a CSV file, commas and all."""
    text = path.read_text(encoding="utf-8")
    cells = text.split(",")
    cells[chance.randrange(len(cells))] = chance.choice(("", "nan", "1e999", "9" * 400, '"', "x,y", "[" * 3000, "\x00"))
    path.write_text(",".join(cells), encoding="utf-8")


def _change_row(path: Path, chance: random.Random) -> None:
    """Change a database by its own means: a wrong value, a row that is lost, a table that is gone."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice([name for name in tables if not name.startswith("sqlite_")])
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        rows = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        what = chance.random()
        if what < 0.1:
            database.execute(f"DROP TABLE {table}")
        elif rows:
            column = chance.choice(columns)
            wrong = chance.choice(("", "nonsense", "[", "{}", "[1, 2]", "null", "NaN", 0, -1, 99, 2**62, None))
            key = database.execute(f"SELECT {columns[0]} FROM {table} LIMIT 1 OFFSET ?", (chance.randrange(rows),))
            (found,) = key.fetchone()
            change = f"DELETE FROM {table}" if what < 0.3 else f"UPDATE {table} SET {column} = ?"
            values = (found,) if what < 0.3 else (wrong, found)
            try:
                database.execute(f"{change} WHERE {columns[0]} = ?", values)
            except sqlite3.IntegrityError:  # the file is safer than that: take the row away
                database.execute(f"DELETE FROM {table} WHERE {columns[0]} = ?", (found,))


Way = Callable[[Path, random.Random], None]
_WAYS: tuple[Way, ...] = (
    _truncate,
    _empty,
    _swap,
    _folder_in_its_place,
    _remove,
    _flip_bytes,
    _flip_bytes,
    _zero_a_stretch,
    _bad_utf8,
    _append_garbage,
)
_LINES: tuple[Way, ...] = (_delete_line, _repeat_line, _join_lines)
_MORE_WAYS: dict[str, tuple[Way, ...]] = {
    ".jsonl": (*_LINES, *(_change_value,) * 10),
    ".json": (*_LINES, *(_change_value,) * 10),
    ".toml": (*_LINES, *(_change_toml,) * 5),
    ".csv": (*_LINES, *(_change_cell,) * 5),
    ".sqlite": (_change_row,) * 8,
}
