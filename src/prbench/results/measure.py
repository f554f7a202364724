"""Numbers of one context, and of contexts against each other: pure functions of credits.

Each metric draws from a generator seeded by the run's seed and the metric's own name, so no number depends on which
others are computed.
"""

import itertools
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prbench import stats
from prbench.results.credits import Credit, CreditRows, Credits
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
from prbench.results.ranking import clusters_of, rank_rows
from prbench.results.result import BaselineResult, ContextResult, Effects, Headroom, JuryResult, Soundness, WorstGroup
from prbench.stats import Clusters, Estimate, LengthBias
from prbench.stats.arrays import Codes, Floats
from prbench.types import POSTS_OF, Context

Json = dict[str, Any]
"""Some fields of a result."""


class Measure:
    """Computes metrics with one seed and one number of resamples.

    Args:
        seed: Seed of all resampling.
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
        """Return the result of one context."""
        rows = credits.rows
        categories = self._groups(name, rows, rows.pairs.column("category"))
        by = {tag: self._groups(name, rows, rows.pairs.tag(tag)) for tag in self._by}
        further: Json = {}
        if len(rows):
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
            ties=stats.wilson(int((rows.credit == 0.5).sum()), len(rows)),
            **self._missing(credits),
            categories=categories,
            by=by,
            length=self._length(name, rows),
            worst={key: worst for key, groups in [("category", categories), *by.items()] if (worst := _worst(groups))},
            **further,
        )

    def baseline(self, name: str, credits: Credits) -> BaselineResult:
        """Return the result of a baseline: accuracy, whole and by group."""
        rows = credits.rows
        further = self._users(name, rows) | self._mirror(name, rows) if len(rows) else {}
        return BaselineResult(
            accuracy=self.accuracy(f"{name} accuracy", rows),
            categories=self._groups(name, rows, rows.pairs.column("category")),
            by={tag: self._groups(name, rows, rows.pairs.tag(tag)) for tag in self._by},
            **further,
        )

    def accuracy(self, name: str, rows: Sequence[Credit]) -> Estimate:
        """Mean credit of some pairs; the name seeds the resampling behind its interval."""
        return self.mean(name, rows, credit_of(rows))

    def groups(self, rows: Mapping[str, Credits]) -> dict[str, str]:
        """Letters for the lines of a table: two lines that share one cannot be told apart on these pairs."""
        places = rank_rows({name: found.rows for name, found in rows.items()})
        return {place.name: "".join(place.letters) for place in places} if len(places) > 1 else {}

    def effects(self, credits: Mapping[str, Credits]) -> Effects:
        """Return the effects of showing the user, as far as the contexts allow."""
        if _lent(credits):  # the posts are lent: there is no gain to speak of
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

    def mean(self, name: str, rows: Sequence[Credit], values: ArrayLike) -> Estimate:
        """Mean of shares, one for each row; the name seeds the resampling behind its interval."""
        if not len(rows):
            return Estimate.undefined()
        shares, clusters = np.asarray(values, dtype=np.float64), clusters_of(rows)
        if shares.min() == shares.max() and shares[0] in (0.0, 1.0):  # nothing varies, yet few units show little
            return replace(stats.wilson(float(shares[0]) * clusters.units, clusters.units), n=len(rows))
        return stats.mean_interval(shares, clusters, self._rng(name), resamples=self._resamples, bounds=(0.0, 1.0))

    def _metric(self, metric: str, name: str, rows: Sequence[Credit]) -> Estimate | None:
        """A metric in a context, where `METRICS` says how it follows from credits."""
        compute = METRICS[metric].compute
        return None if compute is None else compute(rows, partial(self.mean, f"{name} {metric}"))

    def _missing(self, credits: Credits) -> Json:
        pairs = len(credits.rows) + credits.missing
        earned = sum(credits.rows.credit.tolist())
        reasons = sorted(credits.reasons.items(), key=lambda item: (-item[1], item[0]))
        return {
            "pairs": pairs,
            "without_verdict": stats.wilson(credits.missing, pairs),
            "invalid_records": credits.invalid,
            "failed_records": credits.failed,
            "reasons": dict(reasons[:20]),
            "bounds": stats.accuracy_bounds(len(credits.rows), earned, credits.missing),
        }

    def _groups(self, name: str, rows: CreditRows, column: Sequence[str | None]) -> dict[str, Estimate]:
        """Accuracy by what pairs have in a column."""
        groups: dict[str, list[int]] = defaultdict(list)
        for index, label in enumerate(rows.labels(column)):
            groups[label or ""].append(index)
        return {
            key or "(none)": self.accuracy(f"{name} {key}", rows.take(np.array(groups[key]))) for key in sorted(groups)
        }

    def _users(self, name: str, rows: CreditRows) -> Json:
        users = rows.labels(rows.pairs.column("user"))
        rng = self._rng(f"{name} users")
        return {"coverage": stats.user_coverage(rows.credit, users, rng, resamples=self._resamples)}

    def _mirror(self, name: str, rows: CreditRows) -> Json:
        halves = rows.take(rows.pairs.mirrors[rows.places] >= 0)
        if not len(halves):
            return {}
        mirrors = halves.pairs.mirrors[halves.places]
        result: Json = {
            "mirror_consistency": stats.mirror_consistency(
                halves.credit,
                mirrors,
                Clusters(_couples(mirrors, halves.pairs.users[halves.places]), halves.clusters.questions),
                self._rng(f"{name} mirror"),
                resamples=self._resamples,
            )
        }
        couples = rows.labels(rows.pairs.tag("couple"))
        coupled = [index for index, couple in enumerate(couples) if couple is not None]
        if coupled:
            part = rows.take(np.array(coupled))
            users = part.labels(rows.pairs.column("user"))
            result["couple_coverage"] = stats.couple_coverage(part.credit, users, [couples[index] for index in coupled])
        return result

    def _calibration(self, name: str, rows: CreditRows) -> Json:
        rated = any(record.order == "rated" for record in rows[0].records)
        if (rated and not self._calibrated) or np.isnan(rows.margin).any():
            return {}
        probability = 0.5 * (1 + np.tanh(rows.margin / 2))  # Bradley–Terry: σ(r_chosen − r_rejected)
        rng = self._rng(f"{name} calibration")
        return {"calibration": stats.calibration(probability, rows.clusters, rng, resamples=self._resamples)}

    def _position(self, name: str, rows: CreditRows) -> Json:
        first, second = rows.verdicts("chosen-first"), rows.verdicts("chosen-second")
        if first is None or second is None:
            return {}
        rng = self._rng(f"{name} position")
        found = stats.position_bias(first.tolist(), second.tolist(), rows.clusters, rng, resamples=self._resamples)
        return {"position": found}

    def _jury(self, name: str, rows: CreditRows) -> Json:
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

    def _length(self, name: str, rows: CreditRows) -> LengthBias | None:
        if not len(rows):
            return None
        return stats.length_bias(
            rows.credit,
            rows.pairs.chosen_words[rows.places],
            rows.pairs.rejected_words[rows.places],
            rows.clusters,
            self._rng(f"{name} length"),
            resamples=self._resamples,
        )

    def _relation(self, name: str, rows: CreditRows) -> dict[str, Estimate]:
        """Accuracy by whether the user who was shown agrees with, opposes or is silent on what decides the pair."""
        groups: dict[str, list[int]] = defaultdict(list)
        shown_users, users = rows.records.column("shown_user"), rows.pairs.column("user")
        firsts = rows.behind[:, 0].tolist() if rows.behind.shape[1] else []
        for index, (place, first) in enumerate(zip(rows.places.tolist(), firsts, strict=False)):
            shown, wanted = shown_users[first], rows.pairs.stances[place]
            if shown is not None and shown != users[place] and wanted:
                groups[relation(wanted, self._stances.get(shown, {}))].append(index)
        return {
            key: self.accuracy(f"{name} shown {key}", rows.take(np.array(group)))
            for key, group in sorted(groups.items())
        }

    def _difference(self, name: str, one: Credits, two: Credits) -> Estimate:
        rows, a, b = _common(one, two)
        if not len(rows):
            return Estimate.undefined()
        return stats.difference_interval(a, b, rows.clusters, self._rng(name), resamples=self._resamples)

    def _soundness(self, shown: Credits, none: Credits) -> Soundness:
        parts = {**{name: (name,) for name in HIGH_STAKES}, HIGH_STAKES_TOGETHER: HIGH_STAKES}
        category = shown.rows.labels(shown.rows.pairs.column("category"))
        by = {
            name: self._difference(
                f"{SOUNDNESS.key} {name}", shown._replace(rows=shown.rows.take(np.array(kept))), none
            )
            for name, categories in parts.items()
            if (kept := [index for index, label in enumerate(category) if label in categories])
        }
        whole = self._difference(SOUNDNESS.key, shown, none)
        return Soundness(whole.value, whole.low, whole.high, whole.n, by)

    def _headroom(self, own: Credits, none: Credits, oracle: Credits) -> Headroom | None:
        rows, a, b = _common(own, none)
        there, top = _looked_up(oracle.rows, rows)
        if not there.any():
            return None
        chosen, gained, possible = rows.take(there), (a - b)[there], (top - b)[there]
        ratio = stats.ratio_interval(
            gained, possible, chosen.clusters, self._rng("headroom"), resamples=self._resamples
        )
        return None if ratio is None else Headroom(ratio.value, ratio.low, ratio.high, ratio.n)


def credit_of(rows: Sequence[Credit]) -> ArrayLike:
    """Return the credit of each of these pairs."""
    return rows.credit if isinstance(rows, CreditRows) else [row.credit for row in rows]


def relation(wanted: Mapping[str, str], held: Mapping[str, str]) -> str:
    """Return the relation of another user to what decides a pair.

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
    """Return the credits that one juror alone would have earned in each order and repeat; none without a verdict."""
    own = ((record, record.jurors[number]) for record in row.records)
    said = [record.model_copy(update={"verdict": verdict}) for record, verdict in own if verdict != "invalid"]
    return [record.credit for record in said if record.credit is not None]


