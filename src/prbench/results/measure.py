"""Numbers of one context, and of contexts against each other: pure functions of credits.

Each metric draws from a generator seeded by the run's seed and the metric's own name, so no number depends on which
others are computed.
"""

import itertools
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any, TypeVar

import numpy as np

from prbench import stats
from prbench.results.credits import Credit, Credits
from prbench.results.definitions import METRICS
from prbench.results.effects import (
    DIFFERENCES,
    HEADROOM,
    HIGH_STAKES,
    HIGH_STAKES_TOGETHER,
    SOUNDNESS,
    own_context,
    shown_context,
)
from prbench.results.result import BaselineResult, ContextResult, Effects, Headroom, JuryResult, Soundness, WorstGroup
from prbench.stats import Clusters, Estimate, LengthBias, Standing
from prbench.types import POSTS_OF, Context, Record

Json = dict[str, Any]
"""Some fields of a result."""
Key = TypeVar("Key", str, tuple[str, str, str, str])
"""What a pair is known by."""


class Measure:
    """Computes metrics with one seed and one number of resamples.

    Args:
        seed: Of all resampling.
        resamples: Bootstrap resamples for each interval.
        by: Tags to report groups by.
        stances: What each user of the suite wants on each axis, to sort the users shown under `other`.
        calibrated: Whether score differences of a Rater are log-odds; a Comparer's margins always are.
        jurors: Addresses of the jurors, where the model is a jury.
    """

    def __init__(
        self,
        seed: int,
        resamples: int,
        by: Sequence[str] = (),
        stances: Mapping[str, Mapping[str, str]] | None = None,
        *,
        calibrated: bool = False,
        jurors: Sequence[str] = (),
    ) -> None:
        self._seed = seed
        self._resamples = resamples
        self._by = by
        self._stances = stances or {}
        self._calibrated = calibrated
        self._jurors = jurors

    def context(self, name: str, credits: Credits) -> ContextResult:
        """Everything about one context."""
        rows = credits.rows
        categories = self._groups(name, rows, lambda row: row.row.category)
        by = {tag: self._groups(name, rows, partial(_tag, tag)) for tag in self._by}
        further: Json = {}
        if rows:
            further |= self._users(name, rows) | self._mirror(name, rows)
            further |= self._calibration(name, rows) | self._position(name, rows) | self._jury(name, rows)
        if relation := self._relation(name, rows):
            further["shown_user"] = relation
        computed = {metric: found for metric in METRICS if (found := self._metric(metric, name, rows)) is not None}
        strict = computed.pop("strict")
        if computed:
            further["metrics"] = computed
        return ContextResult(
            leaks=Context.parse(name).leaks,
            accuracy=self.accuracy(f"{name} accuracy", rows),
            strict_accuracy=strict,
            ties=stats.wilson(sum(row.credit == 0.5 for row in rows), len(rows)),
            **self._missing(credits),
            categories=categories,
            by=by,
            length=self._length(name, rows),
            worst={key: worst for key, groups in [("category", categories), *by.items()] if (worst := _worst(groups))},
            **further,
        )

    def baseline(self, name: str, credits: Credits) -> BaselineResult:
        """What is told of a baseline: accuracy, whole and by group."""
        rows = credits.rows
        further = self._users(name, rows) | self._mirror(name, rows) if rows else {}
        return BaselineResult(
            accuracy=self.accuracy(f"{name} accuracy", rows),
            categories=self._groups(name, rows, lambda row: row.row.category),
            by={tag: self._groups(name, rows, partial(_tag, tag)) for tag in self._by},
            **further,
        )

    def accuracy(self, name: str, rows: Sequence[Credit]) -> Estimate:
        """Mean credit of some pairs; the name seeds the resampling behind its interval."""
        return self.mean(name, rows, [row.credit for row in rows])

    def groups(self, rows: Mapping[str, Credits]) -> dict[str, str]:
        """Letters for the lines of a table: two lines that share one cannot be told apart on these pairs."""
        places = rank_credits({name: {row.row.id: row for row in found.rows} for name, found in rows.items()})
        return {place.name: "".join(place.letters) for place in places} if len(places) > 1 else {}

    def effects(self, credits: Mapping[str, Credits]) -> Effects:
        """What showing the user changes, as far as the contexts allow."""
        rows = [row for found in credits.values() for row in found.rows]
        if rows and all(POSTS_OF in row.row.tags for row in rows):  # nobody's own posts: there is no gain to speak of
            shown = shown_context(credits)
            if shown is None or SOUNDNESS.control not in credits:
                return Effects()
            return Effects(soundness=self._soundness(credits[shown], credits[SOUNDNESS.control]))
        own = own_context(credits)
        if own is None:
            return Effects()
        found: Json = {
            effect.key: self._difference(effect.key, credits[own], credits[effect.control])
            for effect in DIFFERENCES
            if effect.control in credits
        }
        if "none" in credits and HEADROOM.control in credits:
            found[HEADROOM.key] = self._headroom(credits[own], credits["none"], credits[HEADROOM.control])
        return Effects(**found)

    def _rng(self, name: str) -> np.random.Generator:
        return np.random.default_rng([self._seed, zlib.crc32(name.encode())])

    def mean(self, name: str, rows: Sequence[Credit], values: Sequence[float]) -> Estimate:
        """Mean of shares, one for each row; the name seeds the resampling behind its interval."""
        if not rows:
            return Estimate.undefined()
        clusters = clusters_of(rows)
        if set(values) in ({0.0}, {1.0}):  # nothing varies, but what so few units show is not certain
            return replace(stats.wilson(values[0] * clusters.units, clusters.units), n=len(rows))
        return stats.mean_interval(values, clusters, self._rng(name), resamples=self._resamples, bounds=(0.0, 1.0))

    def _metric(self, metric: str, name: str, rows: Sequence[Credit]) -> Estimate | None:
        """A metric in a context, where `METRICS` says how it follows from credits."""
        compute = METRICS[metric].compute
        return None if compute is None else compute(rows, partial(self.mean, f"{name} {metric}"))

    def _missing(self, credits: Credits) -> Json:
        pairs = len(credits.rows) + credits.missing
        earned = sum(row.credit for row in credits.rows)
        return {
            "pairs": pairs,
            "without_verdict": stats.wilson(credits.missing, pairs),
            "invalid_records": len(credits.invalid),
            "failed_records": len(credits.failed),
            "reasons": _reasons([*credits.invalid, *credits.failed]),
            "bounds": stats.accuracy_bounds(len(credits.rows), earned, credits.missing),
        }

    def _groups(self, name: str, rows: Sequence[Credit], label: Callable[[Credit], str]) -> dict[str, Estimate]:
        groups: dict[str, list[Credit]] = defaultdict(list)
        for row in rows:
            groups[label(row)].append(row)
        return {key or "(none)": self.accuracy(f"{name} {key}", groups[key]) for key in sorted(groups)}

    def _users(self, name: str, rows: Sequence[Credit]) -> Json:
        users = [row.row.user for row in rows]
        rng = self._rng(f"{name} users")
        return {"coverage": stats.user_coverage([row.credit for row in rows], users, rng, resamples=self._resamples)}

    def _mirror(self, name: str, rows: Sequence[Credit]) -> Json:
        halves = [row for row in rows if "mirror" in row.row.tags]
        if not halves:
            return {}
        result: Json = {}
        couple_of = _users_by_mirror(halves)
        result["mirror_consistency"] = stats.mirror_consistency(
            [row.credit for row in halves],
            [row.row.tags["mirror"] for row in halves],
            Clusters.of([couple_of[row.row.tags["mirror"]] for row in halves], [row.row.item for row in halves]),
            self._rng(f"{name} mirror"),
            resamples=self._resamples,
        )
        coupled = [row for row in rows if "couple" in row.row.tags]
        if coupled:
            result["couple_coverage"] = stats.couple_coverage(
                [row.credit for row in coupled],
                [row.row.user for row in coupled],
                [row.row.tags["couple"] for row in coupled],
            )
        return result

    def _calibration(self, name: str, rows: Sequence[Credit]) -> Json:
        rated = any(record.order == "rated" for record in rows[0].records)
        if (rated and not self._calibrated) or any(row.margin is None for row in rows):
            return {}
        margins = np.array([row.margin for row in rows], dtype=float)
        probability = 0.5 * (1 + np.tanh(margins / 2))  # Bradley–Terry: σ(r_chosen − r_rejected)
        rng = self._rng(f"{name} calibration")
        return {"calibration": stats.calibration(probability, clusters_of(rows), rng, resamples=self._resamples)}

    def _position(self, name: str, rows: Sequence[Credit]) -> Json:
        verdicts = [{record.order: record.verdict for record in row.records if record.repeat == 0} for row in rows]
        if not all("chosen-second" in verdict for verdict in verdicts):
            return {}
        found = stats.position_bias(
            [verdict["chosen-first"] for verdict in verdicts],
            [verdict["chosen-second"] for verdict in verdicts],
            clusters_of(rows),
            self._rng(f"{name} position"),
            resamples=self._resamples,
        )
        return {"position": found}

    def _jury(self, name: str, rows: Sequence[Credit]) -> Json:
        if not self._jurors or not all(record.jurors for row in rows for record in row.records):
            return {}
        alone: dict[str, Estimate] = {}
        for number, juror in enumerate(self._jurors):
            judged = [(row, earned) for row in rows if (earned := juror_credits(row, number))]
            credits = [fmean(earned) for _, earned in judged]
            alone[juror] = self.mean(f"{name} {juror}", [row for row, _ in judged], credits)
        shares = [fmean(map(_agreement, (record.jurors for record in row.records))) for row in rows]
        unanimous = [float(all(len(set(record.jurors)) == 1 for record in row.records)) for row in rows]
        found = JuryResult(
            agreement=self.mean(f"{name} agreement", rows, shares),
            unanimous=self.mean(f"{name} unanimous", rows, unanimous),
            jurors=alone,
        )
        return {"jury": found}

    def _length(self, name: str, rows: Sequence[Credit]) -> LengthBias | None:
        if not rows:
            return None
        return stats.length_bias(
            [row.credit for row in rows],
            [row.row.chosen_words for row in rows],
            [row.row.rejected_words for row in rows],
            clusters_of(rows),
            self._rng(f"{name} length"),
            resamples=self._resamples,
        )

    def _relation(self, name: str, rows: Sequence[Credit]) -> dict[str, Estimate]:
        """Accuracy by whether the user who was shown agrees with, opposes or is silent on what decides the pair."""
        groups: dict[str, list[Credit]] = defaultdict(list)
        for row in rows:
            shown = row.records[0].shown_user
            if shown is not None and shown != row.row.user and row.row.stances:
                groups[relation(row.row.stances, self._stances.get(shown, {}))].append(row)
        return {key: self.accuracy(f"{name} shown {key}", group) for key, group in sorted(groups.items())}

    def _difference(self, name: str, one: Credits, two: Credits) -> Estimate:
        rows, a, b = _common(one, two)
        if not rows:
            return Estimate.undefined()
        return stats.difference_interval(a, b, clusters_of(rows), self._rng(name), resamples=self._resamples)

    def _soundness(self, shown: Credits, none: Credits) -> Soundness:
        parts = {**{name: (name,) for name in HIGH_STAKES}, HIGH_STAKES_TOGETHER: HIGH_STAKES}
        by = {
            name: self._difference(f"{SOUNDNESS.key} {name}", shown._replace(rows=kept), none)
            for name, categories in parts.items()
            if (kept := [row for row in shown.rows if row.row.category in categories])
        }
        whole = self._difference(SOUNDNESS.key, shown, none)
        return Soundness(whole.value, whole.low, whole.high, whole.n, by)

    def _headroom(self, own: Credits, none: Credits, oracle: Credits) -> Headroom | None:
        rows, a, b = _common(own, none)
        top = {row.row.id: row.credit for row in oracle.rows}
        kept = [i for i, row in enumerate(rows) if row.row.id in top]
        if not kept:
            return None
        chosen = [rows[i] for i in kept]
        gained = [a[i] - b[i] for i in kept]
        possible = [top[rows[i].row.id] - b[i] for i in kept]
        ratio = stats.ratio_interval(
            gained, possible, clusters_of(chosen), self._rng("headroom"), resamples=self._resamples
        )
        return None if ratio is None else Headroom(ratio.value, ratio.low, ratio.high, ratio.n)


