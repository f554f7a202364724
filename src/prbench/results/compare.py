"""Runs on the same pairs against each other: difference, interval, p, which pairs flipped; and runs in time."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from prbench import stats
from prbench.errors import RunError, did_you_mean
from prbench.results.loaded import Loaded
from prbench.results.ranking import rank_rows
from prbench.results.reader import check_versions
from prbench.stats import Comparison, Estimate, Standing


class Versus(NamedTuple):
    """The first run against the second in one context."""

    context: str
    one: str
    two: str
    accuracy_one: float
    accuracy_two: float
    comparison: Comparison
    won: tuple[str, ...]
    """Pairs on which only the first run is right."""
    lost: tuple[str, ...]
    """Pairs on which only the second run is right."""
    only_one: int
    """Pairs that only the first run judged; left out."""
    only_two: int


def versus(one: Loaded, two: Loaded, context: str | None = None, *, context_two: str | None = None) -> Versus:
    """Compare two runs in a context (default: the profile where both have it, else the first they share).

    Args:
        one: The run that a positive difference favours.
        two: The run it is compared with.
        context: Of both runs, or of the first where `context_two` is given.
        context_two: Of the second run, to compare across contexts.
    """
    check_versions(run.facts.dataset for run in (one, two))
    context = context or _shared_context(one, two)
    second = context_two or context
    _check_context(one, context)
    _check_context(two, second)
    a, b = one.credits[context], two.credits[second]
    a = a.take(np.argsort(np.argsort(a.pairs.in_order)[a.places]))  # by id, so that nothing depends on a run's order
    there = b.positions(a.contents)
    common, other = a.take(there >= 0), b.take(there[there >= 0])
    if not len(common):
        raise RunError(
            f"{one.name!r} and {two.name!r} have no pair in common that both judged in {context!r}",
            hint="compare runs of the same suite and split",
        )
    generator = np.random.default_rng(one.config.seed)
    comparison = stats.compare_paired(common.credit, other.credit, common.clusters, generator)
    ids = np.array([content[0] for content in common.contents], dtype=object)
    return Versus(
        context=context if second == context else f"{context} vs {second}",
        one=one.name,
        two=two.name,
        accuracy_one=float(common.credit.mean()),
        accuracy_two=float(other.credit.mean()),
        comparison=comparison,
        won=tuple(ids[common.credit > other.credit].tolist()),
        lost=tuple(ids[common.credit < other.credit].tolist()),
        only_one=len(a) - len(common),
        only_two=len(b) - len(common),
    )


def standings(runs: Sequence[Loaded], context: str) -> tuple[Standing, ...]:
    """Rank runs in groups that the data can tell apart; every two are compared on the pairs that both judged."""
    check_versions(run.facts.dataset for run in runs)
    for run in runs:
        _check_context(run, context)
    judged = {run.name: run.credits[context] for run in runs}
    asked = {name: set(found.contents) for name, found in judged.items()}
    for name, found in asked.items():
        if all(found.isdisjoint(other) for other_name, other in asked.items() if other_name != name):
            raise RunError(
                f"run {name!r} has no pair in common with the others", hint="compare runs of the same suite and split"
            )
    return rank_rows(judged)


class Moment(NamedTuple):
    """One run in a model's history, against the run before it."""

    run: Loaded
    made: str
    accuracy: Estimate
    change: Versus | None
    p: float | None
    """P-value, Holm-corrected over the history."""
    regressed: bool


def history(runs: Sequence[Loaded], context: str | None = None, *, level: float = 0.05) -> list[Moment]:
    """Return the movement of numbers from run to run. A regression is a drop that the paired test carries."""
    context = context or _shared_context(*runs)
    changes = [versus(new, old, context) for old, new in pairwise(runs)]
    raw = [change.comparison.clustered_p for change in changes]
    adjusted = stats.holm([1.0 if p is None else p for p in raw]).tolist() if raw else []
    moments = []
    for index, run in enumerate(runs):
        change = changes[index - 1] if index else None
        p = adjusted[index - 1] if index else None
        dropped = change is not None and (change.comparison.difference.value or 0.0) < 0
        accuracy = run.result.contexts[context].accuracy
        regressed = dropped and p is not None and p < level
        moments.append(Moment(run, run.result.finished, accuracy, change, p, regressed))
    return moments


def _shared_context(*runs: Loaded) -> str:
    shared = [name for name in runs[0].credits if all(name in run.credits for run in runs)]
    if not shared:
        names = ", ".join(repr(run.name) for run in runs)
        raise RunError(f"the runs {names} have no context in common", hint="run them with the same --context")
    return "profile" if "profile" in shared else shared[0]


def _check_context(run: Loaded, context: str) -> None:
    if context not in run.credits:
        raise RunError(f"run {run.name!r} has no context {context!r}", hint=did_you_mean(context, run.credits))
