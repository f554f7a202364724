"""Accuracy of a model by category and by what decides a pair, each cell leading to the pairs behind it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from prbench.report.page.evidence import ReportedRun, ReportEvidence
from prbench.results import Measure
from prbench.show import Table, interval
from prbench.show.charts import figure, heat_class, heat_table
from prbench.show.charts.heat import HeatCell
from prbench.show.page import Section, fill
from prbench.stats import Estimate

_NO_CATEGORY = "(none)"


def groups_section(evidence: ReportEvidence) -> Section | None:
    """Accuracy by category and by what decides the pair."""
    entries = [entry for entry in evidence.entries if entry.headline]
    parts = [
        part
        for part in (
            _heat(entries, "category", {entry.label: _categories(entry) for entry in entries}),
            _heat(entries, "axis", {entry.label: _axes(entry) for entry in entries}),
        )
        if part
    ]
    if not parts:
        return None
    lead = (
        "Blue is above chance, rust below, the fainter the nearer. Each cell leads to the pairs behind it that the "
        "model got wrong."
    )
    return Section("groups", "Where it works", lead, fill("beside.html.jinja", parts=parts), "Groups")


def _heat(entries: Sequence[ReportedRun], kind: str, found: Mapping[str, Mapping[str, Estimate]]) -> Markup:
    names = sorted({name for groups in found.values() for name in groups})
    if not names or names == [_NO_CATEGORY]:
        return Markup("")
    cells = {
        name: [_cell(kind, name, number, entry, found[entry.label].get(name)) for number, entry in enumerate(entries)]
        for name in names
    }
    labels = [entry.label for entry in entries]
    title = {"category": "Accuracy by category", "axis": "Accuracy by what decides the pair"}[kind]
    rows = [[name, *(_with_n(found[label].get(name)) for label in labels)] for name in names]
    notes = ["In percent, with 95 % intervals and pairs."]
    if kind == "axis":
        notes.append("A pair that several axes decide counts under each of them.")
    drawing = heat_table(title, kind, labels, cells)
    return Markup("<h3>{}</h3>{}").format(title, figure(drawing, Table(title, [kind, *labels], rows, notes)))


def _cell(kind: str, name: str, number: int, entry: ReportedRun, estimate: Estimate | None) -> HeatCell:
    if estimate is None or estimate.value is None:
        return HeatCell("–", "heat-none")
    value = f"{100 * estimate.value:.0f}"
    group = "" if name == _NO_CATEGORY else name
    link = f"#pairs&{kind}={quote(group)}&is={number}.{quote(str(entry.headline))}.wrong"
    return HeatCell(
        value, heat_class(estimate.value), link, f"{name}, {entry.label}: {value} %. Show what it got wrong"
    )


def _with_n(estimate: Estimate | None) -> str:
    return f"{interval(estimate)} n={estimate.n:,}" if estimate else "–"


def _categories(entry: ReportedRun) -> Mapping[str, Estimate]:
    return entry.result.contexts[str(entry.headline)].categories


def _axes(entry: ReportedRun) -> dict[str, Estimate]:
    """Accuracy by axis; a pair that several axes decide counts under each."""
    groups: dict[str, list[int]] = defaultdict(list)
    rows = entry.credits[str(entry.headline)].rows
    for index, place in enumerate(rows.places.tolist()):
        for axis in rows.pairs.stances[place]:
            groups[axis].append(index)
    measure = Measure(entry.config.seed, entry.config.resamples)
    parts = ((axis, rows.take(np.array(found))) for axis, found in groups.items())
    return {axis: measure.accuracy(f"report axis {axis}", part) for axis, part in parts}
