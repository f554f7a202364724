"""The tables of a run: baselines first, every number with its interval."""

from collections.abc import Mapping
from dataclasses import replace

from prbench.report.plan_tables import run_plan_tables
from prbench.results import (
    EFFECTS,
    HEADROOM,
    SOUNDNESS,
    BaselineResult,
    ContextResult,
    Effect,
    Result,
    Timing,
)
from prbench.show import Table, bar, count, interval, percent, points
from prbench.stats import Estimate
from prbench.types import Context

Scored = ContextResult | BaselineResult


def run_tables(result: Result) -> list[Table]:
    """Everything that is printed of a run, most important first."""
    tables = [_ranking(result)]
    if effects := _effects(result):
        tables.append(effects)
    tables.append(_checks(result))
    tables += run_plan_tables(result)
    tables += [table for table in (_jury(result), _published(result)) if table is not None]
    tables += [table for table in (_categories(result), *_by(result)) if table.rows]
    return tables


def brief_tables(result: Result) -> list[Table]:
    """Return a run's result in a few lines: accuracy by what was shown, the baselines, and what it took."""
    rows = []
    for name, context in result.contexts.items():
        rows.append([_shown(name), interval(context.accuracy), bar(context.accuracy.value), count(context.accuracy.n)])
    rows += [[_shown(name), "unsupported", "", ""] for name in result.unsupported]
    notes = [_baseline_line(result), *_cost(result), *_open_ends(result)]
    notes += [f"warning: {warning}" for warning in result.warnings]
    brief = Table(_scope(result), ["shown", "accuracy [95 %]", "", "pairs"], rows, [note for note in notes if note])
    return [brief, *(table for table in (_jury(result), _published(result)) if table is not None)]


def _shown(name: str) -> str:
    """Return what a model is shown in a context, marked where it is the standard itself."""
    context = Context.parse(name)
    return f"{context.words} (leaks)" if context.leaks else context.words


def _baseline_line(result: Result) -> str:
    """All baselines in one line; those that beat chance by name, since they say that the suite can be gamed."""
    scored = {name: found.accuracy for name, found in result.baselines.items() if name != result.model.address}
    if not scored:
        return ""
    better = {name: one for name, one in scored.items() if one.low is not None and one.low > 0.5}
    if better:
        return "beats chance without reading: " + ", ".join(f"{name} {interval(one)}" for name, one in better.items())
    values = [one.value for one in scored.values() if one.value is not None]
    if not values:
        return ""
    low, high = percent(min(values)), percent(max(values))
    return f"baselines ({', '.join(scored)}): {low if low == high else f'{low} to {high}'}, none above chance"


def _open_ends(result: Result) -> list[str]:
    """Verdicts that are missing, with what they could change."""
    said = []
    for name, context in result.contexts.items():
        if context.bounds and context.without_verdict.value:
            low, high = percent(context.bounds.low), percent(context.bounds.high)
            missing = percent(context.without_verdict.value)
            said.append(f"{name}: {missing} % without a verdict; with all of them wrong or right, {low} to {high}")
    return said


def _ranking(result: Result) -> Table:
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
    address = result.model.address
    rows = [_baseline_row(name, scored, result.groups) for name, scored in result.baselines.items() if name != address]
    rows += [_context_row(result, name) for name in result.contexts]
    rows += [[address, name, "", "unsupported", *[""] * 6] for name in result.unsupported]
    return Table(_scope(result), columns, rows, _notes(result), first_numeric=3)


def _scope(result: Result) -> str:
    counts = result.suite.counts
    parts = (count(counts.pairs, "pair"), count(counts.users, "user"), count(counts.questions, "question"))
    return f"{result.suite.name} · {', '.join(parts)}"


def _baseline_row(name: str, scored: BaselineResult, groups: Mapping[str, str]) -> list[str]:
    return [
        name,
        "none",
        bar(scored.accuracy.value),
        interval(scored.accuracy),
        "",
        _covered(scored) or "",
        _couples(scored),
        "",
        count(scored.accuracy.n),
        groups.get(f"baseline {name}", ""),
    ]


def _context_row(result: Result, name: str) -> list[str]:
    context = result.contexts[name]
    return [
        result.model.address,
        _label(result, name),
        bar(context.accuracy.value),
        interval(context.accuracy),
        percent(context.strict_accuracy.value),
        _covered(context) or "–",
        _couples(context),
        percent(context.without_verdict.value),
        count(context.accuracy.n),
        result.groups.get(name, ""),
    ]


