"""Stress test of a model on a suite: the share of its verdicts that each change changes.

Every version of the pairs is a run of its own below one folder, so a stress test is resumed like any run, and pairs
that a change leaves alone share their answers with the run of the pairs as they are.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from prbench import stats
from prbench._version import __version__
from prbench.calls import Budget, CallCache, refuse_over_budget
from prbench.config import RunConfig, digest
from prbench.data import DatasetRecord, Suite
from prbench.errors import ConfigError, did_you_mean
from prbench.files import slug
from prbench.models import Model, ModelCard
from prbench.results import Credit, Measure, RunFolder, clusters_of, credits_by_context
from prbench.run import Evaluation, RecordProgress, Session, check_claim, execute, forecast, open_budget
from prbench.show import Table, count, interval, points
from prbench.stats import Estimate
from prbench.stress.changes import AGAIN, Change, make_changes
from prbench.types import Context, Frozen

PLAIN = "plain"
FILE = "stress.json"


class ChangeResult(Frozen):
    """Result of one change."""

    what: str
    pairs: int
    """Number of pairs that have something to change."""
    flips: Estimate
    """Share of these pairs whose winner changes; to or from a tie counts ½."""
    accuracy: Estimate
    """Accuracy on these pairs after the change."""
    difference: Estimate
    """Accuracy after minus before, on these pairs."""


class StressResult(Frozen):
    """Stability of a model's verdicts under changes that should not matter."""

    prbench: str
    model: ModelCard
    suite: DatasetRecord
    context: str
    accuracy: Estimate
    """Accuracy on the pairs as they are."""
    changes: Mapping[str, ChangeResult]


def stress(
    config: RunConfig,
    out: Path,
    *,
    changes: Sequence[str] = (),
    paraphrases: Mapping[str, str] | None = None,
    model: Model | None = None,
    suite: Suite | None = None,
    cache: CallCache | None = None,
    max_cost_usd: float | None = None,
    say: Callable[[str], None] = lambda line: None,
    quiet: bool = True,
) -> StressResult:
    """Ask a model about pairs as they are and under each change.

    Args:
        config: Model, suite, limit and options, with one context.
        out: Folder for the runs and `stress.json`.
        changes: Which ones, by name; default: all.
        paraphrases: Paraphrases by question.
        model: In place of the configuration's address.
        suite: In place of the configuration's suite.
        cache: Answers of earlier runs; the model is asked once more without it.
        max_cost_usd: Refuse to start, or stop, where all runs together would cost more.
        say: Hears what is going on.
        quiet: Whether to show no progress of each run on standard error.

    Raises:
        ConfigError: If a change is not known, or no pair has anything to change.
    """
    known = make_changes(paraphrases or {})
    for name in changes:
        if name not in known:
            raise ConfigError(f"unknown change {name!r}", hint=did_you_mean(name, known))
    if len(config.contexts) != 1:
        raise ConfigError("a stress test has one context", hint="for example --context profile")
    plain = Session(config, model=model, suite=suite)
    context = plain.contexts[0]
    wanted = [known[name] for name in changes or known]
    versions = {change.name: _Version.of(plain.suite, change, context) for change in wanted}
    if not any(version.changed for version in versions.values()):
        raise ConfigError(
            f"no pair of {plain.suite.record.name!r} has anything to change for {', '.join(versions)}",
            hint="give --paraphrases FILE for questions of your own, or other changes",
        )
    sessions = {PLAIN: plain}
    for name, version in versions.items():
        if version.changed:
            sessions[name] = Session(config, model=plain.model, suite=version.suite, address=plain.address)
    folders = {name: RunFolder(out / name) for name in sessions}
    if max_cost_usd is not None:
        _refuse_over_budget(sessions, folders, cache, max_cost_usd)
    runs: dict[str, Evaluation] = {}
    say(f"{len(sessions)} runs of {len(plain.suite):,} pairs each in {str(out)!r}; the same command continues them")
    for name, session in sessions.items():
        say(f"{name}: {known[name].sentence if name in known else 'the pairs as they are'}")
        elsewhere = _spent_usd(folder for other, folder in folders.items() if other != name)
        left = None if max_cost_usd is None else max(max_cost_usd - elsewhere, 0.0)
        kept = None if name == AGAIN else cache
        with RecordProgress(quiet=quiet) as progress:
            runs[name] = execute(
                session,
                folders[name],
                cache=kept,
                listening=progress.listening,
                planning=progress.planning,
                max_cost_usd=left,
            )
    result = _concluded(config, plain, context, wanted, versions, runs)
    RunFolder(out).write_json(FILE, result.model_dump(mode="json"))
    return result


