"""Curves and the study, from scores and grades: exact best-of-k for every k up to N, nothing beyond."""

import dataclasses
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import model_validator

from prbench.graders import HIGHEST
from prbench.stats import (
    BestOf,
    Candidates,
    Clusters,
    Estimate,
    OverOptimisation,
    best_of_curve,
    expected_best_of,
    over_optimisation,
    ratio_interval,
    user_gains,
)
from prbench.stats.best_of import best_of_divergence
from prbench.studies.best_of_n.items import StudyItem
from prbench.studies.best_of_n.scores import ItemCandidate
from prbench.studies.study import Judge, StudyEstimate
from prbench.types import Count, Frozen

Json = dict[str, Any]
Values = Mapping[ItemCandidate, float | None]


@dataclass(frozen=True, slots=True)
class CurvedPoint(BestOf):
    """One point of a reward model's curve."""

    divergence_nats: float
    """Divergence of the policy by the choice of the best of k."""


class ServedUser(Frozen):
    """Effect of choosing for one user."""

    gain: float
    items: int


class ModelCurve(Frozen):
    """Everything about one reward model."""

    address: str
    context: str
    apart: bool
    points: tuple[CurvedPoint, ...]
    """Points from k = 1 to N."""
    headroom: Estimate | None
    """Gain over random as a share of the oracle's, at the endpoint; None unless there is clearly something to gain."""
    users: Mapping[str, ServedUser]
    over_optimisation: OverOptimisation | None
    scored: int
    invalid: Mapping[str, int]
    """Reasons why candidates have no score, with their counts."""


class CommonLines(Frozen):
    """Lines that need no reward model, from k = 1 to N."""

    random: tuple[Estimate, ...]
    oracle: tuple[Estimate, ...]
    dropped: tuple[int, ...]
    """Items with fewer than k graded candidates."""


class CandidateCounts(Frozen):
    """Counts of the drawing of candidates, over distinct candidates and over items."""

    distinct: int
    valid: int
    cut: int
    drawn_again: int
    repeated_in_item: int
    degenerate: int = 0
    """Candidates that say nothing: empty, white space or punctuation alone."""
    styles: Mapping[str, int]
    reasons: Mapping[str, int]


class CurvesDetails(Frozen):
    """Details of how a best-of-N study was made."""

    prbench: str
    n: int
    k: int
    """Number k of the endpoint."""
    settings: Mapping[str, Any]
    fingerprint: str
    items: int
    questions: int
    candidates: CandidateCounts
    items_refused: Mapping[str, int]
    judge: Mapping[str, Mapping[str, int]]
    taught_alike: Mapping[str, str] = {}
    left_out: tuple[str, ...]
    """Models of which no item has k scored candidates."""
    agreed: StudyEstimate | None = None
    """Share of two candidates that the judge orders as their instructions do."""


class BestOfCurves(Frozen):
    """Findings of a best-of-N study: `curves.json`."""

    kind: Literal["best-of-n"]
    suite: str
    policy: str
    candidates: Literal["policy", "suite"]
    endpoint: str
    judge: Judge
    details: CurvesDetails
    ks: tuple[Count, ...]
    lines: CommonLines
    models: Mapping[str, ModelCurve]

    @model_validator(mode="after")
    def _every_k_has_its_values(self) -> Self:
        common = (self.lines.random, self.lines.oracle, self.lines.dropped)
        if any(len(line) != len(self.ks) for line in (*common, *(model.points for model in self.models.values()))):
            raise ValueError(f"there are {len(self.ks)} values of k, and a line of another length")
        return self


class Entered(NamedTuple):
    """One reward model's part: what it made of every candidate."""

    name: str
    address: str
    context: str
    apart: bool
    scores: Values
    """Scores by item and candidate; None where there is no score."""
    reasons: Mapping[str, int]
    """Reasons why there is none, with their counts."""
    revision: str = ""
    lineage: str = ""


@dataclass(frozen=True)
class World:
    """Facts that all reward models have in common: items, their candidates, and what each is worth."""

    items: Sequence[StudyItem]
    candidates: Mapping[str, Sequence[str]]
    """Keys of the valid candidates of each item; equal texts stand as often as they were drawn."""
    grades: Values
    n: int
    k: int
    """Number k of the endpoint."""
    seed: int = 0
    resamples: int = 2000

    def rng(self, *names: str) -> np.random.Generator:
        """A generator for one figure, so that no figure depends on which others are computed."""
        return np.random.default_rng([self.seed, zlib.crc32("\0".join(names).encode())])

    def choices(self, scores: Values, *, by_user: bool = False) -> list[Candidates]:
        """Every item with its candidates' scores and grades; clustered by couple, or by user where asked."""
        return [
            Candidates(
                item.pair.user if by_user else item.unit,
                item.question,
                [scores.get((item.id, key)) for key in self.candidates[item.id]],
                [self.grades.get((item.id, key)) for key in self.candidates[item.id]],
            )
            for item in self.items
        ]


