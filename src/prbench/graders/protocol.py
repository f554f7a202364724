"""Protocol of a rubric judge: what it is asked and what it answers.

A judge stands on the other side of the leak guard: it is shown the user's true rubric, which no reward model ever is,
and says how far an answer meets each line of it. What it cannot say is a status with a reason, never a number.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from pydantic import model_validator

from prbench.config import digest
from prbench.models import ModelCard
from prbench.types import Aspect, Frozen, Pair, Status

HIGHEST = 2.0
"""Highest grade of an aspect: 0 (missed), 1 (met in part) or 2 (met), as in LaMP-QA and the paper."""


@dataclass(frozen=True, slots=True, eq=False)
class Grading:
    """One answer to be held against one user's rubric; equal where nothing that a judge looks at differs.

    Example:
        >>> grading = Grading("Tea?", "Green.", (Aspect(aspect="Names one kind"),))
        >>> grading == Grading("Tea?", "Green.", (Aspect(aspect="Names one kind"),), {"split": "test"})
        True
    """

    question: str
    answer: str
    aspects: tuple[Aspect, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of the pair. `axis` and `pole` say what this user wants, joined by `+` where there are several."""

    @classmethod
    def of(cls, pair: Pair, answer: str, tags: Mapping[str, str] | None = None) -> Self:
        """Hold an answer against a pair's rubric; `tags` in place of the pair's own where they say more."""
        return cls(pair.question, answer, pair.rubric_aspects, pair.tags if tags is None else tags)

    def key(self, judge: "RubricJudge") -> str:
        """Content hash over who judges and what: equal gradings are one call, in this study and in the next."""
        who = list(judge.card.identity.values())
        question, answer, aspects, *wanted = self._content
        return digest([who, question, answer, [aspect.model_dump() for aspect in aspects], wanted])[:32]

    @property
    def _content(self) -> tuple[str, str, tuple[Aspect, ...], str, str]:
        return (self.question, self.answer, self.aspects, self.tags.get("axis", ""), self.tags.get("pole", ""))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grading) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)


class Grade(Frozen):
    """Measure of how far one answer meets a rubric.

    Example:
        >>> Grade.given([2, 1, 2]).score
        1.6666666666666667
        >>> Grade.invalid("no list").score is None
        True
    """

    status: Status
    aspects: tuple[float, ...] = ()
    """Numbers from 0 to 2, one for each aspect (a stance probe: for each axis); none unless the status is `ok`."""
    reason: str = ""
    """Reason why the grade is invalid (answered, but unreadable, or not to be answered) or failed (no answer)."""
    raw: str = ""
    """The judge's words, where it has any."""
    tokens_in: int = 0
    tokens_out: int = 0
    latency_ms: float = 0.0
    cost_usd: float = 0.0

    @model_validator(mode="after")
    def _numbers_only_where_ok(self) -> Self:
        if (self.status == "ok") != bool(self.aspects):
            raise ValueError(f"a grade that is {self.status} has {len(self.aspects)} numbers")
        if any(not 0 <= value <= HIGHEST for value in self.aspects):  # NaN is not, either
            raise ValueError(f"grades {self.aspects} are not all from 0 to {HIGHEST:g}")
        return self

    @classmethod
    def given(cls, aspects: Sequence[float], **usage: float | str) -> Self:
        """A grade for every aspect."""
        return cls.model_validate({"status": "ok", "aspects": tuple(map(float, aspects)), **usage})

    @classmethod
    def invalid(cls, reason: str, **usage: float | str) -> Self:
        """The judge answered, but not with a grade, or cannot grade this at all."""
        return cls.model_validate({"status": "invalid", "reason": reason, **usage})

    @classmethod
    def failed(cls, reason: str, **usage: float | str) -> Self:
        """The judge did not answer; worth asking again."""
        return cls.model_validate({"status": "failed", "reason": reason, **usage})

    @property
    def score(self) -> float | None:
        """Mean over the aspects, 0 to 2; None unless there is a grade."""
        return math.fsum(self.aspects) / len(self.aspects) if self.aspects else None


class RubricJudge(Protocol):
    """Grades answers aspect by aspect."""

    @property
    def card(self) -> ModelCard:
        """Description of the judge, with everything that could change a grade."""
        ...

    def refuses(self, grading: Grading) -> str | None:
        """Return the reason why this judge cannot grade this, known without a call; None where it can."""
        ...

    def forecast(self, gradings: Sequence[Grading]) -> int:
        """Tokens that the judge will read for these, at most; known without a call."""
        ...

    def grade(self, gradings: Sequence[Grading]) -> Iterator[tuple[int, Grade]]:
        """Grade each; yields `(position in gradings, grade)` once each, in any order."""
        ...
