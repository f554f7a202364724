"""The instructed pole: a truth that no judge made, namely for which wish an answer was written.

Where the policy writes under explicit poles, an answer is worth 2 on an axis to a user who wants the pole that it was
written for, and 0 to one who wants the other. Small policies do not always do as they are told, so how far the judge
agrees is measured and stands beside it, in the place of a judge's own examination.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from prbench.graders import HIGHEST, Grade
from prbench.stats import Clusters, mean_interval
from prbench.studies.best_of_n.candidates import Candidate
from prbench.studies.best_of_n.grades import Exam, Graded
from prbench.studies.best_of_n.items import StudyItem
from prbench.studies.best_of_n.scores import ItemCandidate
from prbench.studies.study import Judge, StudyEstimate
from prbench.texts import is_degenerate
from prbench.types import read_stances

ADDRESS = "instructed pole"

Candidates = Mapping[str, Sequence[Candidate]]


def instructed_grades(items: Sequence[StudyItem], candidates: Candidates) -> dict[ItemCandidate, Graded]:
    """Return the worth of every valid candidate to every user, by the poles that it was written under."""
    found = {}
    for item in items:
        for candidate in candidates[item.id]:
            if candidate.status == "ok":
                worth = [] if is_degenerate(candidate.text) else _worth(item, candidate)
                grade = Grade.given(worth or [0.0])
                found[item.id, candidate.key] = Graded(item=item.id, candidate=candidate.key, key=ADDRESS, grade=grade)
    return found


def _worth(item: StudyItem, candidate: Candidate) -> list[float]:
    return [HIGHEST * (candidate.poles.get(axis) == pole) for axis, pole in read_stances(item.tags).items()]


def truths_agree(
    items: Sequence[StudyItem],
    candidates: Candidates,
    judged: Mapping[ItemCandidate, Graded],
    *,
    seed: int = 0,
    resamples: int = 2000,
) -> StudyEstimate | None:
    """Return the share of two candidates that the judge orders as their instructions do, ties ½; None without any."""
    told = instructed_grades(items, candidates)
    shares, units, questions = [], [], []
    for item in items:
        places = [(item.id, one.key) for one in candidates[item.id] if (item.id, one.key) in told]
        credits = [
            float(np.sign(ours) * np.sign(theirs) + 1) / 2
            for one, two in combinations(places, 2)
            if (ours := _gap(told, one, two)) and (theirs := _gap(judged, one, two)) is not None
        ]
        if credits:
            shares.append(float(np.mean(credits)))
            units.append(item.unit)
            questions.append(item.question)
    if not shares:
        return None
    rng = np.random.default_rng(seed)
    found = mean_interval(shares, Clusters.of(units, questions), rng, resamples=resamples, bounds=(0.0, 1.0))
    if found.value is None:
        return None
    return StudyEstimate(value=found.value, low=found.low, high=found.high, n=found.n)


def _gap(grades: Mapping[ItemCandidate, Graded], one: ItemCandidate, two: ItemCandidate) -> float | None:
    scores = [grades[place].grade.score if place in grades else None for place in (one, two)]
    return None if scores[0] is None or scores[1] is None else scores[0] - scores[1]


def instructed_exam(agreement: StudyEstimate, exam: Exam) -> Exam:
    """The agreement in the place of a judge's accuracy."""
    return exam.model_copy(update={"judge": Judge(address=ADDRESS, accuracy=agreement), "missing": {}})
