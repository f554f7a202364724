"""The tables of several runs against each other, of a forecast and of a verification."""

from collections.abc import Sequence
from typing import Any

from prbench.calls import clock
from prbench.results import (
    Moment,
    Verification,
    Versus,
)
from prbench.run import Forecast
from prbench.show import Table, bar, count, interval, p_value, percent, points
from prbench.stats import Standing


def versus_table(found: Versus) -> Table:
    """Two runs against each other."""
    comparison = found.comparison
    rows = [
        [found.one, percent(found.accuracy_one), count(comparison.wins)],
        [found.two, percent(found.accuracy_two), count(comparison.losses)],
    ]
    notes = [
        f"difference {points(comparison.difference)} percentage points",
        f"p = {p_value(comparison.clustered_p)}".replace("= <", "<")
        + " (clustered by user and question), "
        + f"{p_value(comparison.mcnemar_p)} (exact McNemar, pairs taken as independent)",
    ]
    if found.only_one or found.only_two:
        notes.append(f"left out: {found.only_one} pairs only the first judged, {found.only_two} only the second")
    title = f"{_marked(found.context)} · {comparison.difference.n:,} pairs judged by both"
    return Table(title, ["run", "accuracy", "better on"], rows, notes)


def _marked(context: str) -> str:
    return f"{context} (leaks)" if "oracle" in context else context


def flips_table(found: Versus, most: int = 20) -> Table:
    """Return the table of pairs that flipped."""
    won, lost = (_spread(pairs, most) for pairs in (found.won, found.lost))
    rows = [[pair, found.one] for pair in won] + [[pair, found.two] for pair in lost]
    left = len(found.won) + len(found.lost) - len(rows)
    notes = [f"and {left:,} more (--flips N shows more, --format json all)"] if left > 0 else []
    return Table("Pairs on which one run did better", ["pair", "better run"], rows, notes, first_numeric=9)


def _spread(pairs: Sequence[str], most: int) -> Sequence[str]:
    """Return so many of the pairs, evenly from beginning to end."""
    return pairs if len(pairs) <= most else [pairs[i * len(pairs) // most] for i in range(most)]


def standings_table(standings: Sequence[Standing], context: str) -> Table:
    """Several runs in order, in groups that the data can tell apart."""
    rows = [
        [
            place.name,
            bar(place.mean),
            percent(place.mean),
            "".join(place.letters),
            f"{place.best_rank}–{place.worst_rank}" if place.best_rank < place.worst_rank else str(place.best_rank),
        ]
        for place in standings
    ]
    notes = [
        "Runs that share a group letter cannot be told apart (Holm-corrected, clustered); rank is the range left open."
    ]
    return Table(
        f"Ranking · {_marked(context)}", ["run", "", "accuracy", "group", "rank"], rows, notes, first_numeric=2
    )


def history_table(moments: Sequence[Moment], context: str) -> Table:
    """Return the table of numbers that moved from run to run."""
    rows = []
    for moment in moments:
        change = moment.change.comparison.difference if moment.change else None
        mark = "REGRESSED" if moment.regressed else ""
        cells = [interval(moment.accuracy), points(change), p_value(moment.p), mark, moment.made]
        rows.append([moment.run.name, *cells])
    notes = ["change: against the run above, paired on common pairs; p clustered and Holm-corrected over the history"]
    columns = ["run", "accuracy [95 %]", "change", "p", "mark", "finished"]
    model = moments[0].run.facts.card.address
    return Table(f"History · {model} · {_marked(context)}", columns, rows, notes)


def forecast_table(estimate: Forecast) -> Table:
    """Return the table of what a run would take."""
    sampled = f"from {estimate.calls_sampled:,} calls" if estimate.calls_sampled < estimate.calls_to_make else "counted"
    counted = sampled if estimate.tokens_counted else "estimated"
    rows = [
        ["pairs", f"{estimate.pairs:,}"],
        ["contexts", ", ".join(estimate.contexts)],
        ["records open / there already", f"{estimate.records_open:,} / {estimate.records_done:,}"],
        ["model calls without sharing", f"{estimate.calls_without_sharing:,}"],
        ["distinct calls", f"{estimate.distinct_calls:,}"],
        ["of these in the cache", f"{estimate.calls_in_cache:,}"],
        ["calls to make", f"{estimate.calls_to_make:,}"],
        [f"prompt tokens ({counted})", f"{estimate.tokens_in:,}"],
        ["of these to compute (the rest is shared)", "not known for this model"]
        if estimate.tokens_computed is None
        else ["of these to compute (the rest is shared)", f"{estimate.tokens_computed:,}"],
        ["cost (estimated)", "no price known" if estimate.cost_usd is None else f"${estimate.cost_usd:.4f}"],
        ["time (estimated)", "not known for this model" if estimate.time_s is None else clock(estimate.time_s)],
    ]
    if estimate.plans_to_make:
        rows.insert(7, ["plans to write first", f"{estimate.plans_to_make:,}"])
    if estimate.unsupported:
        rows.insert(2, ["unsupported", ", ".join(estimate.unsupported)])
    return Table("Dry run: nothing was asked, nothing was spent", ["", ""], rows)


def verification_table(found: Verification, most: int = 20) -> Table:
    """Return the table of what does not agree with the records."""
    rows = [[item.place, _short(item.stored), _short(item.computed)] for item in found.mismatches[:most]]
    left = len(found.mismatches) - len(rows)
    notes = [f"and {left:,} more"] if left > 0 else []
    return Table("Values that the records do not give", ["place", "in result.json", "recomputed"], rows, notes)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"
