"""Credits of a model, made from its records: what it earned on each pair, context by context.

A pair counts once, whatever the number of orders and repeats behind it, and only if all of them gave a verdict. Where a
Comparer gives log-odds, the two orders are averaged before deciding, which takes a constant liking for a position out;
where it gives bare verdicts, their credits are averaged, so a verdict that flips with the order is a tie.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from prbench.results.records import Records
from prbench.results.rows import Content, PairRow, PairRows
from prbench.stats import Clusters
from prbench.stats.arrays import Codes, Floats
from prbench.types import Record


class Credit(NamedTuple):
    """Credit that a model earned on one pair in one context."""

    row: PairRow
    credit: float
    strict: float
    """Strict credit: 1 only if every verdict, in every order and repeat, was right."""
    margin: float | None
    """Mean preference for the chosen answer, where the model gives one."""
    records: tuple[Record, ...]


class CreditRows(Sequence[Credit]):
    """Credits that a model earned on many pairs, by column; a `Credit` is made where one is asked for.

    Args:
        pairs: All pairs of the run.
        places: Which of them these are.
        credit: Credit of each pair.
        strict: 1 where every verdict was right.
        margin: Mean preference for the chosen answer, NaN where there is none.
        records: All records of the run.
        behind: Places of the records behind each pair, one row each, padded with −1.
    """

    def __init__(
        self,
        pairs: PairRows,
        places: Codes,
        credit: Floats,
        strict: Floats,
        margin: Floats,
        records: Records,
        behind: Codes,
    ) -> None:
        self.pairs, self.places, self.credit, self.strict, self.margin = pairs, places, credit, strict, margin
        self.records, self.behind = records, behind

    def take(self, chosen: NDArray[np.bool_] | Codes) -> "CreditRows":
        """Some of them, by a mask or by positions."""
        earned = (self.credit[chosen], self.strict[chosen], self.margin[chosen])
        return CreditRows(self.pairs, self.places[chosen], *earned, self.records, self.behind[chosen])

    @cached_property
    def clusters(self) -> Clusters:
        """Return the units that vary together: users (or couples of users) and questions."""
        return Clusters(self.pairs.units, self.pairs.items).take(self.places)

    @cached_property
    def contents(self) -> list[Content]:
        """Contents of these pairs."""
        contents = self.pairs.contents
        return [contents[place] for place in self.places.tolist()]

    def positions(self, wanted: Iterable[Content]) -> Codes:
        """Position of each content among these rows; −1 for a pair that was not judged."""
        known = {content: position for position, content in enumerate(self.contents)}
        return np.array([known.get(content, -1) for content in wanted], dtype=np.int64)

    def verdicts(self, order: str) -> NDArray[Any] | None:
        """The verdict on each pair in an order, of the first repeat; None where some pair was not shown in it."""
        behind = np.where(self.behind >= 0, self.behind, 0)
        right = (self.behind >= 0) & (self.records.orders[behind] == self.records.order_number(order))
        right &= self.records.numbers("repeat")[behind] == 0
        if not right.any(axis=1).all():
            return None
        verdicts: NDArray[Any] = self.records.verdicts[behind[np.arange(len(self)), right.argmax(axis=1)]]
        return verdicts

    def labels(self, column: Sequence[str | None]) -> list[str | None]:
        """The entries of these pairs in a column of all pairs."""
        return [column[place] for place in self.places.tolist()]

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> Credit: ...
    @overload
    def __getitem__(self, index: slice) -> "CreditRows": ...
    def __getitem__(self, index: int | slice) -> "Credit | CreditRows":
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        margin = float(self.margin[index])
        return Credit(
            row=self.pairs[int(self.places[index])],
            credit=float(self.credit[index]),
            strict=float(self.strict[index]),
            margin=None if np.isnan(margin) else margin,
            records=tuple(self.records[place] for place in self.behind[index].tolist() if place >= 0),
        )

    def __iter__(self) -> Iterator[Credit]:
        return (self[index] for index in range(len(self)))


class Credits(NamedTuple):
    """One context's credits, and what is missing from them."""

    rows: CreditRows
    invalid: int
    """Records without a readable verdict."""
    failed: int
    """Records without an answer."""
    reasons: Counter[str]
    """Reasons why pairs have no verdict, with their counts."""
    missing: int
    """Pairs without a credit, for whatever reason."""


