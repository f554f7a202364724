"""`prbench verify`: every aggregate computed again from the records, and compared to the last digit.

What is shown of a run is verified first. A run that was verified is sealed: `verified.json` holds the hashes of all
files that its numbers rest on, and as long as they are the same, nothing has to be computed again.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from prbench import files
from prbench._version import __version__
from prbench.calls.budget import FILE as SPEND
from prbench.errors import FileError, RunError
from prbench.results.folder import RunFolder
from prbench.results.measured import MEASURED, expected
from prbench.results.parquet import TABLE, read_table, table_row
from prbench.results.reader import QUALITY, read_plans, read_result, recompute
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
"""What the numbers of a run rest on, and the numbers."""
_TOLERANCE = 1e-9
"""Sums may differ in the last bits where the records are read in another order."""
_ABSENT = "(absent)"
_LATER_COLUMNS: dict[str, Any] = {"jurors": []}
"""Columns that tables of older versions do not have, and what they would hold there."""


class Mismatch(NamedTuple):
    """A value of a run that its records do not give."""

    place: str
    stored: Any
    computed: Any


class Verification(NamedTuple):
    """What verifying a run found."""

    numbers: int
    """How many values were compared."""
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
        computed = recompute(folder, records.values()).to_json()
        for found in (stored, computed):  # measured, and who computed it: neither follows from the records
            found["result"].pop("timing", None)
            found["result"].pop("prbench", None)
        _forget_newer(stored, computed)
        values = [*_values("", stored, computed), *_table(folder, records.values())]
        values += _timing(folder, shown, list(records.values()))
        values += contradictions(records.values())
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
    for record in records:
        said = _said(record)
        if said != record.verdict:
            yield Mismatch("/records.jsonl/" + "/".join(map(str, record.slot)), record.verdict, said)


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


def _timing(folder: RunFolder, shown: Result, records: Sequence[Record]) -> Iterator[Mismatch]:
    """What was measured, as far as the folder says it a second time."""
    if shown.timing is None:
        if files.exists(folder.path / MEASURED, raises=RunError):
            yield Mismatch("/result/timing", _ABSENT, MEASURED)
        return
    plans = read_plans(folder).values()
    for field, stored, wanted in expected(folder, shown.timing, shown.usage, records, plans):
        yield from _values(f"/result/timing/{field}", stored, wanted)


def _table(folder: RunFolder, records: Iterable[Record]) -> Iterator[Mismatch]:
    """The table beside the records must hold the same ones, column by column."""
    path = folder.path / TABLE
    computed = {record.slot: table_row(record) for record in records}
    if not path.exists():
        yield Mismatch(f"/{TABLE}", _ABSENT, len(computed))
        return
    rows = [{**_LATER_COLUMNS, **row} for row in read_table(path)]
    stored = {(row.get("pair"), row.get("context"), row.get("order"), row.get("repeat")): row for row in rows}
    yield Mismatch(f"/{TABLE}/rows", len(rows), len(computed))
    names = {name: None for row in (*rows[:1], *computed.values()) for name in row}
    for name in names:
        yield _column(name, stored, computed)


def _column(name: str, stored: dict[Any, Any], computed: dict[Any, Any]) -> Mismatch:
    """One column: the first row that differs, or that all are equal."""
    for slot in {**stored, **computed}:
        one, two = (rows.get(slot, {}).get(name, _ABSENT) for rows in (stored, computed))
        if one != two:
            return Mismatch(f"/{TABLE}/{name}", f"{'/'.join(map(str, slot))}: {one}", two)
    return Mismatch(f"/{TABLE}/{name}", len(computed), len(computed))