def _covered(scored: Scored) -> str | None:
    return percent(scored.coverage.covered.value) if scored.coverage else None


def _couples(scored: Scored) -> str:
    return percent(scored.couple_coverage.value) if scored.couple_coverage else ""


def _notes(result: Result) -> list[str]:
    notes = [
        "In percent; ties count ½. Lines that share a group letter cannot be told apart (Holm-corrected, clustered).",
        "couples: both halves above ½, 0 for a model that ignores the user. docs/metrics.md defines every column.",
    ]
    if any(context.coverage and context.coverage.covered.n == 0 for context in result.contexts.values()):
        notes.append("No user has the 10 pairs that a test of coverage needs.")
    dropped = result.usage.posts_dropped.value
    if dropped:
        notes.append(f"{percent(dropped)} % of posts did not fit the model's window and were left out.")
    for name, context in result.contexts.items():
        if context.bounds and context.without_verdict.value:
            low, high = percent(context.bounds.low), percent(context.bounds.high)
            notes.append(f"{name}: with every missing verdict wrong or right, {low} to {high}.")
    return [*notes, *_cost(result), *(f"warning: {warning}" for warning in result.warnings)]


def _label(result: Result, name: str) -> str:
    """A context's name, marked where it shows the standard itself."""
    return f"{name} (leaks)" if result.contexts[name].leaks else name


def _cost(result: Result) -> list[str]:
    usage, timing = result.usage, result.timing
    parts = [f"{usage.distinct_calls:,} calls in place of {usage.calls_without_sharing:,}"]
    if usage.tokens_in:
        cached = f", {usage.tokens_cached:,} from the provider's cache" if usage.tokens_cached else ""
        parts.append(f"{usage.tokens_in + usage.tokens_out:,} tokens{cached}")
    if timing is not None:
        parts += _speed(timing)
    if usage.cost_usd or (timing is not None and timing.spent_usd):
        spent = timing.spent_usd if timing is not None else 0.0
        source = f"; prices: {price.source}" if (price := result.model.price) and price.source else ""
        parts.append(f"${usage.cost_usd:.4f} (${spent:.4f} spent in this run{_unsettled(timing)}{source})")
    if timing is not None and timing.retries:
        parts.append(f"{timing.retries:,} requests sent again")
    return [" · ".join(parts)]


def _unsettled(timing: Timing | None) -> str:
    """The part of the money that is an upper bound."""
    if timing is None or not timing.unsettled_calls:
        return ""
    return f", at most: ${timing.unsettled_usd or 0:.4f} of it for {timing.unsettled_calls:,} requests of unknown cost"


def _speed(timing: Timing) -> list[str]:
    parts = []
    if timing.tokens_per_s:
        parts.append(f"{timing.tokens_per_s:,.0f} tokens/s")
    if timing.latency_ms_p50 and timing.latency_ms_p95:
        parts.append(f"{timing.latency_ms_p50.value:,.0f} ms a record (p95 {timing.latency_ms_p95.value:,.0f})")
    if timing.tokens_naive and timing.tokens_computed:
        saved = 1 - timing.tokens_computed / timing.tokens_naive
        parts.append(f"{percent(saved)} % of tokens saved by shared prefixes")
    if timing.peak_share:
        parts.append(f"{timing.peak_share:.0%} of the machine's matmul peak")
    return parts


def _checks(result: Result) -> Table:
    """Return the table of what else a verdict goes with: order, length, confidence."""
    rows = []
    further = list(dict.fromkeys(name for context in result.contexts.values() for name in context.metrics))
    for name, context in result.contexts.items():
        position, length, coverage = context.position, context.length, context.coverage
        rows.append(
            [
                _label(result, name),
                percent(context.ties.value),
                interval(position.flip_rate if position else None),
                interval(position.first_preferred if position else None),
                interval(length.longer_wins if length else None),
                interval(context.calibration.ece if context.calibration else None),
                interval(coverage.above_half if coverage else None),
                interval(coverage.worst_decile if coverage else None),
                *(interval(context.metrics.get(metric)) for metric in further),
            ]
        )
    columns = ["context", "ties", "flips", "first wins", "longer wins", "ECE", "users above ½", "worst decile"]
    notes = ["flips: verdicts that change with the order; first, longer: how often that answer wins, 50 is fair."]
    return Table("Checks", [*columns, *further], rows, notes)


