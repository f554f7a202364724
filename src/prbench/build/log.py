"""Reading a log, row by row, into arrays: ratings (user, item, rating) or judgments (user, a, b, choice)."""

import itertools
import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from prbench.build import judgments, ratings
from prbench.build.arrays import Indices
from prbench.build.columns import JUDGMENT_FIELDS, LOG_FIELDS, RATING_FIELDS, Columns, cell
from prbench.build.division import Log
from prbench.build.items import MirrorItems
from prbench.build.judgments import JudgmentLog
from prbench.build.preferences import Preferences
from prbench.build.ratings import RatingLog
from prbench.data import SourceRow, read_rows, suffix_of
from prbench.data.fields import read_identifier
from prbench.errors import DataError, did_you_mean

_DEFAULT_GAP = 0.2
"""Share of the range of all ratings: one star of five, four points of Jester's twenty."""
_FEW = 20
"""Number of ids that are searched for the nearest, and listed if none is near."""
_CHOICES = {"a": "a", "a1": "a", "b": "b", "a2": "b", "equal": "equal", "tie": "equal"}


class ReadLog(NamedTuple):
    """A log, and how many rows it was read from."""

    log: Log
    rows: int


class _Renumbered(NamedTuple):
    names: tuple[str, ...]
    numbers: Indices


class _Users:
    """Numbers for user ids; renumbered in the order of the ids once all are known."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, row: SourceRow, columns: Mapping[str, str]) -> int:
        name = read_identifier(cell(row, columns, "user"), "user", row.place)
        if not name:
            raise DataError(f"{row.place}: field 'user' is empty", hint="complete the row or remove it")
        return self._numbers.setdefault(name, len(self._numbers))

    def renumber(self, numbers: "array[int]") -> _Renumbered:
        names = tuple(sorted(self._numbers))
        place = np.empty(len(names), dtype=np.int64)
        place[[self._numbers[name] for name in names]] = np.arange(len(names))
        return _Renumbered(names, place[np.array(numbers, dtype=np.int64)])


def read_log(path: Path, items: MirrorItems, columns: Mapping[str, str], min_gap: float | None) -> ReadLog:
    """Read a log; its columns say which kind it is.

    Raises:
        DataError: With file, line and field, for the first row that cannot be read.
    """
    if suffix_of(path) is not None and not path.is_file():
        raise DataError(f"{str(path)!r} does not exist", hint="the log is a CSV, JSONL or Parquet file")
    rows = read_rows(path)
    first = next(rows)
    finder = Columns(columns, LOG_FIELDS)
    everything = itertools.chain([first], rows)
    if finder.has(first, "a") or finder.has(first, "b") or "choice" in columns:
        found = finder.find(first, JUDGMENT_FIELDS, ("reason",))
        return _read_judgments(everything, found, items)
    return _read_ratings(everything, finder.find(first, RATING_FIELDS), items, min_gap)


def _read_judgments(rows: Iterator[SourceRow], columns: Mapping[str, str], items: MirrorItems) -> ReadLog:
    users, equal, names = _Users(), 0, None
    user, a, b, chose_a, reasons = array("q"), array("q"), array("q"), array("b"), list[str]()
    for row in rows:
        number = users.number(row, columns)
        first, second = _item(row, columns, "a", items), _item(row, columns, "b", items)
        said, choice = _choice(row, columns)
        names = names or _names(said)
        if choice == "equal":
            equal += 1
            continue
        user.append(number)
        a.append(first)
        b.append(second)
        chose_a.append(choice == "a")
        reasons.append(_reason(row, columns))
    first_item, second_item = np.array(a), np.array(b)
    low_first = first_item <= second_item
    ids = users.renumber(user)
    found = Preferences(
        ids.numbers,
        np.minimum(first_item, second_item),
        np.maximum(first_item, second_item),
        np.array(chose_a, dtype=np.bool_) == low_first,
    )
    dropped = Counter({"judgments of 'equal'": equal})
    kept = judgments.tidy(found, items.same_text, dropped)
    told = tuple(reasons[row] for row in kept.tolist())
    log = JudgmentLog(ids.names, items, found.take(kept), low_first[kept], told, names or ("A", "B"), +dropped)
    return ReadLog(log, len(user) + equal)


def _read_ratings(
    rows: Iterator[SourceRow], columns: Mapping[str, str], items: MirrorItems, min_gap: float | None
) -> ReadLog:
    users, user, item, rating = _Users(), array("q"), array("q"), array("d")
    for row in rows:
        user.append(users.number(row, columns))
        item.append(_item(row, columns, "item", items))
        rating.append(_rating(row, columns))
    ids, texts, values = users.renumber(user), items.same_text[np.array(item)], np.array(rating)
    lowest, highest = float(values.min()), float(values.max())
    if lowest == highest:
        raise DataError(
            f"all {len(user):,} ratings are {lowest:g}, so no user prefers anything",
            hint="the log needs ratings that differ; is the right column mapped to 'rating'?",
        )
    kept = ratings.tidy(ids.numbers, texts)
    dropped = Counter({"ratings replaced by a later one of the same user and text": len(user) - len(kept)})
    gap = min_gap if min_gap is not None else round(_DEFAULT_GAP * (highest - lowest), 9)
    scale = math.floor(lowest), math.ceil(highest)
    log = RatingLog(ids.names, items, ids.numbers[kept], texts[kept], values[kept], gap, scale, +dropped)
    return ReadLog(log, len(user))


def _item(row: SourceRow, columns: Mapping[str, str], field: str, items: MirrorItems) -> int:
    name = read_identifier(cell(row, columns, field), field, row.place)
    if (number := items.index.get(name)) is None:
        near = did_you_mean(name, items.ids) if len(items) <= _FEW else f"ids look like {items.ids[0]!r}"
        raise DataError(
            f"{row.place}: field {field!r} is {name!r}, which is no id of the items",
            hint=f"{near}; are these the right items?",
        )
    return number


def _choice(row: SourceRow, columns: Mapping[str, str]) -> tuple[str, str]:
    said = str(cell(row, columns, "choice")).strip().lower()
    if said not in _CHOICES:
        raise DataError(
            f"{row.place}: field 'choice' is {row.values[columns['choice']]!r}", hint=did_you_mean(said, _CHOICES)
        )
    return said, _CHOICES[said]


def _names(said: str) -> tuple[str, str] | None:
    if said in ("a1", "a2"):
        return "A1", "A2"
    return ("A", "B") if said in ("a", "b") else None


def _reason(row: SourceRow, columns: Mapping[str, str]) -> str:
    value = row.values.get(columns["reason"]) if "reason" in columns else None
    return " ".join(str(value).split()) if value is not None else ""


def _rating(row: SourceRow, columns: Mapping[str, str]) -> float:
    value = cell(row, columns, "rating")
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{row.place}: field 'rating' is {value!r}, expected a number", hint="remove or mend the row")
    return number
