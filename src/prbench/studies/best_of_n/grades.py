"""Grades: what each candidate is truly worth to each user, by a judge that sees the rubric; asked once, kept at once.

Before the first grade, the judge is examined on the suite's labelled answers: its accuracy is printed with every study,
and one that cannot be told from guessing ranks nothing. The same examination gives the speed for the budget.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from prbench.calls import Budget, Journal, in_chunks
from prbench.config import digest
from prbench.data import Suite, fingerprint
from prbench.errors import StudyError
from prbench.files import check_model
from prbench.graders import Grade, Grading, RubricJudge, examine, rubric_tags
from prbench.studies.best_of_n.candidates import Candidate
from prbench.studies.best_of_n.items import StudyItem
from prbench.studies.best_of_n.scores import ItemCandidate
from prbench.studies.study import Judge, StudyEstimate
from prbench.texts import is_degenerate
from prbench.types import Frozen, Pair

FILE = "grades.jsonl"


class Graded(Frozen):
    """One line of `grades.jsonl`."""

    item: str
    candidate: str
    key: str
    """Content hash over who judged what, under which rubric."""
    grade: Grade

    @property
    def place(self) -> ItemCandidate:
        """Place of the candidate: its item and its number."""
        return (self.item, self.candidate)


class Exam(Frozen):
    """Examination of a judge: `judge.json`."""

    key: str
    """Content hash over the judge, the pairs it was examined on and their rubrics."""
    judge: Judge
    missing: Mapping[str, int] = {}
    """Pairs that the judge did not grade, by reason."""
    gradings: int
    seconds: float

    @property
    def seconds_each(self) -> float:
        """Time of one grading."""
        return self.seconds / max(self.gradings, 1)


class JudgingEstimate(NamedTuple):
    """Estimate of what judging will take."""

    calls: int
    tokens: int
    seconds: float
    """Estimated from the speed in the examination."""


def examine_judge(judge: RubricJudge, split: Sequence[Pair], limit: int, known: Any = None, *, seed: int = 0) -> Exam:
    """Measure a judge's accuracy on labelled pairs, or take what is known of the same judge, pairs and rubrics.

    Args:
        judge: Judge that is examined.
        split: All pairs of the split that is studied; they give the rubrics, as they do for the study's items.
        limit: Most pairs to grade.
        known: An earlier examination, as in `judge.json`.
        seed: Of the sample and of the interval.
    """
    card, pairs, whole = judge.card, list(Suite.of(split).limit(limit, seed)), rubric_tags(split)
    tags = {pair.id: whole[pair.id] for pair in pairs}
    key = digest([*card.identity.values(), fingerprint(pairs), tags, seed])[:32]
    if isinstance(known, Mapping) and known.get("key") == key:
        hint = "remove the file, and the judge is examined again"
        return check_model(known, Exam, "judge.json", raises=StudyError, hint=hint)
    found = examine(judge, pairs, tags=tags, seed=seed)
    accuracy = found.accuracy
    if accuracy.value is None:
        first = next(iter(found.missing), "no pair was graded")
        raise StudyError(
            f"judge {card.address!r} graded none of {len(pairs)} labelled pairs: {first}", hint="name another judge"
        )
    measured = StudyEstimate(value=accuracy.value, low=accuracy.low, high=accuracy.high, n=accuracy.n)
    return Exam(
        key=key,
        judge=Judge(address=card.address, accuracy=measured),
        missing=dict(found.missing),
        gradings=found.gradings,
        seconds=found.seconds,
    )


def read_grades(path: Path) -> dict[tuple[ItemCandidate, str], Graded]:
    """Grades by place and key, a later line in the place of an earlier one."""
    return _journal(path).answers


def _journal(path: Path) -> Journal[tuple[ItemCandidate, str], Graded]:
    hint = "remove the line, and it is judged again"
    return Journal(path, Graded, lambda graded: (graded.place, graded.key), raises=StudyError, hint=hint)


class Judging:
    """Gradings that are still to be made.

    Args:
        judge: Judge that grades.
        items: Questions of users.
        candidates: Candidates by item.
        path: File that keeps the grades.
    """

    def __init__(
        self, judge: RubricJudge, items: Sequence[StudyItem], candidates: Mapping[str, Sequence[Candidate]], path: Path
    ) -> None:
        self._judge = judge
        self._journal = _journal(path)
        self._by_key = {graded.key: graded.grade for graded in self._journal.answers.values()}
        self._found: dict[ItemCandidate, Graded] = {}
        self._asked: dict[str, Grading] = {}
        self._waiting: dict[str, list[ItemCandidate]] = defaultdict(list)
        for item in items:
            for candidate in candidates[item.id]:
                if candidate.status == "ok":
                    self._add((item.id, candidate.key), item.grading(candidate.text))

    def estimate(self, exam: Exam) -> JudgingEstimate:
        """Return what the open gradings will take, known before the first of them."""
        gradings = list(self._asked.values())
        return JudgingEstimate(len(gradings), self._judge.forecast(gradings), len(gradings) * exam.seconds_each)

    def grade(
        self, heard: Callable[[int, int], None] = lambda done, total: None, budget: Budget | None = None
    ) -> dict[ItemCandidate, Graded]:
        """Grade what is open, line by line on disk, and return the grade of every place."""
        budget, total = budget or Budget(), len(self._asked)
        with self._journal as journal, budget.metering("grades"):
            journal.open()
            for place, graded in self._found.items():
                if (place, graded.key) not in journal.answers:
                    journal.keep(graded)
            with closing(in_chunks(self._asked, self._judge.grade)) as grades:
                for done, (key, grade) in enumerate(grades, start=1):
                    for item, candidate in self._waiting[key]:
                        graded = Graded(item=item, candidate=candidate, key=key, grade=grade)
                        journal.keep(graded)
                        self._found[graded.place] = graded
                    heard(done, total)
                    budget.take(grade.cost_usd, more=done < total)
        return self._found

    def _add(self, place: ItemCandidate, grading: Grading) -> None:
        key = grading.key(self._judge)
        known = self._by_key.get(key)
        if is_degenerate(grading.answer):  # whatever a judge would make of it
            known = Grade.given([0.0] * max(1, len(grading.aspects)))
        if known is None or known.status == "failed":
            self._asked.setdefault(key, grading)
            self._waiting[key].append(place)
        else:
            item, candidate = place
            self._found[place] = Graded(item=item, candidate=candidate, key=key, grade=known)
