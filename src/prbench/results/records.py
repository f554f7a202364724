"""The records of a run by column, and by the slot that each one fills."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prbench.columns import ModelColumns
from prbench.types import CallUse, Outcome, Record, credit

Slot = tuple[str, str, str, int]
_ORDERS = ("chosen-first", "chosen-second", "rated")
"""Orders by their names, as records of a pair are sorted."""
_BATCH = 4096
"""Records that are put into columns at once."""


class Use(NamedTuple):
    """Tokens, money and time of a call: all fields of a `CallUse` but its key."""

    tokens_in: int
    tokens_out: int
    tokens_cached: int
    latency_ms: float
    cost_usd: float
    cached: bool


NO_USE: tuple[Any, ...] = (0, 0, 0, 0.0, 0.0, False)


def packed_use(taken: CallUse | Outcome, *, cached: bool = False) -> tuple[Any, ...]:
    """The values of a `Use` as columns keep them; calls that took nothing share one object.

    Plain tuples, which the garbage collector need not look into.
    """
    cached = taken.cached if isinstance(taken, CallUse) else cached
    tokens = (taken.tokens_in, taken.tokens_out, taken.tokens_cached)
    if not cached and tokens == (0, 0, 0) and taken.latency_ms == taken.cost_usd == 0.0:
        return NO_USE
    return (*tokens, taken.latency_ms, taken.cost_usd, cached)


class MadeRecord(NamedTuple):
    r"""All fields of a record that is just made, its calls as columns keep them.

    Example:
        >>> made = MadeRecord("1", "none", "rated", 0, "ok", verdict="tie", calls=(("k", NO_USE),))
        >>> Records().written([made])
        '{"pair":"1","context":"none","order":"rated","status":"ok","verdict":"tie","calls":[{"key":"k"}]}\n'
        >>> made.credit
        0.5
    """

    pair: str
    context: str
    order: str
    repeat: int
    status: str
    reason: str = ""
    verdict: str | None = None
    chosen_score: float | None = None
    rejected_score: float | None = None
    margin: float | None = None
    shown_user: str | None = None
    posts: int = 0
    dropped: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    jurors: tuple[str, ...] = ()
    calls: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    @classmethod
    def of(cls, record: Record) -> "MadeRecord":
        """The fields of a record."""
        calls = tuple([(call.key, packed_use(call)) for call in record.calls])
        return cls._make((*_ALL_BUT_CALLS(record.__dict__), calls))

    @property
    def credit(self) -> float | None:
        """1 if the chosen answer won, ½ for a tie, 0 if it lost; None if there is no verdict."""
        return credit(self.status, self.verdict, self.order)

    @property
    def asked(self) -> bool:
        """Whether the model was asked for it now."""
        return not self.calls or not all(Use(*taken).cached for _, taken in self.calls)


_ALL_BUT_CALLS = itemgetter(*MadeRecord._fields[:-1])
_NUMBERS = ("chosen_score", "rejected_score", "margin")


class Records(ModelColumns[Record]):
    """Records of a run; a later one takes the place of an earlier one for the same slot.

    Example:
        >>> one = Record(pair="1", context="none", order="rated", status="failed")
        >>> records = Records([one, one.model_copy(update={"status": "ok", "verdict": "tie"})])
        >>> len(records), records.status(("1", "none", "rated", 0)), records.earned.tolist()
        (1, 'ok', [0.5])
    """

    def __init__(self, records: Iterable[Record | MadeRecord] = ()) -> None:
        super().__init__(Record)
        self._places: dict[tuple[str, str, int], dict[str, int]] = {}
        for batch in _batches(records):
            self.keep([record if isinstance(record, MadeRecord) else MadeRecord.of(record) for record in batch])

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Records":
        """The same records as columns; those that are columns already as they are."""
        return records if isinstance(records, Records) else cls(records)

    def keep(self, records: Iterable[MadeRecord]) -> None:
        """Add records, each in the place of an earlier one for its slot, if there is one."""
        new: list[MadeRecord] = []
        begin = len(self)
        last, there = None, {}
        for record in records:
            pair, *slot = record[:4]
            if slot != last:
                last, there = slot, self._places.setdefault((record.context, record.order, record.repeat), {})
            place = there.setdefault(pair, begin + len(new))
            if place == begin + len(new):
                new.append(record)
            elif place >= begin:
                new[place - begin] = record
            else:
                self.replace(place, record)
        self.add_rows(new)

    def status(self, slot: Slot) -> str | None:
        """The status of the record that fills a slot; None where there is none."""
        pair, *rest = slot
        place = self._places.get(tuple(rest), {}).get(pair)  # type: ignore[arg-type]
        return None if place is None else str(self.column("status")[place])

    def made(self, places: Sequence[int]) -> list[MadeRecord]:
        """Some records by their fields, with their calls as columns keep them."""
        columns = []
        for name in MadeRecord._fields:
            column = self.column(name)
            values = [column[place] for place in places]
            columns.append([None if value != value else value for value in values] if name in _NUMBERS else values)
        return list(map(MadeRecord._make, zip(*columns, strict=True)))

    def slots(self) -> Iterator[Slot]:
        """Every slot that is filled, in the order of the records."""
        names = ("pair", "context", "order", "repeat")
        return zip(*(self.column(name) for name in names), strict=True)

    def uses(self) -> dict[str, Use]:
        """Return the use of each distinct call behind these records, by key."""
        return {key: Use(*taken) for calls in self.column("calls") for key, taken in calls}

    def latencies_ms(self) -> list[float]:
        """Return the whole time of answering each record, of those that were answered and timed."""
        both = zip(self.column("status"), self.column("calls"), strict=True)
        found = (sum(Use(*taken).latency_ms for _, taken in calls) for status, calls in both if status == "ok")
        return [latency for latency in found if latency > 0]

    def values(self) -> "Records":
        """Return all records, so that they can be read like a dictionary's values."""
        return self

    @cached_property
    def earned(self) -> NDArray[np.float64]:
        """Credit of each record: 1 if the chosen answer won, ½ for a tie, 0 if it lost, NaN without a verdict.

        Read once no more records come, as everything below.
        """
        worth = {None: np.nan, "first": 1.0, "second": 0.0, "tie": 0.5}
        found = np.array([worth[verdict] for verdict in self.column("verdict")], dtype=np.float64)
        found[np.array([status != "ok" for status in self.column("status")], dtype=np.bool_)] = np.nan
        swapped = self.orders == _ORDERS.index("chosen-second")
        found[swapped] = 1.0 - found[swapped]
        return found

    @cached_property
    def orders(self) -> NDArray[np.int8]:
        """The order of each record, numbered."""
        return _numbered(self.column("order"), _ORDERS)

    @cached_property
    def verdicts(self) -> NDArray[Any]:
        """The verdict of each record, as text or None."""
        return np.array(self.column("verdict"), dtype=object)

    @cached_property
    def margins(self) -> NDArray[np.float64]:
        """The margin of each record, NaN where it has none."""
        return self.numbers("margin")

    def order_number(self, order: str) -> int:
        """The number of an order in `orders`."""
        return _ORDERS.index(order)


def _batches(records: Iterable[Record | MadeRecord]) -> Iterator[list[Record | MadeRecord]]:
    rest = iter(records)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def _numbered(values: Iterable[str], names: tuple[str, ...]) -> NDArray[np.int8]:
    number = {name: place for place, name in enumerate(names)}
    return np.array([number[value] for value in values], dtype=np.int8)
