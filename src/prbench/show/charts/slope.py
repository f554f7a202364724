"""Slope chart of accuracy from context to context: up with the user's own posts, down with another user's."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from prbench.show.charts.svg import chart, element, path, scale
from prbench.show.numbers import percent
from prbench.stats import Estimate

WIDTH, HEIGHT = 300, 214
_LEFT, _RIGHT, _TOP, _BOTTOM = 30, 18, 34, 30
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)

Scale = Callable[[float], float]


class ContextPoint(NamedTuple):
    """A model's accuracy in one context; None where it was not evaluated there."""

    context: str
    accuracy: Estimate | None
    leaks: bool = False

    @property
    def value(self) -> float | None:
        """Value of the accuracy, None where there is none."""
        return self.accuracy.value if self.accuracy else None


def slope(name: str, points: Sequence[ContextPoint], others: Sequence[Sequence[ContextPoint]] = ()) -> Markup:
    """One model's accuracy over the contexts, the other models behind it in grey.

    Example:
        >>> points = [ContextPoint("none", Estimate(0.5, 0.4, 0.6, n=8))]
        >>> "none 50.0 %" in slope("tea", points)
        True
    """
    across = scale(0, max(len(points) - 1, 1), _LEFT + 14, WIDTH - _RIGHT - 14)
    up = scale(0.0, 1.0, HEIGHT - _BOTTOM, _TOP)
    parts = [element("text", name, x=0, y=14, class_="name"), *_grid(up)]
    for line in others:
        if places := [(across(i), up(value)) for i, value in _known(line)]:
            parts.append(element("path", d=path(places), class_="curve others"))
    parts += _line(points, across, up)
    parts += [
        element("text", _short(point.context), x=across(i), y=HEIGHT - 10, class_="label", text_anchor="middle")
        for i, point in enumerate(points)
    ]
    said = ", ".join(f"{point.context} {percent(point.value)} %" for point in points if point.value is not None)
    return chart(WIDTH, HEIGHT, f"Accuracy of {name} by context", f"{said}. Chance is 50 %.", parts)


def _grid(up: Scale) -> Iterator[Markup]:
    for tick in _TICKS:
        y = up(tick)
        yield element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, class_="chance" if tick == 0.5 else "grid")
        yield element("text", f"{100 * tick:.0f}", x=_LEFT - 6, y=y + 4, class_="tick", text_anchor="end")


def _line(points: Sequence[ContextPoint], across: Scale, up: Scale) -> Iterator[Markup]:
    known = [(i, points[i], value) for i, value in _known(points)]
    for (i, _, before), (j, point, value) in pairwise(known):
        ends = [(across(i), up(before)), (across(j), up(value))]
        yield element("path", d=path(ends), class_="curve leaks" if point.leaks else "curve")
    for i, point, value in known:
        yield from _point(point, value, across(i), up)


def _point(point: ContextPoint, value: float, x: float, up: Scale) -> Iterator[Markup]:
    low, high = (point.accuracy.low, point.accuracy.high) if point.accuracy else (None, None)
    top = up(value)
    if low is not None and high is not None:
        top = up(high)
        tone = " below" if point.leaks else ""
        yield element("line", x1=x, x2=x, y1=up(low), y2=top, class_=f"whisker{tone}")
    yield element("circle", cx=x, cy=up(value), r=4, class_="mark hollow" if point.leaks else "mark")
    yield element("text", f"{100 * value:.0f}", x=x, y=max(top - 6, 24), class_="value", text_anchor="middle")


def _known(points: Sequence[ContextPoint]) -> Iterator[tuple[int, float]]:
    for i, point in enumerate(points):
        if point.value is not None:
            yield i, point.value


def _short(context: str) -> str:
    return {"profile": "own", "oracle": "rubric*", "retrieved": "retrieved"}.get(context, context)
