"""`prbench verify`: every aggregate computed again from the records, and compared to the last digit."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from prbench import files
from prbench.errors import RunError
from prbench.results.folder import RunFolder
from prbench.results.reader import recompute

_TOLERANCE = 1e-9
"""Sums may differ in the last bits where the records are read in another order."""


_ABSENT = "(absent)"


class Mismatch(NamedTuple):
    """A number in `result.json` that the records do not give."""

    place: str
    stored: Any
    computed: Any


class Verification(NamedTuple):
    """What verifying a run found."""

    numbers: int
    """How many values were compared."""
    mismatches: tuple[Mismatch, ...]


def verify(path: Path | str) -> Verification:
    """Recompute a run's result and list every value that differs."""
    folder = RunFolder.existing(path)
    with files.checked(folder.path, raises=RunError, hint="the command that made the run computes it anew"):
        stored = folder.read_json("result.json")
        computed = recompute(folder).to_json()
        for found in (stored, computed):  # measured, and who computed it: neither follows from the records
            found["result"].pop("timing", None)
            found["result"].pop("prbench", None)
        values = [*_values("", stored, computed), _table(folder)]
    return Verification(len(values), tuple(value for value in values if not _equal(value.stored, value.computed)))


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


def _table(folder: RunFolder) -> Mismatch:
    """The table beside the records must hold the same ones."""
    path = folder.path / "records.parquet"
    computed = {slot: record.verdict for slot, record in folder.records().items()}
    if not path.exists():
        return Mismatch("/records.parquet", _ABSENT, len(computed))
    columns = ("pair", "context", "order", "repeat", "verdict")
    rows = files.parquet_rows(
        path, columns=columns, raises=RunError, hint="the command that made the run writes it anew"
    )
    stored = {(row["pair"], row["context"], row["order"], row["repeat"]): row["verdict"] for row in rows}
    return Mismatch("/records.parquet", stored, computed)
