"""A best-of-N study as a section of the report page: curves over k, gains user by user, over-optimisation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from markupsafe import Markup

from prbench.show import Table
from prbench.show.charts import figure, html_table, small_multiples
from prbench.show.charts.gains import gain_histogram
from prbench.show.charts.lines import ChartLine, LinePoint, line_bounds, line_chart
from prbench.show.page import Section
from prbench.stats import Estimate
from prbench.studies.best_of_n.conclusion import read_curves
from prbench.studies.best_of_n.gain_tables import best_of_n_tables, ordered, ranged
from prbench.studies.best_of_n.outcome import BestOfCurves

_DUST = 1e-9
"""Largest difference that comes from adding up floats and is no change."""


def best_of_n_section(folder: Path, *, number: int = 0) -> Section:
    """Section of a page that draws one study.

    Args:
        folder: A finished study.
        number: Tells several studies on a page apart.
    """
    found = read_curves(folder)
    table = best_of_n_tables(found)[0]
    body = html_table(table) + _curves(found) + _users(found) + _over(found)
    writer = "The suite's own authors" if found.candidates == "suite" else found.policy
    lead = (
        f"{writer} wrote {found.details.n} answers to each question. Each reward model chose among them for each "
        "user; what the choice is worth was judged under the user's own rubric. A reward model that knows the user "
        "rises above the random line as there is more to choose from."
    )
    return Section(f"best-of-n{number or ''}", f"Best of N on {found.suite}", lead, body, "Best of N")


def _curves(found: BestOfCurves) -> Markup:
    """True score over k, with random and oracle as measures."""
    common = [
        ChartLine("random", _points(found.ks, found.lines.random), "quiet"),
        ChartLine("oracle", _points(found.ks, found.lines.oracle), "dashed"),
    ]
    names = _names(found)
    own = {name: ChartLine("true score", _points(found.ks, _line(found, name, "true"))) for name in names}
    bounds = line_bounds([*common, *own.values()])
    drawings = [
        line_chart(
            name,
            [*common, own[name]],
            across="k, best of",
            what="True score of the pick",
            logarithmic=True,
            bounds=bounds,
        )
        for name in names
    ]
    columns = ["model", *(f"k = {k}" for k in _shown(found.ks))]
    rows = [["random", *_cells(found, found.lines.random)], ["oracle", *_cells(found, found.lines.oracle)]]
    rows += [[name, *_cells(found, _line(found, name, "true"))] for name in names]
    caption = (
        "Expected true score (0 to 2) of the answer chosen among k, exactly, over all subsets of the N answers; bands "
        "are 95 % intervals clustered by user and question. Grey: a random answer. Dashed: chosen by the judge itself."
    )
    return figure(small_multiples(drawings), Table("True score of the best of k", columns, rows), caption)


def _users(found: BestOfCurves) -> Markup:
    """Return the chart of the users for whom choosing pays."""
    gains = {name: [user.gain for user in found.models[name].users.values()] for name in _names(found)}
    reach = max((abs(gain) for listed in gains.values() for gain in listed), default=1.0)
    drawings = [gain_histogram(name, listed, reach=reach) for name, listed in gains.items() if listed]
    rows = [
        [
            name,
            f"{round(sum(listed) / len(listed), 9) + 0.0:+.3f}",
            f"{min(listed):+.3f}",
            f"{sum(gain > _DUST for gain in listed)} of {len(listed)}",
        ]
        for name, listed in gains.items()
        if listed
    ]
    table = Table("Gain over a random answer, user by user", ["model", "mean", "worst user", "users who gain"], rows)
    caption = f"Users by what the best of {found.details.k} adds for them over a random answer; hollow: they lose."
    return figure(small_multiples(drawings), table, caption)


def _over(found: BestOfCurves) -> Markup:
    """Whether the model's own score goes on rising while the true score falls."""
    drawings, rows = [], []
    for name in _names(found):
        over = found.models[name].over_optimisation
        if over is None:
            continue
        proxy, true = _risen(found.ks, _line(found, name, "proxy")), _risen(found.ks, _line(found, name, "true"))
        lines = [ChartLine("its own score", proxy, "dashed"), ChartLine("true score", true)]
        what = "Rise of both scores since k = 1"
        drawings.append(line_chart(name, lines, across="k, best of", what=what, logarithmic=True, bounds=(-1.0, 1.0)))
        clear = over.drop.low is not None and over.drop.low > _DUST
        told = "yes" if clear else "not shown"
        rows.append([name, str(over.peak_k), ranged(over.drop), told])
    columns = ["model", "peak at k", "drop from there to N [95 %]", "over-optimised"]
    caption = (
        "Both scores since k = 1, each as a share of its own largest change. Where the dashed line (what the reward "
        "model believes) rises and the solid one (what it is worth) falls, choosing harder makes answers worse."
    )
    table = Table("Over-optimisation", columns, rows)
    return figure(small_multiples(drawings), table, caption)


def _risen(ks: Sequence[int], estimates: Sequence[Estimate]) -> list[LinePoint]:
    known = [(k, one.value) for k, one in zip(ks, estimates, strict=True) if one.value is not None]
    if not known:
        return []
    start = known[0][1]
    largest = max(abs(value - start) for _, value in known)
    largest = largest if largest > _DUST else float("inf")
    return [LinePoint(k, (value - start) / largest) for k, value in known]


def _points(ks: Sequence[int], estimates: Sequence[Estimate]) -> list[LinePoint]:
    return [
        LinePoint(k, one.value, one.low, one.high)
        for k, one in zip(ks, estimates, strict=True)
        if one.value is not None
    ]


def _line(found: BestOfCurves, name: str, line: Literal["true", "proxy"]) -> list[Estimate]:
    return [point.true if line == "true" else point.proxy for point in found.models[name].points]


def _cells(found: BestOfCurves, estimates: Sequence[Estimate]) -> list[str]:
    return [ranged(estimates[k - 1]) for k in _shown(found.ks)]


def _shown(ks: Sequence[int]) -> list[int]:
    """Powers of two and the last."""
    return [k for k in ks if k & (k - 1) == 0 or k == ks[-1]]


def _names(found: BestOfCurves) -> list[str]:
    ranked, apart = ordered(found)
    return [*ranked, *apart]