def credits_by_context(
    rows: Iterable[PairRow], records: Iterable[Record], contexts: Sequence[str], expected: int
) -> dict[str, Credits]:
    """Sort records by context and pair, and reduce each pair to its credit.

    Args:
        rows: All pairs of the run; one without records counts as missing.
        records: All records of the run.
        contexts: Which contexts to return, in order.
        expected: Records that make a pair complete (orders × repeats).
    """
    pairs, kept = PairRows.of(rows), Records.of(records)
    place_of = pairs.place
    places = np.array([place_of.get(pair, -1) for pair in kept.column("pair")], dtype=np.int64)
    number = {context: code for code, context in enumerate(contexts)}
    codes = np.array([number.get(context, -1) for context in kept.column("context")], dtype=np.int64)
    codes[places < 0] = -1
    return {context: _credits(pairs, kept, places, codes == code, expected) for context, code in number.items()}


def _credits(pairs: PairRows, records: Records, places: Codes, mask: NDArray[np.bool_], expected: int) -> Credits:
    found = np.flatnonzero(mask)
    repeats = records.numbers("repeat")[found] if len(found) else np.empty(0, dtype=np.int64)
    order = np.lexsort((records.orders[found], repeats, places[found]))
    found, repeats = found[order], repeats[order]
    earned, margins = records.earned[found], records.margins[found]
    size = len(pairs)
    count = np.bincount(places[found], minlength=size)
    unread = np.bincount(places[found], weights=np.isnan(earned), minlength=size)
    complete = (count >= max(expected, 1)) & (unread == 0)
    inside = complete[places[found]]
    rows = _reduced(pairs, records, places, found[inside], repeats[inside], earned[inside], margins[inside])
    statuses, reasons = records.column("status"), records.column("reason")
    bad = [place for place in found.tolist() if statuses[place] != "ok"]
    counts = Counter(statuses[place] for place in bad)
    why = Counter(reasons[place] or statuses[place] for place in bad)
    return Credits(rows, counts["invalid"], counts["failed"], why, size - int(complete.sum()))


def _reduced(
    pairs: PairRows, records: Records, places: Codes, found: Codes, repeats: Codes, earned: Floats, margins: Floats
) -> CreditRows:
    """One credit for each pair; records come sorted by pair, repeat and order, and all of them have a verdict."""
    whose = places[found]
    new_pair = np.flatnonzero(np.diff(whose, prepend=-1))
    pair = np.cumsum(np.diff(whose, prepend=-1) != 0) - 1
    new_repeat = (np.diff(whose, prepend=-1) != 0) | (np.diff(repeats, prepend=-1) != 0)
    repeat = np.cumsum(new_repeat) - 1
    by_repeat = _earned(repeat, earned, margins)
    pair_of_repeat = pair[np.flatnonzero(new_repeat)]
    size = len(new_pair)
    count = np.bincount(pair, minlength=size)
    behind = np.full((size, int(count.max(initial=0))), -1, dtype=np.int64)
    behind[pair, np.arange(len(found)) - np.repeat(new_pair, count)] = found
    return CreditRows(
        pairs,
        whose[new_pair],
        np.bincount(pair_of_repeat, weights=by_repeat, minlength=size) / np.bincount(pair_of_repeat, minlength=size),
        (np.bincount(pair, weights=earned == 1.0, minlength=size) == count).astype(np.float64),
        np.bincount(pair, weights=margins, minlength=size) / count,
        records,
        behind,
    )


def _earned(repeat: Codes, earned: Floats, margins: Floats) -> Floats:
    """The credit of each repeat: by the sum of its margins where all orders have one, else the mean of its credits."""
    total = np.bincount(repeat, weights=margins)
    mean = np.bincount(repeat, weights=earned) / np.maximum(np.bincount(repeat), 1)
    found: Floats = np.where(np.isnan(total), mean, (1 + np.sign(total)) / 2)
    return found
