"""A chart on a page: the drawing, what to see in it, and the table behind it."""

from collections.abc import Iterable

from markupsafe import Markup

from prbench.show.page.shell import fill
from prbench.show.table import Table


def figure(drawing: Markup, table: Table | None, caption: str = "") -> Markup:
    """A drawing with its caption and, folded away, the same numbers as a table.

    Example:
        >>> print(figure(Markup("<svg></svg>"), Table("Cups", ["who", "cups"], [["ann", "2"]])).count("<td"))
        1
    """
    return fill("figure.html.jinja", drawing=drawing, table=table, caption=caption)


def html_table(table: Table, *, captioned: bool = True) -> Markup:
    """A table of texts; the first cell of a row is its header.

    Example:
        >>> "<td>&lt;b&gt;</td>" in html_table(Table("T", ["a", "b"], [["x", "<b>"]], first_numeric=2))
        True
    """
    return fill("table.html.jinja", table=table, captioned=captioned)


def small_multiples(drawings: Iterable[Markup]) -> Markup:
    """The same chart many times over, side by side."""
    return fill("multiples.html.jinja", drawings=list(drawings))