def clusters_of(rows: Sequence[Credit]) -> Clusters:
    """What varies together: users (or couples of users) and questions."""
    return Clusters.of([row.row.unit for row in rows], [row.row.item for row in rows])


def rank_credits(judged: Mapping[str, Mapping[Key, Credit]]) -> tuple[Standing, ...]:
    """Rank models by their credits, in groups that the data can tell apart.

    Every two are compared on the pairs that both judged.

    Args:
        judged: Per model, its credits by pair.
    """
    rows = {pair: credit for found in judged.values() for pair, credit in found.items()}
    pairs = sorted(rows)
    credits = {
        name: [found[pair].credit if pair in found else None for pair in pairs] for name, found in judged.items()
    }
    return stats.significance_groups(credits, clusters_of([rows[pair] for pair in pairs]))


def relation(wanted: Mapping[str, str], held: Mapping[str, str]) -> str:
    """How another user stands to what decides a pair.

    Example:
        >>> relation({"risk": "caution"}, {"risk": "boldness"})
        'opposes'
    """
    same = [held[axis] == pole for axis, pole in wanted.items() if axis in held]
    if not same:
        return "silent"
    if len(same) < len(wanted) or len(set(same)) > 1:
        return "mixed"
    return "agrees" if same[0] else "opposes"


