"""Evidence of a report: runs of several models on the same pairs, read once, with all their records.

Runs on different suites do not stand on one page: a pair that two runs know under one id must be the same pair.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from prbench.config import RunConfig
from prbench.errors import ConfigError, PrbenchError, RunError
from prbench.files import damaged, exists
from prbench.report.finished import records_fingerprint
from prbench.results import (
    Credits,
    PairRow,
    Result,
    RunFacts,
    RunFolder,
    baseline_credits,
    check_versions,
    credits_by_context,
    read_baselines,
    read_facts,
    read_result,
    read_rows,
    read_settings,
    recompute,
    require_verified,
)
from prbench.types import CONTEXTS, Context, Record


class ReportedRun(NamedTuple):
    """Run of one model."""

    label: str
    """The model's address; with the folder's name where two runs share it."""
    path: Path
    config: RunConfig
    facts: RunFacts
    result: Result
    rows: Mapping[str, PairRow]
    records: Mapping[str, Mapping[str, tuple[Record, ...]]]
    """Records by context and pair, in order of repeat and order."""
    credits: Mapping[str, Credits]
    fingerprint: str
    """Fingerprint of the records."""
    finished: bool

    @property
    def headline(self) -> str | None:
        """The context that this model is judged by: the user's own profile where it reads it."""
        return self.result.headline


class ReportEvidence(NamedTuple):
    """All runs of a report, and every pair that one of them knows."""

    entries: tuple[ReportedRun, ...]
    rows: tuple[PairRow, ...]
    baseline_credits: Mapping[str, Credits]
    """Credits of the widest run's baselines, by name."""

    @property
    def contexts(self) -> tuple[str, ...]:
        """All contexts of any run, in the order in which they are told: no user, own, others, rubric."""
        names = {name for entry in self.entries for name in entry.facts.contexts}
        return tuple(sorted(names, key=context_order))

    @property
    def widest(self) -> ReportedRun:
        """The run with the most pairs; its baselines stand for all."""
        return _widest(self.entries)

    @property
    def same_pairs(self) -> bool:
        """Whether all runs are on exactly the same pairs."""
        return all(len(entry.rows) == len(self.rows) for entry in self.entries)


def context_order(name: str) -> tuple[int, int]:
    """Return the place of a context in every chart and table.

    Example:
        >>> sorted(["oracle", "other", "retrieved@5", "profile", "none"], key=context_order)
        ['none', 'profile', 'retrieved@5', 'other', 'oracle']
    """
    context = Context.parse(name)
    return (list(CONTEXTS).index(context.name), context.k or 0)


def read_runs(paths: Sequence[Path]) -> ReportEvidence:
    """Read runs for one report.

    Raises:
        RunError: If one is no run, or two runs know different pairs under one id.
    """
    if not paths:
        raise ConfigError("a report needs at least one run", hint="prbench report RUN… -o report.html")
    entries = _labelled([_read(path) for path in paths])
    check_versions(entry.facts.dataset for entry in entries)
    return ReportEvidence(entries, tuple(_all_rows(entries)), _baseline_credits(_widest(entries)))


def _read(path: Path) -> ReportedRun:
    folder = RunFolder.existing(path)
    facts, rows, records = read_facts(folder), read_rows(folder), folder.records()
    finished = exists(folder.path / "result.json", raises=RunError)
    if finished:
        require_verified(path)
    result = read_result(folder) if finished else recompute(folder, records.values())
    if set(result.contexts) != set(facts.contexts):
        raise _misfit(folder.path, "contexts")
    return ReportedRun(
        label=facts.card.address,
        path=folder.path,
        config=read_settings(folder),
        facts=facts,
        result=result,
        rows={row.id: row for row in rows},
        records=_sorted_out(records.values()),
        credits=credits_by_context(rows, records.values(), facts.contexts, facts.expected),
        fingerprint=records_fingerprint(records.values()),
        finished=finished,
    )


def _sorted_out(records: Iterable[Record]) -> dict[str, dict[str, tuple[Record, ...]]]:
    found: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        found.setdefault(record.context, {}).setdefault(record.pair, []).append(record)
    return {
        context: {pair: tuple(sorted(group, key=lambda r: (r.repeat, r.order))) for pair, group in by_pair.items()}
        for context, by_pair in found.items()
    }


def _widest(entries: Sequence[ReportedRun]) -> ReportedRun:
    return max(entries, key=lambda entry: len(entry.rows))


def _baseline_credits(entry: ReportedRun) -> dict[str, Credits]:
    rows = next((found.rows.pairs for found in entry.credits.values()), None)
    found = baseline_credits(entry.rows.values() if rows is None else rows, read_baselines(RunFolder(entry.path)))
    if set(found) != set(entry.result.baselines):
        raise _misfit(entry.path, "baselines")
    return found


def _misfit(path: Path, what: str) -> PrbenchError:
    hint = "the command that made the run computes its result anew, without a call"
    return damaged(path / "result.json", f"its {what} are not those of the run", raises=RunError, hint=hint)


def _labelled(entries: Sequence[ReportedRun]) -> tuple[ReportedRun, ...]:
    labels = [entry.label for entry in entries]
    named = [
        entry if labels.count(entry.label) == 1 else entry._replace(label=f"{entry.label} · {entry.path.name}")
        for entry in entries
    ]
    repeated = [entry for entry in named if [other.label for other in named].count(entry.label) > 1]
    return tuple(
        entry if entry not in repeated else entry._replace(label=f"{entry.facts.card.address} · {entry.path}")
        for entry in named
    )


def _all_rows(entries: Sequence[ReportedRun]) -> list[PairRow]:
    known: dict[str, tuple[PairRow, ReportedRun]] = {}
    for entry in sorted(entries, key=lambda entry: -len(entry.rows)):
        for row in entry.rows.values():
            first, owner = known.setdefault(row.id, (row, entry))
            if first.content != row.content:
                raise RunError(
                    f"{str(owner.path)!r} and {str(entry.path)!r} are not on the same suite: "
                    f"pair {row.id!r} is not the same pair in both",
                    hint="make one report for each suite",
                )
    return [row for row, _ in known.values()]
