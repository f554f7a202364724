"""Evidence of a report: runs of several models on the same pairs, read once, with all their records.

Runs on different suites do not stand on one page: a pair that two runs know under one id must be the same pair.
"""

from collections.abc import Container, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from prbench.config import RunConfig
from prbench.data.suite import limited_groups
from prbench.errors import ConfigError, PrbenchError, RunError
from prbench.files import damaged, exists
from prbench.report.finished import records_fingerprint
from prbench.results import (
    Credits,
    MadeRecord,
    PairRow,
    PairRows,
    Records,
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
from prbench.types import CONTEXTS, ITEM, Context

MOST_SHOWN = 30_000
"""Pairs that a page lists; of more, a sample."""
_CONTENT = ("id", "user", "question", "answers")
"""What makes a pair the same pair in two runs."""


class ReportedRun(NamedTuple):
    """Run of one model."""

    label: str
    """The model's address; with the folder's name where two runs share it."""
    path: Path
    config: RunConfig
    facts: RunFacts
    result: Result
    rows: PairRows
    records: Records
    credits: Mapping[str, Credits]
    fingerprint: str
    """Fingerprint of the records."""
    finished: bool

    @property
    def headline(self) -> str | None:
        """The context that this model is judged by: the user's own profile where it reads it."""
        return self.result.headline

    def records_of(self, context: str, pairs: Container[str]) -> dict[str, tuple[MadeRecord, ...]]:
        """The records of some pairs in a context, in order of repeat and order."""
        both = zip(self.records.column("pair"), self.records.column("context"), strict=True)
        places = [place for place, (pair, name) in enumerate(both) if name == context and pair in pairs]
        found: dict[str, tuple[MadeRecord, ...]] = {}
        for record in self.records.made(places):
            found[record.pair] = (*found.get(record.pair, ()), record)
        return {pair: _in_order(group) for pair, group in found.items()}


def _in_order(group: tuple[MadeRecord, ...]) -> tuple[MadeRecord, ...]:
    return tuple(sorted(group, key=lambda record: (record.repeat, record.order))) if len(group) > 1 else group


class ReportEvidence(NamedTuple):
    """All runs of a report, and every pair that one of them knows."""

    entries: tuple[ReportedRun, ...]
    rows: PairRows
    shown: tuple[PairRow, ...]
    """Pairs that the page lists: all of them, or a sample where there are too many."""
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
    rows = _all_rows(entries)
    return ReportEvidence(entries, rows, _shown(rows), _baseline_credits(_widest(entries)))


def _read(path: Path) -> ReportedRun:
    folder = RunFolder.existing(path)
    facts, rows, records = read_facts(folder), read_rows(folder), folder.records()
    finished = exists(folder.path / "result.json", raises=RunError)
    if finished:
        require_verified(path)
    result = read_result(folder) if finished else recompute(folder, records)
    if set(result.contexts) != set(facts.contexts):
        raise _misfit(folder.path, "contexts")
    return ReportedRun(
        label=facts.card.address,
        path=folder.path,
        config=read_settings(folder),
        facts=facts,
        result=result,
        rows=rows,
        records=records,
        credits=credits_by_context(rows, records, facts.contexts, facts.expected),
        fingerprint=records_fingerprint(records),
        finished=finished,
    )


def _widest(entries: Sequence[ReportedRun]) -> ReportedRun:
    return max(entries, key=lambda entry: len(entry.rows))


def _baseline_credits(entry: ReportedRun) -> dict[str, Credits]:
    found = baseline_credits(entry.rows, read_baselines(RunFolder(entry.path)))
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


def _all_rows(entries: Sequence[ReportedRun]) -> PairRows:
    """Every pair of any run, those of the widest first; one id must be the same pair in all of them."""
    ordered = sorted(entries, key=lambda entry: -len(entry.rows))
    rows = ordered[0].rows
    for entry in ordered[1:]:
        if any(rows.column(name) != entry.rows.column(name) for name in _CONTENT):
            rows = _joined(rows, entry, ordered)
    return rows


def _joined(rows: PairRows, entry: ReportedRun, entries: Sequence[ReportedRun]) -> PairRows:
    """The pairs with those of one more run."""
    new = []
    for id, *content in zip(*(entry.rows.column(name) for name in _CONTENT), strict=True):
        place = rows.place.get(id)
        if place is None:
            new.append(entry.rows[entry.rows.place[id]])
        elif content != [rows.column(name)[place] for name in _CONTENT[1:]]:
            owner = next(other for other in entries if id in other.rows.place)
            raise RunError(
                f"{str(owner.path)!r} and {str(entry.path)!r} are not on the same suite: "
                f"pair {id!r} is not the same pair in both",
                hint="make one report for each suite",
            )
    return PairRows(chain(rows, new)) if new else rows


def _shown(rows: PairRows) -> tuple[PairRow, ...]:
    """The pairs that a page lists: whole couples, with categories and axes in proportion, where there are many."""
    if len(rows) <= MOST_SHOWN:
        return tuple(rows)
    ids, categories = rows.column("id"), rows.column("category")
    mask = limited_groups(ids, rows.tag("mirror"), rows.tag(ITEM), categories, rows.tag("axis"), MOST_SHOWN, 0)
    return tuple(rows[place] for place, shown in enumerate(mask) if shown)
