"""Gates on the rubric: a judge who sees it prefers the chosen answer, and another judge agrees.

Answers are graded one at a time, without a word on which is which. What a judge cannot grade is unmeasured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prbench.build.draft import Draft
from prbench.build.gates.gate import ROUNDING, unmeasured
from prbench.graders import Grade, Grading, RubricJudge


class Unmeasured(str):
    """Reason why there is no margin."""

    __slots__ = ()


class Margins:
    """Margins of one judge on drafts; equal answers under equal rubrics are graded once for all gates."""

    def __init__(self, judge: RubricJudge) -> None:
        self.judge = judge
        self._grades: dict[Grading, Grade] = {}

    def of(self, drafts: Sequence[Draft]) -> dict[str, float | Unmeasured]:
        """Return by draft id the chosen answer's grade less the rejected one's, −2 to 2; or why there is none."""
        asked = {draft.id: [_grading(draft, text) for text in (draft.chosen, draft.rejected)] for draft in drafts}
        new = [grading for both in asked.values() for grading in both if grading not in self._grades]
        self._ask(list(dict.fromkeys(new)))
        return {name: self._margin(chosen, rejected) for name, (chosen, rejected) in asked.items()}

    def _ask(self, gradings: Sequence[Grading]) -> None:
        able = []
        for grading in gradings:
            if refusal := "the draft has no aspects" if not grading.aspects else self.judge.refuses(grading):
                self._grades[grading] = Grade.invalid(refusal)
            else:
                able.append(grading)
        if able:
            self._grades.update((able[index], grade) for index, grade in self.judge.grade(able))

    def _margin(self, chosen: Grading, rejected: Grading) -> float | Unmeasured:
        silent = Grade.failed("the judge gave no grade")
        scores = []
        for side, grading in (("chosen", chosen), ("rejected", rejected)):
            grade = self._grades.get(grading, silent)
            if grade.score is None:
                return Unmeasured(f"{side}: {grade.reason or grade.status}")
            scores.append(grade.score)
        return scores[0] - scores[1]


@dataclass(frozen=True)
class RubricMargin:
    """Mean grade over the aspects (0, 1 or 2 each): chosen is at least `least` above rejected."""

    margins: Margins
    least: float = 1.0

    name = "rubric-margin"

    @property
    def rule(self) -> str:
        """Rule of what passes."""
        return f"rubric grade of chosen − rejected ≥ {self.least:.2f} (of 2, by {self.margins.judge.card.address})"

    def check(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Grade both answers against the draft's own aspects."""
        reasons = {}
        for name, margin in self.margins.of(drafts).items():
            if isinstance(margin, Unmeasured):
                reasons[name] = unmeasured(margin)
            elif margin < self.least - ROUNDING:
                reasons[name] = f"rubric margin {margin:+.2f} < {self.least:.2f}"
        return reasons


@dataclass(frozen=True)
class TwoRaters:
    """Two judges agree on the sign of the margin: both give the chosen answer more than the rejected one."""

    one: Margins
    other: Margins

    name = "agreement"

    @property
    def rule(self) -> str:
        """Rule of what passes."""
        return f"{self.one.judge.card.address} and {self.other.judge.card.address} prefer the same answer"

    def check(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Compare the signs of both margins; a judge who sees no difference does not agree with one who does."""
        one, other = self.one.of(drafts), self.other.of(drafts)
        found = ((name, _disagreement(one[name], other[name])) for name in one)
        return {name: reason for name, reason in found if reason}


def _disagreement(one: float | Unmeasured, other: float | Unmeasured) -> str:
    for margin in (one, other):
        if isinstance(margin, Unmeasured):
            return unmeasured(margin)
    signs = {_sign(float(margin)) for margin in (one, other)}
    if signs == {1}:
        return ""
    if signs == {-1}:
        why = "both judges prefer rejected"
    else:
        why = "not both judges see a difference" if 0 in signs else "the judges contradict each other"
    return f"margins {one:+.2f} and {other:+.2f}: {why}"


def _sign(margin: float) -> int:
    return (margin > ROUNDING) - (margin < -ROUNDING)


def _grading(draft: Draft, answer: str) -> Grading:
    # The tags may say which side is wanted, so only what the judge's protocol names is handed on.
    wanted: Mapping[str, str] = {name: draft.tags[name] for name in ("axis", "pole") if name in draft.tags}
    return Grading(draft.question, answer, draft.aspects, wanted)
