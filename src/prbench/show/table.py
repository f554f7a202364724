"""Tables as data, whose look is decided last: for a terminal, Markdown, CSV, LaTeX or JSON."""

import csv
import io
import json
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from prbench.show.numbers import Number

Format = Literal["table", "md", "csv", "json", "latex"]
FORMATS: tuple[Format, ...] = ("table", "md", "csv", "json", "latex")

_LEAST_WORDS = 18
"""Characters that a column of words keeps on a narrow terminal."""
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


@dataclass(frozen=True)
class Table:
    """Rows of text under columns, a title above and notes below."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=tuple)
    first_numeric: int = 1
    """First column whose cells are numbers, as all after it; they stand to the right."""


def render(tables: Sequence[Table], format: Format) -> str:
    """Render tables one under another.

    Example:
        >>> print(render([Table("T", ["a", "b"], [["x", "1"]])], "md"))
        **T**
        <BLANKLINE>
        | a | b |
        |---|--:|
        | x | 1 |
    """
    renderers = {"table": _terminal, "md": _markdown, "csv": _csv, "latex": _latex, "json": _json}
    shown = tables if format in ("table", "json") else [_without_bars(table) for table in tables]
    return "\n\n".join(renderers[format](table).rstrip("\n") for table in shown)


def _without_bars(table: Table) -> Table:
    """Columns without a name hold small bars, which belong on a terminal only."""
    kept = [number for number, column in enumerate(table.columns) if column or number == 0]
    numeric = sum(number < table.first_numeric for number in kept)
    rows = [[row[number] for number in kept] for row in table.rows]
    return replace(table, columns=[table.columns[number] for number in kept], rows=rows, first_numeric=numeric)


def _terminal(table: Table) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    table, dropped = _fitted(table)
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(table.columns):
        numeric = number >= table.first_numeric
        shown.add_column(column, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    output = io.StringIO()
    console = Console(file=output, width=_width(table), force_terminal=False, color_system=None)
    console.print(shown)
    notes = list(table.notes)
    if dropped:
        notes.append(f"no room for: {', '.join(dropped)}; a wider terminal or --format md shows them")
    lines = [*_lines(table.title), *(line.rstrip() for line in output.getvalue().splitlines())]
    return "\n".join([*lines, *(line for note in notes for line in _lines(note))])


def _lines(text: str) -> list[str]:
    """A title or note in lines that the terminal has room for; whole where there is none."""
    if not sys.stdout.isatty():
        return [text.rstrip()]
    parts = [textwrap.wrap(part, _room(), break_on_hyphens=False) or [""] for part in text.splitlines()]
    return [line for part in parts for line in part]


def _fitted(table: Table) -> tuple[Table, list[str]]:
    """A table that its terminal has room for: bars and then the last columns go, digits are never cut."""
    dropped: list[str] = []
    while len(table.columns) > table.first_numeric + 1 and _least_width(table) > _room():
        bars = [number for number, column in enumerate(table.columns) if not column and number >= 1]
        place = bars[-1] if bars else len(table.columns) - 1
        if table.columns[place]:
            dropped.insert(0, table.columns[place])
        columns = [column for number, column in enumerate(table.columns) if number != place]
        rows = [[cell for number, cell in enumerate(row) if number != place] for row in table.rows]
        first = table.first_numeric - (place < table.first_numeric)
        table = replace(table, columns=columns, rows=rows, first_numeric=first)
    return table, dropped


def _least_width(table: Table) -> int:
    """Return the width that the numbers need, and a little for each column of words, which may fold."""
    widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    words = [min(width, _LEAST_WORDS) for width in widths[: table.first_numeric]]
    return sum(words) + sum(widths[table.first_numeric :]) + 3 * len(widths)


def _room() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def _width(table: Table) -> int:
    """Return the width that the table needs; on a terminal no wider than that, so that cells fold and lines do not."""
    needed = _needed_width(table)
    return min(needed, shutil.get_terminal_size().columns) if sys.stdout.isatty() else needed


def _needed_width(table: Table) -> int:
    cells = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    return max(sum(cells) + 3 * len(cells), len(table.title) + 2, 40)


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in cells) + " |"

    marks = "".join("--:|" if number >= table.first_numeric else "---|" for number in range(len(table.columns)))
    lines = [f"**{table.title}**", "", line(table.columns), f"|{marks}", *map(line, table.rows)]
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes)])


def _csv(table: Table) -> str:
    """Numbers as numbers: a figure with an interval takes three columns, words in its place go to a last one."""
    columns = [_column(name, [row[number] for row in table.rows]) for number, name in enumerate(table.columns)]
    remarks = [_remark(cells, columns) for cells in table.rows]
    noted = any(remarks)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    names = [name for column in columns for name in column.names]
    writer.writerow(["table", *names, *(["note"] if noted else [])])
    for cells, remark in zip(table.rows, remarks, strict=True):
        values = [value for column, cell in zip(columns, cells, strict=True) for value in column.values(cell)]
        writer.writerow([table.title, *values, *([remark] if noted else [])])
    return buffer.getvalue()


class _Column(NamedTuple):
    """Layout of one column of a table in CSV."""

    names: list[str]
    numeric: bool

    def values(self, cell: str) -> Sequence[str | float | None]:
        if not self.numeric:
            return [cell]
        if not isinstance(cell, Number):
            return [None] * len(self.names)
        return [cell.value, cell.low, cell.high][: len(self.names)]


def _column(name: str, cells: Sequence[str]) -> _Column:
    numbers = [cell for cell in cells if isinstance(cell, Number)]
    plain = name.removesuffix(" [95 %]")
    ranged = any(number.ranged for number in numbers)
    return _Column([plain, f"{plain}_low", f"{plain}_high"] if ranged else [plain], bool(numbers))


def _remark(cells: Sequence[str], columns: Sequence[_Column]) -> str:
    """Return the words that stand where a number would."""
    words = (
        cell for cell, column in zip(cells, columns, strict=True) if column.numeric and not isinstance(cell, Number)
    )
    return "; ".join(word for word in words if word not in ("", "–"))


def _latex(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(latex_text(cell) for cell in cells) + r" \\"

    shape = "".join("r" if number >= table.first_numeric else "l" for number in range(len(table.columns)))
    body = [line(table.columns), r"\midrule", *map(line, table.rows)]
    notes = [f"% {note}" for note in table.notes]
    return "\n".join(
        [
            f"% {table.title}",
            rf"\begin{{tabular}}{{{shape}}}",
            r"\toprule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
        ]
    )


def latex_text(text: str) -> str:
    r"""Escape what LaTeX would read as a command.

    Example:
        >>> latex_text("50 % of a_b")
        '50 \\% of a\\_b'
    """
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _json(table: Table) -> str:
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return json.dumps({"title": table.title, "rows": rows, "notes": list(table.notes)}, ensure_ascii=False, indent=2)
