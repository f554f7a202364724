"""The tables of a run, of a comparison and of a history: baselines first, every number with its interval."""

from collections.abc import Mapping, Sequence
from typing import Any

from prbench.report.numbers import bar, count, interval, p_value, percent, points
from prbench.report.plans import run_plan_tables
from prbench.report.table import Table
from prbench.run import Forecast, Moment, Verification, Versus, clock
from prbench.stats import Standing

Json = Mapping[str, Any]

_EFFECTS = {
    "gain": "gain (own profile − none)",
    "specificity": "specificity (own − another user's profile)",
    "reversal": "reversal (own − the opposite user's profile)",
}


def run_tables(result: Json) -> list[Table]:
    """Everything that is printed of a run, most important first."""
    found, baselines = result["result"], result["baselines"]
    tables = [_ranking(found, baselines)]
    if effects := _effects(found):
        tables.append(effects)
    tables.append(_checks(found))
    tables += run_plan_tables(found)
    tables += [table for table in (_categories(found), *_by(found)) if table.rows]
    return tables


def _ranking(found: Json, baselines: Json) -> Table:
    columns = [
        "model",
        "context",
        "",
        "accuracy [95 %]",
        "strict",
        "users covered",
        "couples",
        "no verdict",
        "pairs",
        "group",
    ]
    groups = found["groups"]
    others = {name: scored for name, scored in baselines.items() if name != found["model"]["address"]}
    rows = [_baseline_row(name, scored, groups) for name, scored in others.items()]
    rows += [_context_row(found, name, groups) for name in found["contexts"]]
    rows += [[found["model"]["address"], name, "", "unsupported", *[""] * 6] for name in found["unsupported"]]
    suite, counts = found["suite"], found["suite"]["counts"]
    title = f"{suite['name']} · {counts['pairs']:,} pairs, {counts['users']:,} users, {counts['questions']:,} questions"
    return Table(title, columns, rows, _notes(found), first_numeric=3)


def _baseline_row(name: str, scored: Json, groups: Json) -> list[str]:
    accuracy = scored["accuracy"]
    couples = scored.get("couple_coverage")
    return [
        name,
        "none",
        bar(accuracy["value"]),
        interval(accuracy),
        "",
        percent(scored["coverage"]["covered"]["value"]) if "coverage" in scored else "",
        percent(couples["value"]) if couples else "",
        "",
        count(accuracy["n"]),
        groups.get(f"baseline {name}", ""),
    ]


def _context_row(found: Json, name: str, groups: Json) -> list[str]:
    context = found["contexts"][name]
    coverage = context.get("coverage")
    couples = context.get("couple_coverage")
    return [
        found["model"]["address"],
        _label(found, name),
        bar(context["accuracy"]["value"]),
        interval(context["accuracy"]),
        percent(context["strict_accuracy"]["value"]),
        percent(coverage["covered"]["value"]) if coverage else "–",
        percent(couples["value"]) if couples else "",
        percent(context["without_verdict"]["value"]),
        count(context["accuracy"]["n"]),
        groups.get(name, ""),
    ]


def _notes(found: Json) -> list[str]:
    notes = [
        "In percent; ties count ½. Lines that share a group letter cannot be told apart (Holm-corrected, clustered).",
        "couples: both halves above ½, 0 for whoever ignores the user. docs/metrics.md defines every column.",
    ]
    contexts: Json = found["contexts"]
    untested = [
        name for name, context in contexts.items() if context.get("coverage", {}).get("covered", {}).get("n") == 0
    ]
    if untested:
        notes.append("No user has the 10 pairs that a test of coverage needs.")
    dropped = found["usage"]["posts_dropped"]
    if dropped["value"]:
        notes.append(f"{percent(dropped['value'])} % of posts did not fit the model's window and were left out.")
    for name, context in contexts.items():
        if context["bounds"] and context["without_verdict"]["value"]:
            low, high = context["bounds"]["low"], context["bounds"]["high"]
            notes.append(f"{name}: with every missing verdict wrong or right, {percent(low)} to {percent(high)}.")
    return [*notes, *_cost(found), *(f"warning: {warning}" for warning in found["warnings"])]


