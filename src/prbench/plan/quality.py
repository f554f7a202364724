"""Quality of plans: aspect recall and precision against what users truly expect, beside another user's aspects.

A plan is held against its own user's aspects and against those of another user who asked the same question. What it
gets right of the other's is what any reader would guess from the question; the difference is what it knows of the user.
A plan that could not be had or read is counted apart, and is a miss in the strict figure only.
"""

import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from prbench import stats
from prbench.contexts import derangement
from prbench.plan.matching import Matcher
from prbench.plan.needs import Need
from prbench.plan.planner import Plan
from prbench.stats import Clusters, Estimate
from prbench.types import Frozen, Status

Json = dict[str, Any]
Figure = Literal["recall", "precision", "f1"]
FIGURES: tuple[Figure, ...] = ("recall", "precision", "f1")


class Held(Frozen):
    """One plan held against aspects, in counts: all that the figures are computed from."""

    need: str
    user: str
    unit: str
    question: str
    status: Status
    expected: int
    """Aspects that the user truly has."""
    planned: int = 0
    """Number of lines of the plan."""
    matched: int = 0
    other: str = ""
    """The other user whose aspects it is held against as well."""
    other_expected: int = 0
    other_matched: int = 0
    same_question: bool = False
    """Whether the other user asked the same question."""


class HeldPlans(Frozen):
    """All plans of a run held against aspects: `plan_quality.json` of a run."""

    matcher: str
    """Encoder that matches lines and aspects, with its revision."""
    threshold: float
    rows: tuple[Held, ...]


class PlanQuality(Frozen):
    """Quality of some plans; every figure with n and an interval clustered by user (or couple) and question."""

    matcher: str
    """Encoder that matches lines and aspects, with its revision."""
    threshold: float
    plans: int
    without_aspects: int
    """Plans whose user has no true aspects to hold them against."""
    read: int
    unread: Mapping[str, int]
    """Plans that could not be had or read, by status."""
    lines: Estimate
    """Number of lines in a plan."""
    own: Mapping[Figure, Estimate]
    """Figures against the aspects of the plan's user."""
    strict: Mapping[Figure, Estimate]
    """Figures as in `own`, with unread plans as misses."""
    other: Mapping[Figure, Estimate]
    """Figures against another user's aspects."""
    personal: Mapping[Figure, Estimate]
    """Own less other: what is known of the user."""
    other_same_question: int
    """Plans whose other user asked the same question."""


def hold(
    needs: Sequence[Need], plans: Mapping[str, Plan], matcher: Matcher, everyone: Sequence[Need], seed: int = 0
) -> HeldPlans:
    """Hold plans against the aspects of their users and of others.

    Args:
        needs: Needs that were planned for.
        plans: By need; one that is not there has failed.
        matcher: Says which aspects a plan's lines match.
        everyone: The needs of all users of the suite, to find others among.
        seed: Of who is the other.
    """
    others = other_needs(needs, everyone, seed)
    lines = [line for need in needs if (plan := plans.get(need.id)) for line in plan.plan]
    matcher.embed([*lines, *(aspect for need in (*needs, *others.values()) for aspect in need.aspects)])
    rows = (_held(need, plans.get(need.id), others.get((need.pair.user, need.id)), matcher) for need in needs)
    return HeldPlans(matcher=matcher.encoder.name, threshold=matcher.threshold, rows=tuple(rows))


def _held(need: Need, plan: Plan | None, other: Need | None, matcher: Matcher) -> Held:
    lines = plan.plan if plan is not None else ()
    facts: Json = {}
    if other is not None:
        facts = {
            "other": other.pair.user,
            "other_expected": len(other.aspects),
            "other_matched": matcher.count(lines, other.aspects),
            "same_question": other.pair.question == need.pair.question,
        }
    return Held(
        need=need.id,
        user=need.pair.user,
        unit=need.unit,
        question=hashlib.sha256(need.pair.question.encode()).hexdigest()[:16],
        status="failed" if plan is None else plan.status,
        expected=len(need.aspects),
        planned=len(lines),
        matched=matcher.count(lines, need.aspects),
        **facts,
    )


