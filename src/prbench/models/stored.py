"""`stored:FILE`: scores or verdicts computed elsewhere, looked up by pair id.

Rows of JSONL, CSV or Parquet with `id` (or `pair`) and either `chosen_score` and `rejected_score`, or a `verdict` of
`chosen`, `rejected` or `tie`; optionally `context`. The `records.jsonl` of a run is such a file too, and is replayed
record by record: orders, repeats, margins and failures as they were. A pair that the file does not know is a failed
record, never a score.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prbench.data import read_rows
from prbench.errors import DataError, ModelError, did_you_mean
from prbench.files import checksum, exists
from prbench.models.protocols import ModelCard
from prbench.models.registry import ModelOptions
from prbench.types import Channel, Context, Record

_LARGEST = 1e100
"""Scores beyond this would overflow when they are compared and averaged."""
_ANY = "*"
"""Stands for the context in a file that names none."""


class Stored:
    """Replays what exists already; nothing is rendered and nothing is called."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records: dict[tuple[str, str], list[Record]] = defaultdict(list)
        for place, row in _rows(path):
            self._keep(place, row)
        contexts = {context for _, context in self._records}
        self.contexts: frozenset[str] | None = None if contexts == {_ANY} else frozenset(contexts - {_ANY})
        """The contexts the file names; None where it has no such column and so stands for any one of them."""
        self.expected = max(map(len, self._records.values()), default=1)
        """Records that the fullest pair has."""
        self.card = ModelCard(
            address=f"stored:{path}",
            revision=checksum(path, raises=ModelError)[:12],
            reads=frozenset(Channel),
            reusable=False,
        )

    def replay(self, pair: str, context: Context) -> list[Record]:
        """All that is stored of a pair in a context."""
        found = self._records.get((pair, _ANY if self.contexts is None else str(context)))
        if not found:
            reason = f"not in {self._path.name}"
            return [Record(pair=pair, context=str(context), order="rated", status="failed", reason=reason)]
        return [record.model_copy(update={"context": str(context)}) for record in found]

    def _keep(self, place: str, row: Mapping[str, Any]) -> None:
        pair = row.get("id", row.get("pair"))
        if pair in (None, ""):
            raise ModelError(f"{place}: no pair id", hint=f"columns: {', '.join(row)}; wanted 'id' or 'pair'")
        record = _own(row) or _foreign(place, str(pair), row)
        known = self._records[record.pair, record.context]
        if any(record.slot == other.slot for other in known):
            if row.get("status") is None:
                raise ModelError(f"{place}: a second row for pair {pair!r}", hint="one row for each pair and context")
            known[:] = [other for other in known if other.slot != record.slot]  # in a run a later record replaces
        known.append(record)


def load(rest: str, options: ModelOptions) -> Stored:
    """Open a file of stored scores."""
    path = Path(rest).expanduser()
    if not exists(path, raises=ModelError):
        raise ModelError(f"stored:{rest}: no such file")
    return Stored(path)


def _own(row: Mapping[str, Any]) -> Record | None:
    """A record of a run, if this row is one."""
    if "order" not in row or "status" not in row:
        return None
    try:
        return Record.model_validate({key: value for key, value in row.items() if value is not None})
    except ValidationError:
        return None


def _foreign(place: str, pair: str, row: Mapping[str, Any]) -> Record:
    """Scores or a verdict that another tool made."""
    context = str(row.get("context") or _ANY)
    chosen, rejected = (row.get(name) for name in ("chosen_score", "rejected_score"))
    if chosen not in (None, "") and rejected not in (None, ""):
        one, two = _number(place, chosen), _number(place, rejected)
        return Record(
            pair=pair,
            context=context,
            order="rated",
            status="ok",
            verdict="first" if one > two else "second" if one < two else "tie",
            chosen_score=one,
            rejected_score=two,
            margin=one - two,
        )
    said = row.get("verdict")
    if not said:
        raise ModelError(
            f"{place}: neither chosen_score and rejected_score nor verdict",
            hint=did_you_mean("chosen_score", list(row)),
        )
    if said not in ("chosen", "rejected", "tie"):
        raise ModelError(f"{place}: verdict is {said!r}", hint="chosen, rejected or tie")
    verdict = {"chosen": "first", "rejected": "second", "tie": "tie"}[said]
    return Record.model_validate(
        {"pair": pair, "context": context, "order": "rated", "status": "ok", "verdict": verdict}
    )


def _number(place: str, value: Any) -> float:
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        raise ModelError(f"{place}: {value!r} is not a number") from None
    if not abs(number) <= _LARGEST:  # NaN is not either
        raise ModelError(f"{place}: {value!r} is not a number that can be a score", hint="a finite number up to 1e100")
    return number


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rows with their place; a file whose name does not say what it is holds JSONL."""
    try:
        for row in read_rows(path, suffix=".jsonl"):
            yield str(row.place), row.values
    except DataError as error:
        raise ModelError(error.message, hint=error.hint) from error