def _label(found: Json, name: str) -> str:
    """A context's name, marked where it shows the standard itself."""
    return f"{name} (leaks)" if found["contexts"][name]["leaks"] else name


def _cost(found: Json) -> list[str]:
    usage, timing = found["usage"], found.get("timing", {})
    parts = [f"{usage['distinct_calls']:,} calls in place of {usage['calls_without_sharing']:,}"]
    if usage["tokens_in"]:
        parts.append(f"{usage['tokens_in'] + usage['tokens_out']:,} tokens")
    if timing.get("tokens_per_s"):
        parts.append(f"{timing['tokens_per_s']:,.0f} tokens/s")
    if timing.get("latency_ms_p50"):
        p50, p95 = timing["latency_ms_p50"]["value"], timing["latency_ms_p95"]["value"]
        parts.append(f"{p50:,.0f} ms a record (p95 {p95:,.0f})")
    if timing.get("tokens_naive") and timing.get("tokens_computed"):
        saved = 1 - timing["tokens_computed"] / timing["tokens_naive"]
        parts.append(f"{percent(saved)} % of tokens saved by shared prefixes")
    if timing.get("peak_share"):
        parts.append(f"{timing['peak_share']:.0%} of the machine's matmul peak")
    if usage["cost_usd"]:
        parts.append(f"${usage['cost_usd']:.4f} (${timing.get('spent_usd', 0.0):.4f} spent in this run)")
    return [" · ".join(parts)]


def _checks(found: Json) -> Table:
    """What else a verdict goes with: order, length, confidence."""
    rows = []
    for name, context in found["contexts"].items():
        position, length = context.get("position", {}), context["length"] or {}
        calibration = context.get("calibration", {})
        coverage = context.get("coverage", {})
        rows.append(
            [
                _label(found, name),
                percent(context["ties"]["value"]),
                interval(position.get("flip_rate")),
                interval(position.get("first_preferred")),
                interval(length.get("longer_wins")),
                interval(calibration.get("ece")),
                interval(coverage.get("above_half")),
                interval(coverage.get("worst_decile")),
            ]
        )
    columns = ["context", "ties", "flips", "first wins", "longer wins", "ECE", "users above ½", "worst decile"]
    notes = ["flips: verdicts that change with the order; first, longer: how often that answer wins, 50 is fair."]
    return Table("Checks", columns, rows, notes)


def _effects(found: Json) -> Table | None:
    rows = [[text, points(found["effects"][key])] for key, text in _EFFECTS.items() if key in found["effects"]]
    if headroom := found["effects"].get("headroom_closed"):
        rows.append(["headroom closed (gain ÷ (oracle − none), leaks)", interval(headroom)])
    for name, context in found["contexts"].items():
        for relation, metric in context.get("shown_user", {}).items():
            rows.append([f"accuracy under {name} where the shown user {_relation(relation)}", interval(metric)])
    for name, context in found["contexts"].items():
        if mirror := context.get("mirror_consistency"):
            rows.append([f"mirror consistency under {_label(found, name)}", interval(mirror)])
    return Table("What the user adds (percentage points)", ["effect", "value [95 %]"], rows) if rows else None


def _relation(relation: str) -> str:
    return {"silent": "is silent", "mixed": "agrees in part"}.get(relation, relation)


def _categories(found: Json) -> Table:
    groups = {_label(found, name): context["categories"] for name, context in found["contexts"].items()}
    return _grouped("By category", "category", groups)


def _by(found: Json) -> list[Table]:
    tags = {tag for context in found["contexts"].values() for tag in context["by"]}
    return [
        _grouped(
            f"By {tag}", tag, {_label(found, name): context["by"][tag] for name, context in found["contexts"].items()}
        )
        for tag in sorted(tags)
    ]


def _grouped(title: str, label: str, groups: Mapping[str, Json]) -> Table:
    names = sorted({group for found in groups.values() for group in found})
    if names == ["(none)"]:
        return Table(title, [label], [])
    rows = [[name, *(interval(found.get(name)) for found in groups.values())] for name in names]
    notes = []
    for context, found in groups.items():
        scored = {name: metric["value"] for name, metric in found.items() if metric["value"] is not None}
        if len(set(scored.values())) > 1:
            worst = min(scored, key=lambda name: scored[name])
            notes.append(f"worst under {context}: {worst} ({percent(scored[worst])})")
    return Table(title, [label, *groups], rows, notes)