def other_needs(needs: Iterable[Need], everyone: Iterable[Need], seed: int) -> dict[tuple[str, str], Need]:
    """Choose the other user whose aspects a plan is held against as well, by user and need.

    Another user of the split who asked the same question, of all these one with fewest aspects in common, drawn by the
    seed; where no other user asked it, the next user of a fixed derangement, with another question.
    """
    by_question: dict[tuple[str, str], list[Need]] = defaultdict(list)
    by_user: dict[str, dict[str, Need]] = defaultdict(dict)
    for one in everyone:
        if one.aspects:
            by_question[_split(one), one.pair.question].append(one)
            by_user[_split(one)].setdefault(one.pair.user, one)
    found: dict[tuple[str, str], Need] = {}
    for need in needs:
        asked = [one for one in by_question[_split(need), need.pair.question] if one.pair.user != need.pair.user]
        if asked:
            found[need.pair.user, need.id] = min(asked, key=partial(_far, need, seed))
        elif len(users := by_user[_split(need)]) > 1 and need.pair.user in users:
            found[need.pair.user, need.id] = users[derangement(users, seed)[need.pair.user]]
    return found


def _far(need: Need, seed: int, other: Need) -> tuple[int, bytes]:
    shared = len(set(need.aspects) & set(other.aspects))
    return shared, hashlib.sha256(f"{seed}\0{need.pair.user}\0{other.pair.user}".encode()).digest()


def _split(need: Need) -> str:
    return need.pair.tags.get("split", "")


def figure(name: Figure, matched: int, planned: int, expected: int) -> float:
    """One figure of one plan.

    Example:
        >>> figure("recall", 1, 4, 2), figure("precision", 1, 4, 2), round(figure("f1", 1, 4, 2), 3)
        (0.5, 0.25, 0.333)
    """
    match name:
        case "recall":
            return matched / expected
        case "precision":
            return matched / planned if planned else 0.0
        case "f1":
            return 2 * matched / (planned + expected)


def summarise(held: HeldPlans, *, seed: int = 0, resamples: int = 2000) -> PlanQuality:
    """All figures of some plans."""
    known = [row for row in held.rows if row.expected]
    read = [row for row in known if row.status == "ok"]
    beside = [row for row in read if row.other_expected]
    mean = _Mean(seed, resamples)
    return PlanQuality(
        matcher=held.matcher,
        threshold=held.threshold,
        plans=len(held.rows),
        without_aspects=len(held.rows) - len(known),
        read=len(read),
        unread=dict(sorted(Counter(row.status for row in known if row.status != "ok").items())),
        lines=mean("lines", read, [float(row.planned) for row in read], None),
        own={name: mean(f"own {name}", read, [_own(name, row) for row in read]) for name in FIGURES},
        strict={name: mean(f"strict {name}", known, [_own(name, row) for row in known]) for name in FIGURES},
        other={name: mean(f"other {name}", beside, [_other(name, row) for row in beside]) for name in FIGURES},
        personal={
            name: mean(f"personal {name}", beside, [_own(name, row) - _other(name, row) for row in beside], (-1, 1))
            for name in FIGURES
        },
        other_same_question=sum(row.same_question for row in beside),
    )


def _own(name: Figure, row: Held) -> float:
    return figure(name, row.matched, row.planned, row.expected) if row.status == "ok" else 0.0


def _other(name: Figure, row: Held) -> float:
    return figure(name, row.other_matched, row.planned, row.other_expected)


class _Mean:
    """Means with their intervals; each draws from a generator of its own name."""

    def __init__(self, seed: int, resamples: int) -> None:
        self._seed, self._resamples = seed, resamples

    def __call__(
        self, name: str, rows: Sequence[Held], values: Sequence[float], bounds: tuple[float, float] | None = (0, 1)
    ) -> Estimate:
        if not rows:
            return Estimate.undefined()
        clusters = Clusters.of([row.unit for row in rows], [row.question for row in rows])
        if set(values) in ({0.0}, {1.0}) and bounds == (0, 1):  # nothing varies, but few units are not certain
            return replace(stats.wilson(values[0] * clusters.units, clusters.units), n=len(rows))
        if len(set(values)) == 1:
            return Estimate(values[0], None, None, len(rows))
        rng = np.random.default_rng([self._seed, zlib.crc32(f"plan {name}".encode())])
        return stats.mean_interval(values, clusters, rng, resamples=self._resamples, bounds=bounds)
