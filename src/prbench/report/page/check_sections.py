"""Sections on what else a verdict may go with: length, position, confidence; and on time and money."""

from collections.abc import Iterator

from markupsafe import Markup

from prbench.report.page.evidence import ReportedRun, ReportEvidence
from prbench.show import Table, interval, percent
from prbench.show.charts import figure, html_table, interval_mark, reliability, small_multiples
from prbench.show.page import Section, context_label, fill
from prbench.stats import Estimate

_NARROW = 130
_UNKNOWN = "–"


def bias_section(evidence: ReportEvidence) -> Section | None:
    """Section on length and position: whether the longer answer wins, or the first."""
    rows = [_bias(entry, entry.headline) for entry in evidence.entries if entry.headline]
    if not rows:
        return None
    everything = [
        [cell for cell in _bias(entry, name) if not isinstance(cell, Markup)]
        for entry in evidence.entries
        for name in sorted(entry.facts.contexts, key=evidence.contexts.index)
    ]
    title = "Length and position bias, in percent"
    columns = ["model", "context", "longer wins", "", "r with length", "first wins", "", "flips with order"]
    body = fill("marked.html.jinja", title=title, columns=columns, rows=rows, number=2)
    table = Table(title, [column for column in columns if column], everything, first_numeric=2)
    body += fill("folded.html.jinja", summary="In every context", body=html_table(table))
    lead = (
        "How often the longer answer wins, and the one shown first: 50 is fair. Flips are verdicts that change with "
        "the order. Only judges that see two answers at once can have a liking for a position."
    )
    return Section("bias", "Length and position", lead, body, "Bias")


def _bias(entry: ReportedRun, name: str) -> list[str | Markup]:
    length, position = entry.result.contexts[name].length, entry.result.contexts[name].position
    longer, first = length.longer_wins if length else None, position.first_preferred if position else None
    return [
        entry.label,
        context_label(name),
        interval(longer),
        interval_mark(longer, width=_NARROW) if longer else Markup(""),
        _correlation(length.correlation if length else None),
        interval(first),
        interval_mark(first, width=_NARROW) if first else Markup(""),
        interval(position.flip_rate if position else None),
    ]


def _correlation(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None:
        return "–"
    text = f"{estimate.value:+.2f}"
    return text if estimate.low is None else f"{text} [{estimate.low:+.2f}, {estimate.high:+.2f}]"


def calibration_section(evidence: ReportEvidence) -> Section | None:
    """Whether confidence means what it says, for models that state one."""
    found = {
        entry.label: calibration
        for entry in evidence.entries
        if entry.headline and (calibration := entry.result.contexts[entry.headline].calibration)
    }
    if not found:
        return None
    drawings = [reliability(label, calibration.bins) for label, calibration in found.items()]
    rows = [
        [label, percent(bin.confidence), percent(bin.accuracy), f"{bin.n:,}"]
        for label, calibration in found.items()
        for bin in calibration.bins
    ]
    caption = (
        "Up: how often the preferred answer was the chosen one; across: how sure the model was. The larger the dot, "
        "the more pairs. The dashed line is a model that means what it says."
    )
    table = Table("Calibration, in percent", ["model", "confidence", "accuracy", "pairs"], rows)
    errors = [[label, interval(item.ece), f"{item.brier.value:.3f}"] for label, item in found.items()]
    summary = html_table(Table("Calibration error, in percent", ["model", "ECE [95 %]", "Brier score"], errors))
    lead = "Where a model's scores are log-odds, they claim a probability. Here it is held against what came true."
    return Section(
        "calibration", "Calibration", lead, figure(small_multiples(drawings), table, caption) + summary, "Calibration"
    )


def cost_section(evidence: ReportEvidence) -> Section:
    """Time, tokens and money, measured."""
    rows = [list(_cost(entry)) for entry in evidence.entries]
    columns = [
        "model",
        "records",
        "calls",
        "shared",
        "tokens",
        "tokens/s",
        "latency p50",
        "p95",
        "cost",
        "finished (UTC)",
    ]
    notes = [
        "Calls are distinct model calls, shared is the part that equal prompts saved. Latency in ms a record, as "
        "measured on the machine of the run; cost in US dollars at the price given to the run.",
    ]
    told = [place for place in range(len(columns)) if any(row[place] != _UNKNOWN for row in rows)]
    table = Table("Cost and latency", [columns[i] for i in told], [[row[i] for i in told] for row in rows], notes)
    body = html_table(table, captioned=False)
    lead = "What each run took. Times compare only where the machine was the same."
    return Section("cost", "Cost and latency", lead, body, "Cost")


def _cost(entry: ReportedRun) -> Iterator[str]:
    usage, timing = entry.result.usage, entry.result.timing
    tokens = usage.tokens_in + usage.tokens_out
    saved = 1 - usage.distinct_calls / usage.calls_without_sharing if usage.calls_without_sharing else None
    yield entry.label
    yield f"{usage.records:,}"
    yield f"{usage.distinct_calls:,}"
    yield _UNKNOWN if saved is None else f"{percent(saved)} %"
    yield f"{tokens:,}" if tokens else _UNKNOWN
    yield f"{timing.tokens_per_s:,.0f}" if timing and timing.tokens_per_s else _UNKNOWN
    yield _milliseconds(timing.latency_ms_p50 if timing else None)
    yield _milliseconds(timing.latency_ms_p95 if timing else None)
    yield f"${usage.cost_usd:,.4f}" if usage.cost_usd else _UNKNOWN
    yield timing.finished.removesuffix("+00:00").replace("T", " ") if timing else "not finished"


def _milliseconds(latency: Estimate | None) -> str:
    """A latency with as many digits as it deserves.

    >>> _milliseconds(Estimate(0.0123, None, None, 1)), _milliseconds(Estimate(1234.5, None, None, 1))
    ('0.012', '1,234')
    """
    if latency is None or latency.value is None:
        return _UNKNOWN
    value = latency.value
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 1 else f"{value:.1f}"