def versus_table(found: Versus) -> Table:
    """Two runs against each other."""
    comparison = found.comparison
    rows = [
        [found.one, percent(found.accuracy_one), count(comparison.wins)],
        [found.two, percent(found.accuracy_two), count(comparison.losses)],
    ]
    notes = [
        f"difference {points(comparison.difference.to_json())} percentage points",
        f"p = {p_value(comparison.clustered_p)} (clustered by user and question), "
        f"{p_value(comparison.mcnemar_p)} (exact McNemar, pairs taken as independent)",
    ]
    if found.only_one or found.only_two:
        notes.append(f"left out: {found.only_one} pairs only the first judged, {found.only_two} only the second")
    title = f"{_marked(found.context)} · {comparison.difference.n:,} pairs judged by both"
    return Table(title, ["run", "accuracy", "better on"], rows, notes)


def _marked(context: str) -> str:
    return f"{context} (leaks)" if "oracle" in context else context


def flips_table(found: Versus, most: int = 20) -> Table:
    """Which pairs flipped."""
    won, lost = (_spread(pairs, most) for pairs in (found.won, found.lost))
    rows = [[pair, found.one] for pair in won] + [[pair, found.two] for pair in lost]
    left = len(found.won) + len(found.lost) - len(rows)
    notes = [f"and {left:,} more (--flips N shows more, --format json all)"] if left > 0 else []
    return Table("Pairs on which one run did better", ["pair", "better run"], rows, notes, first_numeric=9)


def _spread(pairs: Sequence[str], most: int) -> Sequence[str]:
    """So many of them, evenly from beginning to end."""
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
    """How numbers moved from run to run."""
    rows = []
    for moment in moments:
        change = moment.change.comparison.difference.to_json() if moment.change else None
        mark = "REGRESSED" if moment.regressed else ""
        rows.append(
            [moment.run.name, moment.made, interval(moment.accuracy.to_json()), points(change), p_value(moment.p), mark]
        )
    notes = ["change: against the run above, paired on common pairs; p clustered and Holm-corrected over the history"]
    columns = ["run", "finished", "accuracy [95 %]", "change", "p", ""]
    model = moments[0].run.facts.card.address
    return Table(f"History · {model} · {_marked(context)}", columns, rows, notes, first_numeric=2)


def forecast_table(estimate: Forecast) -> Table:
    """What a run would take."""
    counted = "counted" if estimate.tokens_counted else "estimated"
    rows = [
        ["pairs", f"{estimate.pairs:,}"],
        ["contexts", ", ".join(estimate.contexts)],
        ["records open / there already", f"{estimate.records_open:,} / {estimate.records_done:,}"],
        ["model calls without sharing", f"{estimate.calls_without_sharing:,}"],
        ["distinct calls", f"{estimate.distinct_calls:,}"],
        ["of these in the cache", f"{estimate.calls_in_cache:,}"],
        ["calls to make", f"{estimate.calls_to_make:,}"],
        [f"prompt tokens ({counted})", f"{estimate.tokens_in:,}"],
        ["cost (estimated)", "no price known" if estimate.cost_usd is None else f"${estimate.cost_usd:.4f}"],
        ["time (estimated)", "not known for this model" if estimate.time_s is None else clock(estimate.time_s)],
    ]
    if estimate.plans_to_make:
        rows.insert(7, ["plans to write first", f"{estimate.plans_to_make:,}"])
    if estimate.unsupported:
        rows.insert(2, ["unsupported", ", ".join(estimate.unsupported)])
    return Table("Dry run: nothing was asked, nothing was spent", ["", ""], rows)


def verification_table(found: Verification, most: int = 20) -> Table:
    """What does not agree with the records."""
    rows = [[item.place, _short(item.stored), _short(item.computed)] for item in found.mismatches[:most]]
    left = len(found.mismatches) - len(rows)
    notes = [f"and {left:,} more"] if left > 0 else []
    return Table("Values that the records do not give", ["place", "in result.json", "recomputed"], rows, notes)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"
