"""From scores and grades to curves and the study: exact best-of-k for every k up to N, nothing beyond (D8)."""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from prbench.judge import HIGHEST
from prbench.stats import Clusters, ratio_interval
from prbench.stats.best_of import (
    BestOf,
    Candidates,
    best_of_curve,
    best_of_divergence,
    expected_best_of,
    over_optimisation,
    user_gains,
)
from prbench.studies.best_of_n.items import Item
from prbench.studies.best_of_n.scores import Place

Json = dict[str, Any]
Values = Mapping[Place, float | None]

_LINES = ("true", "proxy", "random", "oracle", "regret", "gain")


class Entered(NamedTuple):
    """One reward model's part: what it made of every candidate."""

    name: str
    address: str
    context: str
    apart: bool
    scores: Values
    """By item and candidate; None where there is no score."""
    reasons: Mapping[str, int]
    """Why there is none, and how often."""
    revision: str = ""


@dataclass(frozen=True)
class World:
    """What all reward models have in common: items, their candidates, and what each is worth."""

    items: Sequence[Item]
    candidates: Mapping[str, Sequence[str]]
    """Keys of the valid candidates of each item; equal texts stand as often as they were drawn."""
    grades: Values
    n: int
    k: int
    """The endpoint."""
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


def common_lines(world: World) -> Json:
    """What can be said without any reward model: the random and the oracle line over k."""
    points = _points(world, world.choices(world.grades), "lines")
    return {
        "random": [point.random.to_json() for point in points],
        "oracle": [point.oracle.to_json() for point in points],
        "dropped": [point.dropped for point in points],
    }


def model_curve(world: World, entered: Entered) -> Json:
    """Everything about one reward model."""
    choices = world.choices(entered.scores)
    ks = range(1, world.n + 1)
    points = _points(world, choices, entered.name, "curve")
    over = over_optimisation(choices, ks, world.rng(entered.name, "over"), resamples=world.resamples)
    gains = user_gains(world.choices(entered.scores, by_user=True), world.k)
    return {
        "address": entered.address,
        "context": entered.context,
        "apart": entered.apart,
        "points": [_point(point) for point in points],
        "headroom": _headroom(world, choices, entered.name),
        "users": {gain.user: {"gain": gain.gain, "items": gain.items} for gain in gains},
        "over_optimisation": None if over is None else {**asdict(over), "drop": over.drop.to_json()},
        "scored": sum(score is not None for score in entered.scores.values()),
        "invalid": dict(entered.reasons),
    }


def item_scores(world: World, entered: Entered) -> dict[str, float]:
    """The expected true score of the best of k on each item that has k valid candidates."""
    found = {}
    for item, choice in zip(world.items, world.choices(entered.scores), strict=True):
        proxy, true = choice.valid()
        if len(proxy) >= world.k:
            found[item.id] = expected_best_of(proxy, true, world.k)
    return found


def model_outcome(world: World, entered: Entered, curve: Json) -> Json | None:
    """The entry of one reward model in `study.json`; None where no item reaches the endpoint."""
    items = item_scores(world, entered)
    if not items:
        return None
    point = curve["points"][world.k - 1]
    score = {**point["true"], "value": math.fsum(items.values()) / len(items)}
    outcome: Json = {"address": entered.address, "score": score, "items": items}
    if entered.context:
        outcome["context"] = entered.context
    if entered.revision:
        outcome["revision"] = entered.revision
    if entered.apart:
        outcome["apart"] = True
    outcome["details"] = {
        "gain": point["gain"],
        "regret": point["regret"],
        "headroom": curve["headroom"],
        "dropped": point["dropped"],
        "invalid": curve["invalid"],
    }
    return outcome


def _points(world: World, choices: Sequence[Candidates], *names: str) -> tuple[BestOf, ...]:
    ks, rng = range(1, world.n + 1), world.rng(*names)
    return best_of_curve(choices, ks, rng, resamples=world.resamples, bounds=(0.0, HIGHEST))


def _point(point: BestOf) -> Json:
    lines = {name: getattr(point, name).to_json() for name in _LINES}
    return {"k": point.k, **lines, "dropped": point.dropped, "divergence_nats": best_of_divergence(point.k)}


def _headroom(world: World, choices: Sequence[Candidates], name: str) -> Json | None:
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
    share = ratio_interval(gained, possible, clusters, world.rng(name, "headroom"), resamples=world.resamples)
    return None if share is None else share.to_json()