def juror_credits(row: Credit, number: int) -> list[float]:
    """What one juror alone would have earned in each order and repeat; without verdict nothing."""
    own = ((record, record.jurors[number]) for record in row.records)
    said = [record.model_copy(update={"verdict": verdict}) for record, verdict in own if verdict != "invalid"]
    return [record.credit for record in said if record.credit is not None]


def _agreement(said: Sequence[str]) -> float:
    """Share of all two jurors who say the same."""
    return fmean(one == two for one, two in itertools.combinations(said, 2))


def _common(one: Credits, two: Credits) -> tuple[list[Credit], list[float], list[float]]:
    other = {row.row.id: row.credit for row in two.rows}
    rows = [row for row in one.rows if row.row.id in other]
    return rows, [row.credit for row in rows], [other[row.row.id] for row in rows]


def _users_by_mirror(rows: Sequence[Credit]) -> dict[str, str]:
    users: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        users[row.row.tags["mirror"]].add(row.row.user)
    return {mirror: "\x00".join(sorted(pair)) for mirror, pair in users.items()}


def _worst(groups: Mapping[str, Estimate]) -> WorstGroup | None:
    scored = {key: group.value for key, group in groups.items() if group.value is not None}
    if len(scored) < 2:
        return None
    key = min(scored, key=lambda name: scored[name])
    return WorstGroup(group=key, **groups[key].to_json())


def _tag(tag: str, row: Credit) -> str:
    return row.row.tags.get(tag, "")


def _reasons(records: Sequence[Record]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for record in records:
        counts[record.reason or record.status] += 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:20])
