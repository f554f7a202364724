"""Journal of what a model wrote, line by line: the memory of a build, and the raw material of what is published."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from prbench.types import Frozen, Outcome


class CallTotals(NamedTuple):
    """Sums over calls: their number, tokens and cost."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: object) -> "CallTotals":
        """Return the sum of two totals.

        Example:
            >>> CallTotals(1, 10, 5, 0.5) + CallTotals(1, 1, 1, 0.25)
            CallTotals(calls=2, tokens_in=11, tokens_out=6, cost_usd=0.75)
        """
        if not isinstance(other, CallTotals):
            return NotImplemented
        return CallTotals(*(one + two for one, two in zip(self, other, strict=True)))  # type: ignore[arg-type]


class ReplyLine(Frozen):
    """One line of the journal: a reply under the content hash of who was asked what, and how."""

    key: str
    status: Literal["ok", "invalid"]
    text: str = ""
    reason: str = ""
    """Reason why it is invalid, or that it was cut off."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0

    @classmethod
    def of(cls, key: str, outcome: Outcome) -> "ReplyLine":
        """A reply as it is kept; a failure is no reply."""
        return cls.model_validate(
            {
                "key": key,
                "status": outcome.status,
                "text": outcome.raw,
                **outcome.model_dump(include={"reason", "tokens_in", "tokens_out", "cost_usd"}),
            }
        )

    @property
    def usage(self) -> CallTotals:
        """Return the totals of this call."""
        return CallTotals(1, self.tokens_in, self.tokens_out, self.cost_usd)


def total(calls: Iterable[ReplyLine]) -> CallTotals:
    """Return the totals of all these calls together."""
    return sum((call.usage for call in calls), start=CallTotals())
