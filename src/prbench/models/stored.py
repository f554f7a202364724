"""`stored:FILE`: scores or verdicts computed elsewhere, looked up by pair id.

Rows of JSONL, CSV or Parquet with `id` (or `pair`) and either `chosen_score` and `rejected_score`, or a `verdict` of
`chosen`, `rejected` or `tie`; optionally `context`. The `records.jsonl` of a run is such a file too. A pair that
the file does not know is a failed record, never a score.
"""

import csv
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prbench.errors import ModelError, did_you_mean
from prbench.models.protocols import ModelCard
from prbench.models.registry import ModelOptions
from prbench.types import Channel, Context, Order, Outcome


class Stored:
    """Replays outcomes that exist already; nothing is rendered and nothing is called."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._scores: dict[tuple[str, str | None], tuple[float, float]] = {}
        self._verdicts: dict[tuple[str, str | None, str | None, int], str] = {}
        for place, row in _rows(path):
            self._keep(place, row)
        contexts = {key[1] for key in self._scores} | {key[1] for key in self._verdicts}
        self.contexts: frozenset[str] | None = None if contexts == {None} else frozenset(filter(None, contexts))
        """The contexts the file names; None where it has no such column and so stands for any one of them."""
        self.orders: tuple[Order, ...] = ("chosen-first", "chosen-second") if self._has_orders() else ("rated",)
        self.card = ModelCard(
            address=f"stored:{path}",
            revision=hashlib.sha256(path.read_bytes()).hexdigest()[:12],
            reads=frozenset(Channel),
            reusable=False,
        )

    def replay(self, pair: str, context: Context, order: Order, repeat: int) -> tuple[Outcome, Outcome] | Outcome:
        """The two scores of a pair (chosen, rejected), or the verdict on it in an order."""
        name = None if self.contexts is None else str(context)
        if scores := self._scores.get((pair, name)):
            return Outcome.scored(scores[0]), Outcome.scored(scores[1])
        stored_order = order if order != "rated" else None
        verdict = self._verdicts.get((pair, name, stored_order, repeat))
        if verdict is None:
            return Outcome.failed(f"not in {self._path.name}")
        return Outcome.judged(_as_shown(verdict, order))

    def _has_orders(self) -> bool:
        return any(order is not None for _, _, order, _ in self._verdicts)

    def _keep(self, place: str, row: dict[str, Any]) -> None:
        pair = row.get("id", row.get("pair"))
        if pair in (None, ""):
            raise ModelError(f"{place}: no pair id", hint=f"columns: {', '.join(row)}; wanted 'id' or 'pair'")
        if row.get("status", "ok") != "ok":
            return
        context = row.get("context") or None
        order = row.get("order") if row.get("order") in ("chosen-first", "chosen-second") else None
        chosen, rejected = row.get("chosen_score"), row.get("rejected_score")
        key: tuple[Any, ...]
        if chosen not in (None, "") and rejected not in (None, ""):
            key = (str(pair), context)
            self._once(place, key in self._scores, pair)
            self._scores[str(pair), context] = (_number(place, chosen), _number(place, rejected))
        elif row.get("verdict"):
            key = (str(pair), context, order, int(row.get("repeat") or 0))
            self._once(place, key in self._verdicts, pair)
            self._verdicts[key] = _verdict(place, str(row["verdict"]), order)
        else:
            raise ModelError(
                f"{place}: neither chosen_score and rejected_score nor verdict",
                hint=did_you_mean("chosen_score", list(row)),
            )

    def _once(self, place: str, seen: bool, pair: object) -> None:
        if seen:
            raise ModelError(f"{place}: a second row for pair {pair!r}", hint="one row for each pair and context")


def load(rest: str, options: ModelOptions) -> Stored:
    """Open a file of stored scores."""
    path = Path(rest)
    if not path.is_file():
        raise ModelError(f"stored:{rest}: no such file")
    return Stored(path)


def _as_shown(verdict: str, order: Order) -> Any:
    if verdict == "tie":
        return "tie"
    return "first" if (verdict == "chosen") == (order != "chosen-second") else "second"


def _verdict(place: str, verdict: str, order: str | None) -> str:
    if verdict in ("first", "second"):  # a run's own records name positions
        return "chosen" if (verdict == "first") == (order != "chosen-second") else "rejected"
    if verdict not in ("chosen", "rejected", "tie"):
        raise ModelError(f"{place}: verdict is {verdict!r}", hint="chosen, rejected or tie")
    return verdict


def _number(place: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{place}: {value!r} is not a number") from None


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet

        for number, row in enumerate(parquet.read_table(path).to_pylist()):
            yield f"{path}, row {number}", row
    elif path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as handle:
            for number, row in enumerate(csv.DictReader(handle), 2):
                yield f"{path}, line {number}", row
    else:
        with path.open(encoding="utf-8") as handle:
            for number, line in enumerate(handle, 1):
                if line.strip():
                    yield f"{path}, line {number}", _object(path, number, line)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ModelError(f"{path}, line {number}: {error}") from error
    if not isinstance(row, dict):
        raise ModelError(f"{path}, line {number}: not an object")
    return row