def default_folder(config: RunConfig, card: ModelCard) -> Path:
    """`runs/stress-<suite>-<model>-<8 hex of the configuration>`."""
    names = (Path(config.suite).name, card.address)
    suite, model = (slug(name)[:40] or "run" for name in names)
    return Path("runs") / f"stress-{suite}-{model}-{digest([config.identity(), card.identity])[:8]}"


class _Version(NamedTuple):
    """The suite under a change, and the pairs in which it shows."""

    suite: Suite
    changed: frozenset[str]

    @classmethod
    def of(cls, suite: Suite, change: Change, context: Context) -> "_Version":
        """Change what can be; a pair counts where the model is shown the change."""
        shown = ("question", "chosen", "rejected", *(("profile",) if "posts" in context.needs else ()))
        changed = {
            pair.id: new
            for pair in suite
            if (new := change.apply(pair)) is not None
            and (change.name == AGAIN or any(getattr(pair, field) != getattr(new, field) for field in shown))
        }
        pairs = [changed.get(pair.id, pair) for pair in suite]
        record = suite.record
        notes = (*record.notes, f"change: {change.name}")
        version = Suite.of(pairs, name=record.name, source=record.source, revision=record.revision, notes=notes)
        return cls(version, frozenset(changed))


def _refuse_over_budget(
    sessions: Mapping[str, Session], folders: Mapping[str, RunFolder], cache: CallCache | None, max_cost_usd: float
) -> None:
    """Stop before the first request where all runs together would cost too much, or have no price."""
    costs: list[float | None] = []
    for name, session in sessions.items():
        check_claim(session, folders[name])
        estimate = forecast(session, folders[name].records(), None if name == AGAIN else cache)
        if estimate.calls_to_make or estimate.plans_to_make:
            costs.append(estimate.cost_usd)
    if costs:
        total = None if None in costs else sum(cost for cost in costs if cost is not None)
        budget = Budget(None, max_cost_usd, spent_usd=_spent_usd(folders.values()))
        hint = "raise --max-cost, lower --limit, or leave out a --change"
        refuse_over_budget("the stress test is", total, budget, hint)


def _spent_usd(folders: Iterable[RunFolder]) -> float:
    """Return the money that runs have cost over all their starts."""
    return sum(open_budget(folder, None, folder.records()).spent_usd for folder in folders)


def _concluded(
    config: RunConfig,
    plain: Session,
    context: Context,
    wanted: Sequence[Change],
    versions: Mapping[str, _Version],
    runs: Mapping[str, Evaluation],
) -> StressResult:
    measure = Measure(config.seed, config.resamples)
    before = _credits(plain, runs[PLAIN])
    results = {}
    for change in wanted:
        after = _credits(plain, runs[change.name]) if change.name in runs else {}
        changed = versions[change.name].changed
        pairs = [name for name in before if name in changed and name in after]
        rows = [before[name] for name in pairs]
        old, new = ([found[name].credit for name in pairs] for found in (before, after))
        flips = [abs(one - two) for one, two in zip(old, new, strict=True)]
        results[change.name] = ChangeResult(
            what=change.sentence,
            pairs=len(changed),
            flips=measure.mean(f"{change.name} flips", rows, flips),
            accuracy=measure.mean(f"{change.name} accuracy", rows, new),
            difference=_difference(config, change.name, rows, new, old),
        )
    return StressResult(
        prbench=__version__,
        model=plain.model.card,
        suite=plain.suite.record,
        context=str(context),
        accuracy=measure.accuracy("plain accuracy", list(before.values())),
        changes=results,
    )


def _credits(session: Session, run: Evaluation) -> dict[str, Credit]:
    """Return credits by pair. The rows are those of the unchanged pairs, whose questions say what belongs together."""
    context = str(session.contexts[0])
    found = credits_by_context(session.rows, run.records, [context], session.facts.expected)[context]
    return {credit.row.id: credit for credit in found.rows}


def _difference(config: RunConfig, name: str, rows: Sequence[Credit], new: list[float], old: list[float]) -> Estimate:
    if not rows:
        return Estimate.undefined()
    rng = np.random.default_rng([config.seed, zlib.crc32(f"{name} difference".encode())])
    return stats.difference_interval(new, old, clusters_of(rows), rng, resamples=config.resamples)


def stress_tables(found: StressResult) -> list[Table]:
    """Everything that is printed of a stress test."""
    rows = [
        [name, one.what, count(one.pairs), interval(one.flips), points(one.difference)]
        for name, one in found.changes.items()
    ]
    title = (
        f"{found.model.address} on {found.suite.name} · context {found.context} · accuracy {interval(found.accuracy)}"
    )
    notes = [
        "Verdicts changed: share of the changed pairs whose winner changes, to or from a tie counting ½. None of these "
        "changes should matter.",
    ]
    columns = ["change", "what", "pairs changed", "verdicts changed [95 %]", "accuracy (points)"]
    return [Table(title, columns, rows, notes, first_numeric=2)]
