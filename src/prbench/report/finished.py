"""A run that may be passed on: finished, and every number of it follows from its records.

What leaves the house (an export, a leaderboard) starts here, so nothing can leave that `prbench verify` would refuse.
"""

import hashlib
import json
from array import array
from collections.abc import Iterable
from json.encoder import encode_basestring as _quoted
from pathlib import Path
from typing import NamedTuple

from prbench.errors import RunError
from prbench.results import Loaded, PairRows, Records, Result, RunFolder, load_run, read_rows
from prbench.types import Record


class Finished(NamedTuple):
    """A finished run whose numbers were computed again from its records, and agreed."""

    loaded: Loaded
    rows: PairRows
    """Facts of each pair."""
    records: Records
    records_fingerprint: str

    @property
    def result(self) -> Result:
        """Result of the run."""
        return self.loaded.result


def open_finished(path: Path | str) -> Finished:
    """Read a run and verify it.

    Raises:
        RunError: If it is not a run, not finished, or does not verify.
    """
    folder = RunFolder.existing(path)
    if not (folder.path / "result.json").is_file():
        raise RunError(
            f"the run {str(path)!r} is not finished: it has no result.json",
            hint="the command that started it continues it",
        )
    try:
        return _verified(folder)
    except (ValueError, KeyError, OSError) as error:
        raise RunError(
            f"the run {str(path)!r} cannot be read: " + f"{type(error).__name__}: {error}".splitlines()[0],
            hint="was it made by another version of prbench? the command that made it computes it anew",
        ) from error


def _verified(folder: RunFolder) -> Finished:
    loaded, records = load_run(folder.path), folder.records()
    return Finished(loaded, read_rows(folder), records, records_fingerprint(records))


def records_fingerprint(records: Iterable[Record]) -> str:
    """Hash what a model answered, whatever the order of the lines and however long each call took.

    Example:
        >>> one = Record(pair="1", context="none", order="rated", status="ok", verdict="first")
        >>> two = Record(pair="2", context="none", order="rated", status="ok", verdict="tie")
        >>> records_fingerprint([one, two]) == records_fingerprint([two, one]) != records_fingerprint([one])
        True
    """
    kept = Records.of(records)
    parts = [_written(kept, name) for name in sorted(Record.model_fields)]
    lines = sorted(f"{{{', '.join(row)}}}" for row in zip(*parts, strict=True))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _written(records: Records, name: str) -> list[str]:
    """A field of every record as `json.dumps` writes it with its name; of a call only its key."""
    begin, column = f'"{name}": ', records.column(name)
    if name == "calls":
        return [f"{begin}[{', '.join([_quoted(key) for key, _ in calls])}]" for calls in column]
    if isinstance(column, array):
        return [f"{begin}null" if value != value else f"{begin}{value!r}" for value in column]
    texts = {value: begin + _text(value) for value in set(column)}
    return [texts[value] for value in column]


_text = json.JSONEncoder(ensure_ascii=False).encode
