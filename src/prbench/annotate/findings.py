"""Findings of a study: quality, preference, agreement, the claim; each number with n and interval.

Rows are clustered by annotator and by pair (pairs with the same texts count as one), so intervals speak of other people
and other pairs than these. With few annotators they are wide, and should be.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prbench.annotate.agreement import Label, fleiss, krippendorff_nominal, krippendorff_ordinal, with_interval
from prbench.annotate.answer import DIMENSIONS
from prbench.annotate.claim import Equivalence, StudyClaim, judge, judge_preference, judge_quality, tost
from prbench.annotate.content import AnnotatorJudgment, AnnotatorSummary, Side, StudyContent, read_content
from prbench.annotate.store import Store
from prbench.annotate.study import AnnotationStudy
from prbench.stats import Clusters, Estimate, difference_interval, mean_interval, wilson

RESAMPLES = 2000
_SIDES: tuple[Side, ...] = ("chosen", "rejected")


@dataclass(frozen=True, slots=True)
class DimensionFinding:
    """General quality in one dimension, from 1 to 5."""

    chosen: Estimate
    rejected: Estimate
    difference: Estimate
    equivalence: Equivalence
    alpha: Estimate
    """Krippendorff's ordinal α between annotators."""

    def to_json(self) -> dict[str, object]:
        """Return all numbers as JSON values."""
        estimates = {name: getattr(self, name).to_json() for name in ("chosen", "rejected", "difference", "alpha")}
        return {**estimates, "equivalence": self.equivalence.to_json()}


@dataclass(frozen=True, slots=True)
class PreferenceFinding:
    """Preferences of the annotators."""

    agreement: Estimate | None
    """Share that meets the label, ½ where they could not tell; None in mode self, where labels are other people's."""
    decided: Estimate
    """Share of judgments in which the annotator could tell."""
    first_shown: Estimate
    """Share of decided judgments that prefer the answer shown first: ½ without position bias."""
    alpha: Estimate
    kappa: Estimate
    disputed: int
    """Pairs of which each answer is preferred by some annotator."""
    mirrored: int
    """Judgments that can be paired off with an opposite one on the same pair."""

    def to_json(self) -> dict[str, object]:
        """Return all numbers as JSON values."""
        estimates = {name: getattr(self, name).to_json() for name in ("decided", "first_shown", "alpha", "kappa")}
        agreement = self.agreement.to_json() if self.agreement else None
        return {"agreement": agreement, **estimates, "disputed": self.disputed, "mirrored": self.mirrored}


@dataclass(frozen=True, slots=True)
class PersonFinding:
    """Findings on one annotator."""

    person: AnnotatorSummary
    changed: int
    """Answers that were changed after they were saved."""
    agreement: Estimate | None

    def to_json(self) -> dict[str, object]:
        """Return the finding as JSON values."""
        agreement = self.agreement.to_json() if self.agreement else None
        return {**self.person._asdict(), "changed": self.changed, "agreement": agreement}


@dataclass(frozen=True, slots=True)
class StudyFindings:
    """The report of a study."""

    study: AnnotationStudy
    judgments: int
    annotators: int
    """Number of people who have judged at least one pair."""
    pairs: int
    """Number of pairs that were judged."""
    texts: int
    """Number of these that differ in question or answers: the halves of a mirror couple do not."""
    quality: Mapping[str, DimensionFinding]
    """Findings by dimension; empty in mode self."""
    preference: PreferenceFinding
    people: tuple[PersonFinding, ...]
    claim: StudyClaim | None
    """Claim of the study; None in mode self."""

    def to_json(self) -> dict[str, object]:
        """The report as `--format json` prints it."""
        return {
            "study": self.study.model_dump(mode="json"),
            "counts": {
                "judgments": self.judgments,
                "annotators": self.annotators,
                "pairs": self.pairs,
                "texts": self.texts,
            },
            "quality": {name: found.to_json() for name, found in self.quality.items()},
            "preference": self.preference.to_json(),
            "people": [person.to_json() for person in self.people],
            "claim": self.claim.to_json() if self.claim else None,
        }


