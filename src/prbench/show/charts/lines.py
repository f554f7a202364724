"""Lines over a number: how something changes with k, with steps, with the number of judgments."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from markupsafe import Markup

from prbench.show.charts.svg import chart, element, path, scale

WIDTH, HEIGHT = 300, 214
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 12, 30, 32
_MOST_TICKS = 6
_GAP = 16
"""Between the charts of a sheet."""
_STYLE = (
    "text{font:11px sans-serif;fill:#555}.name{font-weight:600;fill:#222}.grid{stroke:#ddd}"
    ".curve{stroke:#b4532a;stroke-width:2;fill:none}.others{stroke:#ccc;stroke-width:1}.leaks{stroke-dasharray:4 3}"
    ".band{fill:#b4532a;opacity:.15}.mark{fill:#b4532a}"
)

Tone = Literal["main", "quiet", "dashed"]
_CLASSES: dict[Tone, str] = {"main": "curve", "quiet": "curve others", "dashed": "curve leaks"}


class LinePoint(NamedTuple):
    """One point of a line, with its interval where it has one."""

    x: float
    value: float
    low: float | None = None
    high: float | None = None


class ChartLine(NamedTuple):
    """One line of a chart."""

    label: str
    points: Sequence[LinePoint]
    tone: Tone = "main"
    """`main` in the accent colour with its band; `quiet` in grey behind; `dashed` for what serves as a measure."""


def line_chart(
    name: str,
    lines: Sequence[ChartLine],
    *,
    across: str,
    what: str,
    logarithmic: bool = False,
    digits: int = 2,
    bounds: tuple[float, float] | None = None,
) -> Markup:
    """Lines over a common number, the first points at the left edge.

    Args:
        name: Name of the model on the chart.
        lines: In the order in which they are drawn.
        across: What the number below is.
        what: What the lines show, for who does not see them.
        logarithmic: Whether equal factors are equally far apart below.
        digits: Of the numbers on the left.
        bounds: Lowest and highest on the left, where several charts are to be compared; default: what is drawn.

    Example:
        >>> line = ChartLine("tea", [LinePoint(1, 0.5), LinePoint(2, 0.75)])
        >>> "tea from 0.50 at 1 to 0.75 at 2" in line_chart("cups", [line], across="k", what="Cups")
        True
    """
    drawn = [line for line in lines if line.points]
    parts = [element("text", name, x=0, y=14, class_="name")]
    if drawn:
        parts += _drawing(drawn, across, bounds or line_bounds(drawn), logarithmic, digits)
    said = "; ".join(_words(line, digits) for line in drawn) or "nothing to show"
    return chart(WIDTH, HEIGHT, f"{what}: {name}", f"{said}.", parts)


def line_bounds(lines: Sequence[ChartLine]) -> tuple[float, float]:
    """Return the lowest and the highest value that is drawn; bands count for the main lines only.

    Example:
        >>> line_bounds([ChartLine("tea", [LinePoint(1, 0.5, 0.25, 0.75)])])
        (0.25, 0.75)
    """
    values = [point.value for line in lines for point in line.points]
    for line in lines:
        if line.tone == "main":
            values += [end for point in line.points for end in (point.low, point.high) if end is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    return (low, high) if high - low > 1e-9 else (low - 0.5, high + 0.5)


def _drawing(
    lines: Sequence[ChartLine], across: str, bounds: tuple[float, float], logarithmic: bool, digits: int
) -> Iterator[Markup]:
    xs = sorted({point.x for line in lines for point in line.points})
    warp: Callable[[float], float] = math.log2 if logarithmic and xs[0] > 0 else float
    low, high = bounds
    right = scale(warp(xs[0]), warp(xs[-1]) if len(xs) > 1 else warp(xs[0]) + 1, _LEFT, WIDTH - _RIGHT)
    up = scale(low, high, HEIGHT - _BOTTOM, _TOP)
    yield from _grid(low, high, up, digits)
    for tick in _ticks(xs, logarithmic):
        yield element(
            "text", f"{tick:g}", x=right(warp(tick)), y=HEIGHT - _BOTTOM + 14, class_="tick", text_anchor="middle"
        )
    yield element("text", across, x=WIDTH - _RIGHT, y=HEIGHT - 4, class_="label", text_anchor="end")
    for line in lines:
        yield from _line(line, lambda x: right(warp(x)), up)


def line_sheet(panels: Sequence[Markup], columns: int = 2) -> str:
    """Several line charts in one drawing that needs no page around it: a file beside a document.

    Example:
        >>> line_sheet([line_chart("cups", [], across="k", what="Cups")]).count("<svg")
        2
    """
    placed = []
    for place, panel in enumerate(panels):
        x, y = place % columns * (WIDTH + _GAP), place // columns * (HEIGHT + _GAP)
        size = Markup('<svg x="{}" y="{}" width="{}" height="{}" ').format(x, y, WIDTH, HEIGHT)
        placed.append(panel.replace("<svg ", size, 1))
    width, height = columns * (WIDTH + _GAP), math.ceil(len(panels) / columns) * (HEIGHT + _GAP)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return f'{head}<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(placed)}</svg>\n'


def _grid(low: float, high: float, up: Callable[[float], float], digits: int) -> Iterator[Markup]:
    for share in (0.0, 0.5, 1.0):
        value = low + share * (high - low)
        y = up(value)
        yield element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, class_="grid")
        yield element("text", f"{value:.{digits}f}", x=_LEFT - 5, y=y + 4, class_="tick", text_anchor="end")


def _ticks(xs: Sequence[float], logarithmic: bool) -> list[float]:
    if logarithmic and not 2 < len(xs) <= _MOST_TICKS:
        powers = [float(2**power) for power in range(int(math.log2(xs[-1])) + 1)] if xs[-1] >= 1 else list(xs)
        return [tick for tick in powers if xs[0] <= tick <= xs[-1]]
    step = max(1, math.ceil(len(xs) / _MOST_TICKS))
    return list(xs[::step])


def _line(line: ChartLine, right: Callable[[float], float], up: Callable[[float], float]) -> Iterator[Markup]:
    ends = [
        (right(point.x), up(point.low), up(point.high))
        for point in line.points
        if point.low is not None and point.high is not None
    ]
    if line.tone == "main" and len(ends) > 1:
        outline = [(x, high) for x, _, high in ends] + [(x, low) for x, low, _ in reversed(ends)]
        yield element("path", d=path(outline) + "Z", class_="band")
    places = [(right(point.x), up(point.value)) for point in line.points]
    if len(places) == 1 and line.tone == "main":
        yield element("circle", cx=places[0][0], cy=places[0][1], r=3, class_="mark")
    for start, end in pairwise(places):
        yield element("path", d=path([start, end]), class_=_CLASSES[line.tone])


def _words(line: ChartLine, digits: int) -> str:
    first, last = line.points[0], line.points[-1]
    if first.x == last.x:
        return f"{line.label} {first.value:.{digits}f} at {first.x:g}"
    return f"{line.label} from {first.value:.{digits}f} at {first.x:g} to {last.value:.{digits}f} at {last.x:g}"
