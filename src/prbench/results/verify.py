"""`prbench verify`: every aggregate computed again from the records, and compared to the last digit.

What is shown of a run is verified first. A run that was verified is sealed: `verified.json` holds the hashes of all
files that its numbers rest on, and as long as they are the same, nothing has to be computed again.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prbench import files
from prbench._version import __version__
from prbench.calls.budget import FILE as SPEND
from prbench.errors import FileError, RunError
from prbench.results.folder import RunFolder
from prbench.results.measured import MEASURED, expected
from prbench.results.parquet import TABLE, as_table, read_table
from prbench.results.reader import QUALITY, read_plans, read_result, recompute
from prbench.results.records import Records
from prbench.results.result import Result
from prbench.types import Record

SEAL = "verified.json"
_SEALED = (
    "config.toml",
    "run.json",
    "pairs.jsonl",
    "baselines.jsonl",
    "plans.jsonl",
    QUALITY,
    "records.jsonl",
    "result.json",
    TABLE,
    MEASURED,
    SPEND,
)
"""Files that the numbers of a run rest on, and the numbers."""
_TOLERANCE = 1e-9
"""Sums may differ in the last bits where the records are read in another order."""
_ABSENT = "(absent)"
_LATER_COLUMNS = ("jurors",)
"""Columns that tables of older versions do not have: nothing stands in them there."""
_SLOT = ("pair", "context", "order", "repeat")


class Mismatch(NamedTuple):
    """A value of a run that its records do not give."""

    place: str
    stored: Any
    computed: Any


class Verification(NamedTuple):
    """Findings of verifying a run."""

    numbers: int
    """Number of values that were compared."""
    mismatches: tuple[Mismatch, ...]


def verify(path: Path | str) -> Verification:
    """Recompute a run's result and list every value that differs, and every record that contradicts itself.

    Raises:
        RunError: If a file of the run cannot be read, or holds a field that does not belong there.
    """
    folder = RunFolder.existing(path)
    with files.checked(folder.path, raises=RunError, hint="the command that made the run computes it anew"):
        shown = read_result(folder)  # refuses fields that no result has
        stored, records = folder.read_json("result.json"), folder.records()
        computed = recompute(folder, records).to_json()
        for found in (stored, computed):  # measured, and who computed it: neither follows from the records
            found["result"].pop("timing", None)
            found["result"].pop("prbench", None)
        _forget_newer(stored, computed)
        values = [*_values("", stored, computed), *_table(folder, records), *_timing(folder, shown, records)]
        values += contradictions(records)
    found = Verification(len(values), tuple(value for value in values if not _equal(value.stored, value.computed)))
    if not found.mismatches:
        seal(folder)
    return found


def _forget_newer(stored: Any, computed: Any) -> None:
    """Leave out metrics that the file does not have: they were added after the run was made."""
    for name, context in computed["result"]["contexts"].items():
        known = stored["result"]["contexts"].get(name, {}).get("metrics", {})
        found = {metric: value for metric, value in context.pop("metrics", {}).items() if metric in known}
        if found:
            context["metrics"] = found


def require_verified(path: Path | str) -> None:
    """Refuse a finished run whose numbers do not follow from its records.

    Raises:
        RunError: If a value differs, a record contradicts itself, or a file cannot be read.
    """
    folder = RunFolder.existing(path)
    if _is_sealed(folder):
        return
    found = verify(path)
    if found.mismatches:
        first = found.mismatches[0]
        raise RunError(
            f"{len(found.mismatches):,} of {found.numbers:,} values of {str(path)!r} do not follow from its records, "
            f"{first.place} first",
            hint=f"`prbench verify {path}` lists them; the command that made the run computes them anew",
        )


def contradictions(records: Iterable[Record]) -> Iterator[Mismatch]:
    """Records whose verdict is not what their scores, margin or status say.

    Example:
        >>> record = Record(pair="1", context="none", order="rated", status="ok", verdict="first", margin=-2.0)
        >>> [(found.place, found.stored, found.computed) for found in contradictions([record])]
        [('/records.jsonl/1/none/rated/0', 'first', 'second')]
    """
    kept = Records.of(records)
    for place in _suspects(kept):
        record = kept[place]
        said = _said(record)
        if said != record.verdict:
            yield Mismatch("/records.jsonl/" + "/".join(map(str, record.slot)), record.verdict, said)


def _suspects(records: Records) -> list[int]:
    """Places of records to be looked at one by one: all but those whose scores, or margin, plainly give the verdict."""
    one, two, margin = (records.numbers(name) for name in ("chosen_score", "rejected_score", "margin"))
    with np.errstate(over="ignore"):
        plain = (margin == one - two) & (records.earned == (1 + np.sign(margin)) / 2)
    plain &= records.orders != records.order_number("chosen-second")
    unscored = np.isnan(one) & np.isnan(two) & ~np.isnan(records.earned)
    plain |= unscored & (np.isnan(margin) | (margin * (records.earned - 0.5) >= 0))
    places: list[int] = np.flatnonzero(~plain).tolist()
    return places


def _said(record: Record) -> str | None:
    """The verdict that everything else in a record speaks for; the record's own where nothing speaks against it."""
    one, two, margin = record.chosen_score, record.rejected_score, record.margin
    if record.status != "ok":
        return None if (one, two, margin) == (None, None, None) else "no verdict, and so no scores"
    if (one is None) != (two is None):
        return "two scores or none"
    if one is not None and two is not None:
        if margin is not None and not math.isclose(margin, one - two, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            return f"margin {one - two}"
        return "first" if one > two else "second" if one < two else "tie"
    if record.verdict is None:
        return "a verdict"
    if margin is not None and record.credit is not None and margin * (record.credit - 0.5) < 0:
        return "second" if record.verdict == "first" else "first"
    return record.verdict


def seal(folder: RunFolder) -> None:
    """Note that a run is verified as it is now; a folder that cannot be written is verified again next time."""
    with suppress(FileError, OSError):
        folder.write_json(SEAL, {"prbench": __version__, "sha256": _hashes(folder)})


def _is_sealed(folder: RunFolder) -> bool:
    try:
        found = files.read_json(folder.path / SEAL, raises=RunError)
    except RunError:
        return False
    return bool(found == {"prbench": __version__, "sha256": _hashes(folder)})


def _hashes(folder: RunFolder) -> dict[str, str]:
    paths = {name: folder.path / name for name in _SEALED}
    return {name: files.checksum(path) for name, path in paths.items() if files.exists(path, raises=RunError)}


def _values(place: str, stored: Any, computed: Any) -> Iterator[Mismatch]:
    """Every value of either side, with its counterpart."""
    if isinstance(stored, dict) and isinstance(computed, dict):
        for key in {**stored, **computed}:
            yield from _values(f"{place}/{key}", stored.get(key, _ABSENT), computed.get(key, _ABSENT))
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for index, (one, two) in enumerate(zip(stored, computed, strict=True)):
            yield from _values(f"{place}/{index}", one, two)
    else:
        yield Mismatch(place, stored, computed)


def _equal(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(one == two)


def _timing(folder: RunFolder, shown: Result, records: Records) -> Iterator[Mismatch]:
    """Compare what was measured with the folder, as far as the folder says it a second time."""
    if shown.timing is None:
        if files.exists(folder.path / MEASURED, raises=RunError):
            yield Mismatch("/result/timing", _ABSENT, MEASURED)
        return
    plans = read_plans(folder).values()
    for field, stored, wanted in expected(folder, shown.timing, shown.usage, records, plans):
        yield from _values(f"/result/timing/{field}", stored, wanted)


def _table(folder: RunFolder, records: Records) -> Iterator[Mismatch]:
    """The table beside the records must hold the same ones, column by column."""
    path = folder.path / TABLE
    if not path.exists():
        yield Mismatch(f"/{TABLE}", _ABSENT, len(records))
        return
    stored, computed = read_table(path), as_table(records)
    yield Mismatch(f"/{TABLE}/rows", len(stored), len(computed))
    later = {name for name in _LATER_COLUMNS if name not in stored.column_names and not any(records.column(name))}
    names = dict.fromkeys([*stored.column_names, *(name for name in computed.column_names if name not in later)])
    if not all(_same_column(stored, computed, name) for name in _SLOT):
        stored, computed = _by_slot(stored), _by_slot(computed)
    for name in names:
        yield _column(name, stored, computed)


def _column(name: str, stored: Any, computed: Any) -> Mismatch:
    """One column: the first row that differs, or that all are equal."""
    place = f"/{TABLE}/{name}"
    if _same_column(stored, computed, name):
        return Mismatch(place, len(computed), len(computed))
    one, two = ({} if name not in table.column_names else _slots(table, name) for table in (stored, computed))
    for slot in {**one, **two}:
        if one.get(slot, _ABSENT) != two.get(slot, _ABSENT):
            return Mismatch(place, f"{'/'.join(map(str, slot))}: {one.get(slot, _ABSENT)}", two.get(slot, _ABSENT))
    return Mismatch(place, len(computed), len(computed))


def _same_column(stored: Any, computed: Any, name: str) -> bool:
    if name not in stored.column_names or name not in computed.column_names:
        return False
    one, two = stored.column(name), computed.column(name)
    return bool(one.type == two.type and one.equals(two))


def _slots(table: Any, name: str) -> dict[Any, Any]:
    columns = [table.column(part).to_pylist() if part in table.column_names else None for part in (*_SLOT, name)]
    filled = [column if column is not None else [None] * len(table) for column in columns]
    return {(pair, context, order, repeat): value for pair, context, order, repeat, value in zip(*filled, strict=True)}


def _by_slot(table: Any) -> Any:
    """The rows in the order of their slots, where the table has all columns of a slot."""
    if not set(_SLOT) <= set(table.column_names):
        return table
    return table.sort_by([(name, "ascending") for name in _SLOT])
