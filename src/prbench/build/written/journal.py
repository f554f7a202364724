"""What a model wrote, kept line by line: the memory of a build, and the raw material behind what is published."""

from pathlib import Path
from typing import Literal, NamedTuple

from prbench.errors import RunError
from prbench.files import read_models
from prbench.types import Frozen, Outcome


class Usage(NamedTuple):
    """What calls took."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: object) -> "Usage":
        """Both together.

        Example:
            >>> Usage(1, 10, 5, 0.5) + Usage(1, 1, 1, 0.25)
            Usage(calls=2, tokens_in=11, tokens_out=6, cost_usd=0.75)
        """
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(*(one + two for one, two in zip(self, other, strict=True)))  # type: ignore[arg-type]


class Call(Frozen):
    """One line of the journal: a reply under the content hash of who was asked what, and how."""

    key: str
    status: Literal["ok", "invalid"]
    text: str = ""
    reason: str = ""
    """Why it is invalid, or that it was cut off."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0

    @classmethod
    def of(cls, key: str, outcome: Outcome) -> "Call":
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
    def usage(self) -> Usage:
        """What this call took."""
        return Usage(1, self.tokens_in, self.tokens_out, self.cost_usd)


def read_journal(path: Path) -> dict[str, Call]:
    """All whole lines by key; a torn last line is passed over, and cut off before the next is written."""
    hint = "remove the line; its request is sent again"
    return {call.key: call for call in read_models(path, Call, raises=RunError, hint=hint)}


def total(calls: dict[str, Call]) -> Usage:
    """What all these calls took together."""
    return sum((call.usage for call in calls.values()), start=Usage())
