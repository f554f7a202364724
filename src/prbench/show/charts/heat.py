"""A table whose cells are tinted by how far they lie from chance: a chart that is its own table."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from prbench.show.page.shell import fill
from prbench.stats import Estimate

_STEPS = (0.02, 0.10, 0.20, 0.30)
"""Distances from chance at which the tint deepens."""


class HeatCell(NamedTuple):
    """A value, where it leads, and what to say of it."""

    text: str
    tint: str
    link: str = ""
    label: str = ""


def heat_class(value: float | None, *, chance: float = 0.5) -> str:
    """The class of a cell: `heat-low-4` … `heat-mid` … `heat-high-4`.

    Example:
        >>> heat_class(0.5), heat_class(0.66), heat_class(0.1), heat_class(None)
        ('heat-mid', 'heat-high-2', 'heat-low-4', 'heat-none')
    """
    if value is None:
        return "heat-none"
    distance = round(abs(value - chance), 9)
    step = sum(distance >= edge for edge in _STEPS)
    return f"heat-{'high' if value > chance else 'low'}-{step}" if step else "heat-mid"


def heat_table(
    title: str, corner: str, columns: Sequence[str], rows: Mapping[str, Sequence[Estimate | HeatCell | None]]
) -> Markup:
    """Rows of metrics or ready cells under columns.

    Example:
        >>> "heat-high-4" in heat_table("T", "domain", ["a"], {"law": [Estimate(0.9, 0.8, 1.0, n=3)]})
        True
    """
    cells = {name: [_cell(item) for item in row] for name, row in rows.items()}
    return fill("heat.html.jinja", title=title, corner=corner, columns=columns, rows=cells)


def _cell(item: Estimate | HeatCell | None) -> HeatCell:
    if isinstance(item, HeatCell):
        return item
    value = item.value if item else None
    return HeatCell("–" if value is None else f"{100 * value:.0f}", heat_class(value))
