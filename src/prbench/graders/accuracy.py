"""Accuracy of a judge where the answer is known: on the suite's own labelled answers, under the true rubric.

A judge's accuracy stands beside every number it makes. One that cannot be told from guessing ranks nothing.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from prbench.errors import DataError, StudyError
from prbench.graders.protocol import Grade, Grading, RubricJudge
from prbench.stats import Clusters, Estimate, mean_interval
from prbench.types import Pair


class Examination(NamedTuple):
    """Results of a judge on labelled pairs."""

    accuracy: Estimate
    """Share of pairs whose chosen answer got the higher score, ties ½; clustered by couple (or user) and question."""
    missing: Mapping[str, int]
    """Pairs without two grades, by reason: they are not in the accuracy."""
    gradings: int
    """Distinct answers graded under distinct rubrics."""
    seconds: float

    def to_json(self) -> dict[str, object]:
        """As JSON values, at full precision."""
        return {**self._asdict(), "accuracy": self.accuracy.to_json(), "missing": dict(self.missing)}


class Accuracy(Protocol):
    """A value with its lower bound: an `Estimate`, or what a study keeps of one."""

    @property
    def value(self) -> float | None:
        """Share of pairs that the judge got right."""
        ...

    @property
    def low(self) -> float | None:
        """Lower bound of the share."""
        ...


def examine(
    judge: RubricJudge, pairs: Sequence[Pair], *, tags: Mapping[str, Mapping[str, str]] | None = None, seed: int = 0
) -> Examination:
    """Let a judge grade both answers of every pair; equal gradings are asked once.

    Args:
        judge: Judge that is examined.
        pairs: With their labels; for a judge that was trained, none that it was trained on.
        tags: The rubrics, by pair id, as `rubric_tags` finds them. Needed where the pairs are a sample: a pair that was
            left out may name an axis of the same rubric.
        seed: Seed of the interval's resampling.
    """
    tags = rubric_tags(pairs) if tags is None else tags
    asked = [tuple(Grading.of(pair, text, tags[pair.id]) for text in (pair.chosen, pair.rejected)) for pair in pairs]
    distinct = list(dict.fromkeys(grading for both in asked for grading in both))
    began = time.perf_counter()
    grades = {distinct[index]: grade for index, grade in judge.grade(distinct)}
    seconds = time.perf_counter() - began
    credits = [_credit(grades[chosen], grades[rejected]) for chosen, rejected in asked]
    rows = [place for place, credit in enumerate(credits) if isinstance(credit, float)]
    clusters = Clusters.of(
        [pairs[row].tags.get("couple", pairs[row].user) for row in rows], [pairs[row].question for row in rows]
    )
    accuracy = mean_interval(
        [credits[row] for row in rows],
        clusters,
        np.random.default_rng(seed),
        bounds=(0.0, 1.0),
    )
    missing = Counter(credit for credit in credits if isinstance(credit, str))
    return Examination(accuracy, missing, len(distinct), seconds)


def judge_accuracy(judge: RubricJudge, pairs: Sequence[Pair], *, seed: int = 0) -> Estimate:
    """Return the share of pairs whose chosen answer gets more than the rejected one; `examine` tells which lack one."""
    return examine(judge, pairs, seed=seed).accuracy


def require_able(accuracy: Accuracy, chance: float = 0.5, *, judge: str = "the judge") -> None:
    """Refuse to rank by a judge that cannot be told from guessing.

    Example:
        >>> require_able(Estimate(0.52, 0.44, 0.6, 200), judge="lm:tiny")
        Traceback (most recent call last):
        prbench.errors.StudyError: lm:tiny is at chance: accuracy 0.520 with lower bound 0.440, guessing gives 0.5
        ...
    """
    if accuracy.low is not None and accuracy.low > chance:
        return
    value, low = ("unknown" if found is None else f"{found:.3f}" for found in (accuracy.value, accuracy.low))
    raise StudyError(
        f"{judge} is at chance: accuracy {value} with lower bound {low}, guessing gives {chance:g}",
        hint="no ranking follows from such a judge; take a better one or more labelled answers to test it on",
    )


def _credit(chosen: Grade, rejected: Grade) -> float | str:
    """1, ½ or 0; or why there is none."""
    if chosen.score is None or rejected.score is None:
        return next(grade.reason for grade in (chosen, rejected) if grade.score is None)
    return (float(np.sign(chosen.score - rejected.score)) + 1) / 2


def rubric_tags(pairs: Sequence[Pair]) -> dict[str, dict[str, str]]:
    """Return tags for each pair, by id, that name *all* axes of its user's rubric for its question.

    A pair's own tags name what decides between its two answers; an answer that another author wrote is held against
    the whole rubric, so the axes of all pairs of the same user and question are joined.

    Example:
        >>> answers = {"user": "ann", "question": "Tea?", "chosen": "Green.", "rejected": "Black."}
        >>> one = Pair(id="1", tags={"axis": "spend", "pole": "time"}, **answers)
        >>> two = Pair(id="2", tags={"axis": "pace", "pole": "slow"}, **answers)
        >>> rubric_tags([one, two])["2"]
        {'axis': 'spend+pace', 'pole': 'time+slow'}
    """
    whole: dict[tuple[str, str], dict[str, str]] = {}
    for pair in pairs:
        found = whole.setdefault((pair.user, pair.question), {})
        for axis, pole in pair.stances.items():
            if found.setdefault(axis, pole) != pole:
                raise DataError(f"pair {pair.id!r}: user {pair.user!r} wants both poles of axis {axis!r}")
    joined = {place: _joined(found) for place, found in whole.items()}
    return {pair.id: {**pair.tags, **joined[pair.user, pair.question]} for pair in pairs}


def _joined(found: Mapping[str, str]) -> dict[str, str]:
    return {"axis": "+".join(found), "pole": "+".join(found.values())} if found else {}
