"""From records to credits: what a model earned on each pair, context by context.

A pair counts once, whatever the number of orders and repeats behind it, and only if all of them gave a verdict. Where a
Comparer gives log-odds, the two orders are averaged before deciding, which takes a constant liking for a position out;
where it gives bare verdicts, their credits are averaged, so a verdict that flips with the order is a tie.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from prbench.data.fingerprint import hash_text
from prbench.types import Count, Frozen, Pair, Record, read_stances


class PairRow(Frozen):
    """What the statistics need of a pair: labels and lengths, no text. One line of a run's `pairs.jsonl`."""

    id: str
    user: str
    question: str
    """Content hash."""
    answers: str = ""
    """Content hash of chosen and rejected answer."""
    category: str = ""
    tags: Mapping[str, str] = {}
    chosen_words: Count
    rejected_words: Count

    @classmethod
    def of(cls, pair: Pair) -> "PairRow":
        """Reduce a pair to its row."""
        return cls(
            id=pair.id,
            user=pair.user,
            question=hash_text(pair.question)[:16],
            answers=hash_text(f"{pair.chosen}\x00{pair.rejected}")[:16],
            category=pair.category,
            tags=dict(pair.tags),
            chosen_words=len(pair.chosen.split()),
            rejected_words=len(pair.rejected.split()),
        )

    @property
    def content(self) -> tuple[str, str, str, str]:
        """What makes a pair the same pair in two runs."""
        return (self.id, self.user, self.question, self.answers)

    @property
    def item(self) -> str:
        """What is asked: the pair of items where a suite says so, for all may share a question; else the question."""
        return self.tags.get("item_pair", self.question)

    @property
    def stances(self) -> dict[str, str]:
        """What decides the pair and which pole its user wants there, by axis."""
        return read_stances(self.tags)

    @property
    def unit(self) -> str:
        """What is independent of what: the couple where users come in couples, else the user."""
        return self.tags.get("couple", self.user)


class Credit(NamedTuple):
    """What a model earned on one pair in one context."""

    row: PairRow
    credit: float
    strict: float
    """1 only if every verdict, in every order and repeat, was right."""
    margin: float | None
    """Mean preference for the chosen answer, where the model gives one."""
    records: tuple[Record, ...]


class Credits(NamedTuple):
    """One context's credits, and what is missing from them."""

    rows: list[Credit]
    invalid: list[Record]
    failed: list[Record]
    missing: int
    """Pairs without a credit, for whatever reason."""


def credits_by_context(
    rows: Sequence[PairRow], records: Iterable[Record], contexts: Sequence[str], expected: int
) -> dict[str, Credits]:
    """Sort records by context and pair, and reduce each pair to its credit.

    Args:
        rows: All pairs of the run; one without records counts as missing.
        records: All records of the run.
        contexts: Which contexts to return, in order.
        expected: Records that make a pair complete (orders × repeats).
    """
    found: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        found[record.context][record.pair].append(record)
    return {context: _credits(rows, found[context], expected) for context in contexts}


def _credits(rows: Sequence[PairRow], by_pair: Mapping[str, list[Record]], expected: int) -> Credits:
    credits = Credits([], [], [], 0)
    missing = 0
    for row in rows:
        records = sorted(by_pair.get(row.id, ()), key=lambda record: (record.repeat, record.order))
        credits.invalid.extend(record for record in records if record.status == "invalid")
        credits.failed.extend(record for record in records if record.status == "failed")
        if len(records) < expected or any(record.credit is None for record in records):
            missing += 1
        else:
            credits.rows.append(_credit(row, records))
    return credits._replace(missing=missing)


def _credit(row: PairRow, records: Sequence[Record]) -> Credit:
    by_repeat: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        by_repeat[record.repeat].append(record)
    earned = [_earned(group) for group in by_repeat.values()]
    margins = [record.margin for record in records if record.margin is not None]
    return Credit(
        row=row,
        credit=sum(earned) / len(earned),
        strict=float(all(record.credit == 1.0 for record in records)),
        margin=sum(margins) / len(margins) if len(margins) == len(records) else None,
        records=tuple(records),
    )


def _earned(orders: Sequence[Record]) -> float:
    margins = [record.margin for record in orders if record.margin is not None]
    if len(margins) == len(orders):
        total = sum(margins)
        return 1.0 if total > 0 else 0.0 if total < 0 else 0.5
    return sum(record.credit or 0.0 for record in orders) / len(orders)