def common_lines(world: World) -> CommonLines:
    """The random and the oracle line over k."""
    points = _points(world, world.choices(world.grades), "lines")
    return CommonLines(
        random=tuple(point.random for point in points),
        oracle=tuple(point.oracle for point in points),
        dropped=tuple(point.dropped for point in points),
    )


def model_curve(world: World, entered: Entered) -> ModelCurve:
    """Everything about one reward model."""
    choices = world.choices(entered.scores)
    ks = range(1, world.n + 1)
    points = _points(world, choices, entered.name, "curve")
    gains = user_gains(world.choices(entered.scores, by_user=True), world.k)
    return ModelCurve(
        address=entered.address,
        context=entered.context,
        apart=entered.apart,
        points=tuple(_point(point) for point in points),
        headroom=_headroom(world, choices, entered.name),
        users={gain.user: ServedUser(gain=gain.gain, items=gain.items) for gain in gains},
        over_optimisation=over_optimisation(choices, ks, world.rng(entered.name, "over"), resamples=world.resamples),
        scored=sum(score is not None for score in entered.scores.values()),
        invalid=dict(entered.reasons),
    )


def item_scores(world: World, entered: Entered) -> dict[str, float]:
    """The expected true score of the best of k on each item that has k valid candidates."""
    found = {}
    for item, choice in zip(world.items, world.choices(entered.scores), strict=True):
        proxy, true = choice.valid()
        if len(proxy) >= world.k:
            found[item.id] = expected_best_of(proxy, true, world.k)
    return found


def model_outcome(world: World, entered: Entered, curve: ModelCurve) -> Json | None:
    """The entry of one reward model in `study.json`; None where no item reaches the endpoint."""
    items = item_scores(world, entered)
    if not items:
        return None
    point = curve.points[world.k - 1]
    score = {**point.true.to_json(), "value": math.fsum(items.values()) / len(items)}
    outcome: Json = {"address": entered.address, "score": score, "items": items}
    if entered.context:
        outcome["context"] = entered.context
    if entered.revision:
        outcome["revision"] = entered.revision
    if entered.apart:
        outcome["apart"] = True
    if entered.lineage:
        outcome["lineage"] = entered.lineage
    outcome["details"] = {
        "gain": point.gain.to_json(),
        "regret": point.regret.to_json(),
        "headroom": None if curve.headroom is None else curve.headroom.to_json(),
        "dropped": point.dropped,
        "spread": within_items(entered.scores),
        "invalid": dict(curve.invalid),
    }
    return outcome


def within_items(scores: Values) -> float | None:
    """Return the share of a model's score variance that lies within items, where a choice is made; None without any.

    Example:
        >>> within_items({("a", "1"): 0.0, ("a", "2"): 2.0, ("b", "1"): 0.0, ("b", "2"): 2.0})
        1.0
    """
    by_item: dict[str, list[float]] = {}
    for (item, _), score in sorted(scores.items()):  # in whatever order they were scored, the same number
        if score is not None:
            by_item.setdefault(item, []).append(score)
    everything = [score for found in by_item.values() for score in found]
    whole = float(np.var(everything)) if everything else 0.0
    inside = sum(float(np.var(found)) * len(found) for found in by_item.values())
    return inside / len(everything) / whole if whole > 0 else None


def _points(world: World, choices: Sequence[Candidates], *names: str) -> tuple[BestOf, ...]:
    ks, rng = range(1, world.n + 1), world.rng(*names)
    return best_of_curve(choices, ks, rng, resamples=world.resamples, bounds=(0.0, HIGHEST))


def _point(point: BestOf) -> CurvedPoint:
    fields = {field.name: getattr(point, field.name) for field in dataclasses.fields(point)}
    return CurvedPoint(**fields, divergence_nats=best_of_divergence(point.k))


def _headroom(world: World, choices: Sequence[Candidates], name: str) -> Estimate | None:
    """Gain over random as a share of the oracle's, at the endpoint; None unless there is clearly something to gain."""
    gained, possible, kept = [], [], []
    for choice in choices:
        proxy, true = choice.valid()
        if len(proxy) >= world.k:
            mean = float(true.mean())
            gained.append(expected_best_of(proxy, true, world.k) - mean)
            possible.append(expected_best_of(true, true, world.k) - mean)
            kept.append(choice)
    if not kept:
        return None
    clusters = Clusters.of([choice.user for choice in kept], [choice.question for choice in kept])
    return ratio_interval(gained, possible, clusters, world.rng(name, "headroom"), resamples=world.resamples)
