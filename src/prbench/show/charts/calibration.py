"""Confidence against accuracy: on the diagonal, a model that says 80 % is right in 80 of 100 pairs."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from prbench.show.charts.svg import chart, element, path, scale
from prbench.show.numbers import percent
from prbench.stats import CalibrationBin

SIZE = 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 30, 10, 26, 28


def reliability(name: str, bins: Sequence[CalibrationBin]) -> Markup:
    """Bins of pairs by confidence, each a dot whose area grows with its pairs.

    Example:
        >>> "90.0 % sure, right in 75.0 %" in reliability("tea", [CalibrationBin(0.9, 0.75, 4)])
        True
    """
    across = scale(0.5, 1.0, _LEFT, SIZE - _RIGHT)
    up = scale(0.0, 1.0, SIZE - _BOTTOM, _TOP)
    most = max((bin.n for bin in bins), default=1)
    places = [(across(bin.confidence), up(bin.accuracy)) for bin in bins]
    parts = [element("text", name, x=0, y=14, class_="name"), *_frame()]
    parts.append(element("path", d=path([(across(0.5), up(0.5)), (across(1.0), up(1.0))]), class_="chance"))
    if len(places) > 1:
        parts.append(element("path", d=path(places), class_="curve"))
    parts += [
        element("circle", cx=x, cy=y, r=2.5 + 5 * (bin.n / most) ** 0.5, class_="mark")
        for (x, y), bin in zip(places, bins, strict=True)
    ]
    said = "; ".join(
        f"{percent(bin.confidence)} % sure, right in {percent(bin.accuracy)} % of {bin.n:,}" for bin in bins
    )
    return chart(SIZE, SIZE, f"Calibration of {name}", f"{said}.", parts)


def _frame() -> Iterator[Markup]:
    across = scale(0.5, 1.0, _LEFT, SIZE - _RIGHT)
    up = scale(0.0, 1.0, SIZE - _BOTTOM, _TOP)
    for tick in (0.0, 0.5, 1.0):
        yield element("line", x1=_LEFT, x2=SIZE - _RIGHT, y1=up(tick), y2=up(tick), class_="grid")
        yield element("text", f"{100 * tick:.0f}", x=_LEFT - 6, y=up(tick) + 4, class_="tick", text_anchor="end")
    for tick, anchor in ((0.5, "start"), (0.75, "middle"), (1.0, "end")):
        yield element("text", f"{100 * tick:.0f}", x=across(tick), y=SIZE - 10, class_="tick", text_anchor=anchor)