def find(store: Store, *, margin: float = 0.5, seed: int = 0, resamples: int = RESAMPLES) -> StudyFindings:
    """Work out the report of a study.

    Args:
        store: The study's file; people may still be at work in it.
        margin: The largest difference of ratings that counts as equal quality.
        seed: Seed of the bootstrap.
        resamples: Behind each interval.
    """
    found = read_content(store)
    scored = found.study.mode == "pairs"
    quality = {name: _dimension(found.judgments, name, margin, seed, resamples) for name in DIMENSIONS if scored}
    preference = _preference(found.judgments, scored, seed, resamples)
    annotators = len({judgment.annotator for judgment in found.judgments})
    pairs = len({judgment.pair for judgment in found.judgments})
    texts = len({judgment.texts for judgment in found.judgments})
    claim = None
    if preference.agreement is not None:
        states = {name: judge_quality(each.difference, each.equivalence) for name, each in quality.items()}
        claim = judge(annotators, texts, states, judge_preference(preference.agreement), margin)
    people = tuple(_person(found, person, scored) for person in found.people)
    return StudyFindings(
        found.study, len(found.judgments), annotators, pairs, texts, quality, preference, people, claim
    )


def _dimension(
    judgments: Sequence[AnnotatorJudgment], dimension: str, margin: float, seed: int, resamples: int
) -> DimensionFinding:
    clusters = _clusters(judgments)
    rated = {side: [float(getattr(each.scores(side), dimension)) for each in judgments] for side in _SIDES}
    means = [
        mean_interval(rated[side], clusters, np.random.default_rng(seed), resamples=resamples, bounds=(1.0, 5.0))
        for side in _SIDES
    ]
    difference = difference_interval(
        rated["chosen"],
        rated["rejected"],
        clusters,
        np.random.default_rng(seed),
        resamples=resamples,
        bounds=(-4.0, 4.0),
    )
    equivalence = tost(np.subtract(rated["chosen"], rated["rejected"]), clusters, margin)
    labels = [
        Label(each.annotator, f"{each.pair}\0{side}", int(rated[side][row]), each.texts)
        for side in _SIDES
        for row, each in enumerate(judgments)
    ]
    return DimensionFinding(means[0], means[1], difference, equivalence, with_interval(krippendorff_ordinal, labels))


def _preference(judgments: Sequence[AnnotatorJudgment], labelled: bool, seed: int, resamples: int) -> PreferenceFinding:
    decided = [each for each in judgments if each.verdict != "unsure"]
    labels = [Label(each.annotator, each.pair, each.wanted, each.texts) for each in judgments]
    first = [float(each.answer.preference == "first") for each in decided]
    sides = _sides(decided)
    return PreferenceFinding(
        agreement=_share([each.credit for each in judgments], judgments, seed, resamples) if labelled else None,
        decided=_share([float(each.verdict != "unsure") for each in judgments], judgments, seed, resamples),
        first_shown=_share(first, decided, seed, resamples),
        alpha=with_interval(krippendorff_nominal, labels),
        kappa=with_interval(fleiss, labels),
        disputed=sum(min(chosen, rejected) > 0 for chosen, rejected in sides),
        mirrored=sum(2 * min(chosen, rejected) for chosen, rejected in sides),
    )


def _person(found: StudyContent, person: AnnotatorSummary, labelled: bool) -> PersonFinding:
    own = [each for each in found.judgments if each.annotator == person.id]
    agreement = wilson(sum(each.credit for each in own), len(own)) if labelled else None
    return PersonFinding(person, sum(each.version > 1 for each in own), agreement)


def _sides(decided: Sequence[AnnotatorJudgment]) -> list[tuple[int, int]]:
    """Return for each pair how many prefer either answer."""
    counts = Counter((each.pair, each.verdict) for each in decided)
    return [(counts[pair, "chosen"], counts[pair, "rejected"]) for pair in dict.fromkeys(each.pair for each in decided)]


def _clusters(judgments: Sequence[AnnotatorJudgment]) -> Clusters:
    return Clusters.of([each.annotator for each in judgments], [each.texts for each in judgments])


def _share(credits: Sequence[float], judgments: Sequence[AnnotatorJudgment], seed: int, resamples: int) -> Estimate:
    """A share with its clustered interval; where all agree, Wilson's over pairs, since unanimity is not certainty."""
    clusters = _clusters(judgments)
    found = mean_interval(credits, clusters, np.random.default_rng(seed), resamples=resamples, bounds=(0.0, 1.0))
    if found.value is None or found.low is None or found.low != found.high:
        return found
    pairs = len({each.texts for each in judgments})
    bounds = wilson(found.value * pairs, pairs)
    return Estimate(found.value, bounds.low, bounds.high, found.n)
