"""Reading who people are: a TOML, JSON or CSV file that gives attributes of users.

Numbers with many values are cut into thirds, so that every attribute is a small set of groups.
"""

import csv
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from prbench.audit.people import People
from prbench.errors import DataError
from prbench.files import read_json, read_text, read_toml

_MOST_GROUPS = 5
"""A number with more values than this is cut into thirds."""
_USER_COLUMNS = ("user", "user_id", "id", "name")
_NO_ATTRIBUTES = frozenset({*_USER_COLUMNS, "split", "couple", "version", "life", "history", "posts"})
"""Fields that give a user's place in the suite, and say nothing of the person."""
_KINDS = "people are described in TOML, JSON or CSV"


def load_people(path: Path, users: Collection[str]) -> People:
    """Read the attributes of a suite's users.

    TOML and JSON may hold the users' tables at any depth (`[personas.c01a]`), or a list of records; CSV has a column
    `user`. Fields that are no plain value (lists, tables) are not attributes.

    Args:
        path: The file.
        users: The suite's users, by which the right table is found.

    Raises:
        DataError: If the file cannot be read or knows none of the users.
    """
    records = _best(_read(path), frozenset(users))
    if not records:
        raise DataError(
            f"{str(path)!r} tells nothing of the users of this suite, {min(users, default='none')!r} first",
            hint="one table for each user id, or a column 'user'",
        )
    return _grouped({user: record for user, record in records.items() if user in users})


def _read(path: Path) -> Any:
    match path.suffix.lower():
        case ".toml":
            return read_toml(path, raises=DataError, hint=_KINDS)
        case ".csv":
            return list(csv.DictReader(read_text(path, raises=DataError, hint=_KINDS).splitlines()))
        case _:
            return read_json(path, raises=DataError, hint=_KINDS)


def _best(data: Any, users: frozenset[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the table of the file that knows most of the users; empty if none knows any."""
    table = max(_tables(data), key=lambda table: len(users & table.keys()), default={})
    return table if users & table.keys() else {}


def _tables(data: Any) -> Iterator[dict[str, Mapping[str, Any]]]:
    if isinstance(data, list):
        records = [record for record in data if isinstance(record, dict)]
        for column in _USER_COLUMNS:
            yield {str(record[column]): record for record in records if column in record}
    elif isinstance(data, dict):
        yield {name: table for name, table in data.items() if isinstance(table, dict)}
        for inner in data.values():
            yield from _tables(inner)


def _grouped(records: Mapping[str, Mapping[str, Any]]) -> People:
    names = sorted({name for record in records.values() for name in record} - _NO_ATTRIBUTES)
    people: dict[str, dict[str, str]] = {user: {} for user in records}
    for name in names:
        values = {user: record[name] for user, record in records.items() if _is_plain(record.get(name))}
        for user, group in _groups(values).items():
            people[user][name] = group
    return people


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and value != ""


def _groups(values: Mapping[str, Any]) -> Mapping[str, str]:
    numbers = _numbers(values.values())
    if numbers is None or len(Counter(numbers)) <= _MOST_GROUPS:
        return {user: str(value) for user, value in values.items()}
    low, high = np.quantile(numbers, [1 / 3, 2 / 3])
    return {
        user: f"≤ {low:g}" if number <= low else f"≤ {high:g}" if number <= high else f"> {high:g}"
        for user, number in zip(values, numbers, strict=True)
    }


def _numbers(values: Iterable[Any]) -> list[float] | None:
    try:
        return [float(value) for value in values]
    except ValueError:
        return None
