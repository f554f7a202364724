"""Where a model works: accuracy by category and by what decides a pair, each cell leading to the pairs behind it."""

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from prbench import stats
from prbench.contexts import decides
from prbench.report.charts import figure, heat_class, heat_table
from prbench.report.charts.heat import HeatCell
from prbench.report.numbers import interval
from prbench.report.page.evidence import Entry, Evidence
from prbench.report.page.section import Section, fill
from prbench.report.table import Table
from prbench.run.credits import Credit
from prbench.run.measure import clusters_of

Json = Mapping[str, Any]
_NO_CATEGORY = "(none)"


def groups_section(evidence: Evidence) -> Section | None:
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


def _heat(entries: Sequence[Entry], kind: str, found: Mapping[str, Mapping[str, Json]]) -> Markup:
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


def _cell(kind: str, name: str, number: int, entry: Entry, metric: Json | None) -> HeatCell:
    if metric is None or metric["value"] is None:
        return HeatCell("–", "heat-none")
    value = f"{100 * metric['value']:.0f}"
    group = "" if name == _NO_CATEGORY else name
    link = f"#pairs&{kind}={quote(group)}&is={number}.{quote(str(entry.headline))}.wrong"
    return HeatCell(
        value, heat_class(metric["value"]), link, f"{name}, {entry.label}: {value} %. Show what it got wrong"
    )


def _with_n(metric: Json | None) -> str:
    return f"{interval(metric)} n={metric['n']:,}" if metric else "–"


def _categories(entry: Entry) -> Mapping[str, Json]:
    found: Mapping[str, Json] = entry.result["contexts"][str(entry.headline)]["categories"]
    return found


def _axes(entry: Entry) -> dict[str, Json]:
    """Accuracy by axis; a pair that several axes decide counts under each."""
    groups: dict[str, list[Credit]] = defaultdict(list)
    for credit in entry.credits[str(entry.headline)].rows:
        for axis in decides(credit.row.tags):
            groups[axis].append(credit)
    return {axis: _mean(entry, axis, rows) for axis, rows in groups.items()}


def _mean(entry: Entry, name: str, rows: Sequence[Credit]) -> Json:
    values = [row.credit for row in rows]
    clusters = clusters_of(rows)
    if set(values) in ({0.0}, {1.0}):  # nothing varies, but what so few units show is not certain
        return {**stats.wilson(values[0] * clusters.units, clusters.units).to_json(), "n": len(rows)}
    rng = np.random.default_rng([entry.config.seed, zlib.crc32(f"report axis {name}".encode())])
    resamples = entry.config.resamples
    return stats.mean_interval(values, clusters, rng, resamples=resamples, bounds=(0.0, 1.0)).to_json()