def _effects(result: Result) -> Table | None:
    shown = [effect for effect in EFFECTS if result.effects.of(effect) is not None]
    rows = [[effect.title, _effect(result, effect)] for effect in shown]
    if result.effects.soundness is not None:
        parts = result.effects.soundness.by.items()
        rows += [[f"{SOUNDNESS.name} on {name} questions", points(found)] for name, found in parts]
    for name, context in result.contexts.items():
        for relation, found in (context.shown_user or {}).items():
            rows.append([f"accuracy under {name} where the shown user {_relation(relation)}", interval(found)])
    for name, context in result.contexts.items():
        if mirror := context.mirror_consistency:
            rows.append([f"mirror consistency under {_label(result, name)}", interval(mirror)])
    notes = [f"{effect.name}: {effect.sentence}" for effect in shown]
    return Table("What the user adds (percentage points)", ["effect", "value [95 %]"], rows, notes) if rows else None


def _effect(result: Result, effect: Effect) -> str:
    show = interval if effect is HEADROOM else points
    return show(result.effects.of(effect))


def _relation(relation: str) -> str:
    return {"silent": "is silent", "mixed": "agrees in part"}.get(relation, relation)


def _jury(result: Result) -> Table | None:
    """Each juror alone, and how often jurors agree."""
    found = {name: context.jury for name, context in result.contexts.items() if context.jury is not None}
    if not found:
        return None
    jurors = list(next(iter(found.values())).jurors)
    rows = [[juror, *(interval(one.jurors[juror]) for one in found.values())] for juror in jurors]
    rows.append(["two jurors agree", *(interval(one.agreement) for one in found.values())])
    rows.append(["all jurors agree", *(interval(one.unanimous) for one in found.values())])
    notes = ["Accuracy of each juror alone; how often two jurors, and all of them, say the same in the same order."]
    return Table("Jury", ["juror", *(_label(result, name) for name in found)], rows, notes)


def _published(result: Result) -> Table | None:
    """Return the scores by the benchmark's own formula, context by context."""
    found = {name: context.published for name, context in result.contexts.items() if context.published is not None}
    if not found:
        return None
    first = next(iter(found.values()))
    parts = list(dict.fromkeys(part for one in found.values() for part in (*one.scores, *one.not_computed)))
    rows = [[part, *(interval(one.scores.get(part)) for one in found.values())] for part in parts]
    notes = [f"{first.benchmark}: {first.formula}."]
    notes += [f"{part} is not computed: {why}." for part, why in first.not_computed.items()]
    if first.left_out:
        notes.append(f"{first.left_out:,} rows without all verdicts are left out.")
    return Table(f"{first.benchmark}, as published", ["score", *(_label(result, name) for name in found)], rows, notes)


def _categories(result: Result) -> Table:
    groups = {_label(result, name): context.categories for name, context in result.contexts.items()}
    return _grouped("By category", "category", groups)


def _by(result: Result) -> list[Table]:
    tags = {tag for context in result.contexts.values() for tag in context.by}
    return [
        _grouped(f"By {tag}", tag, {_label(result, name): context.by[tag] for name, context in result.contexts.items()})
        for tag in sorted(tags)
    ]


def _grouped(title: str, label: str, groups: Mapping[str, Mapping[str, Estimate]]) -> Table:
    names = sorted({group for found in groups.values() for group in found})
    if names == ["(none)"]:
        return Table(title, [label], [])
    groups = {context: {name: _told(one) for name, one in found.items()} for context, found in groups.items()}
    rows = [[name, *(interval(found.get(name)) for found in groups.values())] for name in names]
    notes = []
    for context, found in groups.items():
        scored = {name: estimate.value for name, estimate in found.items() if estimate.value is not None}
        if len(set(scored.values())) > 1:
            worst = min(scored, key=lambda name: scored[name])
            notes.append(f"worst under {context}: {worst} ({percent(scored[worst])})")
    return Table(title, [label, *groups], rows, notes)


def _told(estimate: Estimate) -> Estimate:
    """Drop an interval that says nothing: on a handful of pairs it reaches from 0 to 100."""
    low, high = estimate.low, estimate.high
    return (
        replace(estimate, low=None, high=None)
        if low is not None and high is not None and high - low > 0.9
        else estimate
    )
