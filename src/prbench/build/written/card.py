"""Cards of a build: which model wrote with which prompts, what was kept, what was not and why."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from prbench.build.card import SourceFile
from prbench.build.written.journal import CallTotals
from prbench.build.written.replies import Decoding
from prbench.models import Generator
from prbench.types import Frozen


class Writer(Frozen):
    """Model that wrote, and the way it was asked."""

    address: str
    revision: str = ""
    parameters: Mapping[str, Any] = Field(default_factory=dict)
    decoding: Decoding
    prompts: Mapping[str, str]
    """Prompt file → SHA-256 of its text."""

    @classmethod
    def of(cls, generator: Generator, decoding: Decoding, prompts: Mapping[str, str]) -> "Writer":
        """Describe a generator and its prompts."""
        card = generator.card
        return cls(
            address=without_place(card.address),
            revision=card.revision,
            parameters=card.parameters,
            decoding=decoding,
            prompts=dict(sorted(prompts.items())),
        )


class Spent(Frozen):
    """Tokens and money of the replies behind a build, whenever they were written."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float

    @classmethod
    def of(cls, usage: CallTotals) -> "Spent":
        """Return the totals of a sum over calls."""
        return cls(**{**usage._asdict(), "cost_usd": round(usage.cost_usd, 6)})


class AspectsCard(Frozen):
    """`NAME.card.json` beside a file of aspects."""

    source: SourceFile
    users: int
    posts: int
    left_out: Mapping[str, int]
    """Counts of what was not used of the history, by reason."""
    questions: int
    """Number of questions asked about, kept and rejected together."""
    kept: int
    given: int
    """Number of those kept with aspects that the history brought itself."""
    rejected: Mapping[str, int]
    """Counts of rejected questions, by reason."""
    writer: Writer
    spent: Spent
    notes: tuple[str, ...] = ()
    version: str
    sha256: str = ""
    """Hash of the file of aspects as it was written: one that was edited since is not written over."""


def without_place(text: str) -> str:
    """Return a text that names a model without the place where it was served, which is private.

    Example:
        >>> without_place("chat:writer@http://10.0.0.7:8000/v1")
        'chat:writer'
    """
    return re.sub(r"@https?://[^\s)#]*", "", text)


def count_reasons(reasons: Iterable[str]) -> dict[str, int]:
    """Return the count of each kind of reason: without what it quotes and without its numbers.

    Example:
        >>> count_reasons(["12 words, over the limit of 9", "15 words, over the limit of 9", "empty reply"])
        {'N words, over the limit of N': 2, 'empty reply': 1}
    """
    kinds = Counter(re.sub(r"\d+", "N", reason.partition(":")[0]) for reason in reasons)
    return dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0])))