def _agreement(said: Sequence[str]) -> float:
    """Share of all two jurors who say the same."""
    return fmean(one == two for one, two in itertools.combinations(said, 2))


def _common(one: Credits, two: Credits) -> tuple[CreditRows, Floats, Floats]:
    there, other = _looked_up(two.rows, one.rows)
    rows = one.rows.take(there)
    return rows, rows.credit, other[there]


def _looked_up(source: CreditRows, rows: CreditRows) -> tuple[NDArray[np.bool_], Floats]:
    """The credits that `source` has on the pairs of `rows`, and where it has one; both are of one run."""
    credit = np.full(len(rows.pairs), np.nan)
    credit[source.places] = source.credit
    found: Floats = credit[rows.places]
    return ~np.isnan(found), found


def _couples(mirrors: Codes, users: Codes) -> Codes:
    """Return a code for the couple of users who meet in each half's mirror."""
    size = int(mirrors.max()) + 1
    order = np.lexsort((users, mirrors))
    first = np.flatnonzero(np.diff(mirrors[order], prepend=-1))
    last = np.append(first[1:], len(order)) - 1
    low, high = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
    low[mirrors[order[first]]], high[mirrors[order[first]]] = users[order[first]], users[order[last]]
    high[high == low] = -1  # a half whose other one has no verdict
    label = low[mirrors] * (int(users.max()) + 2) + high[mirrors] + 1
    codes: Codes = np.unique(label, return_inverse=True)[1].astype(np.int64)
    return codes


def _lent(credits: Mapping[str, Credits]) -> bool:
    """Whether there are credits and every one is on a pair with another user's posts."""
    some = [found.rows for found in credits.values() if len(found.rows)]
    return bool(some) and all(None not in rows.labels(rows.pairs.tag(POSTS_OF)) for rows in some)


def _worst(groups: Mapping[str, Estimate]) -> WorstGroup | None:
    scored = {key: group.value for key, group in groups.items() if group.value is not None}
    if len(scored) < 2:
        return None
    key = min(scored, key=lambda name: scored[name])
    return WorstGroup(group=key, **groups[key].to_json())
