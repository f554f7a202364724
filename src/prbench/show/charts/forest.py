"""A value with its interval on a line, small enough to stand in a row of a table. The row's text has the numbers."""

from markupsafe import Markup

from prbench.show.charts.svg import element, scale
from prbench.stats import Estimate

WIDTH = 240
_HEIGHT = 22
_EDGE = 6


def interval_mark(
    estimate: Estimate | None, *, reference: float | None = 0.5, quiet: bool = False, width: int = WIDTH
) -> Markup:
    """A dot with whiskers from 0 to 1; hidden from screen readers, which read the numbers beside it.

    Args:
        estimate: What to draw; without a value only the line is drawn.
        reference: What chance or fairness would be; a value whose interval lies below it is marked as below.
        quiet: In grey, for what is only there to compare with.
        width: In pixels.

    Example:
        >>> "circle" in interval_mark(Estimate(0.7, 0.6, 0.8, n=9))
        True
    """
    place = scale(0.0, 1.0, _EDGE, width - _EDGE)
    middle = _HEIGHT / 2
    parts = [element("line", x1=_EDGE, x2=width - _EDGE, y1=middle, y2=middle, class_="grid")]
    if reference is not None:
        x = place(reference)
        parts.append(element("line", x1=x, x2=x, y1=0, y2=_HEIGHT, class_="chance"))
    if estimate is not None and estimate.value is not None:
        tone = _tone(estimate, reference, quiet)
        if estimate.low is not None and estimate.high is not None:
            low, high = place(estimate.low), place(estimate.high)
            parts.append(element("line", x1=low, x2=high, y1=middle, y2=middle, class_=f"whisker{tone}"))
        parts.append(element("circle", cx=place(estimate.value), cy=middle, r=4.25, class_=f"mark{tone}"))
    return element(
        "svg", *parts, class_="spark", width=width, height=_HEIGHT, viewBox=f"0 0 {width} {_HEIGHT}", aria_hidden="true"
    )


def interval_scale(width: int = WIDTH) -> Markup:
    """The axis above a column of such marks: 0, 50 and 100 percent."""
    place = scale(0.0, 1.0, _EDGE, width - _EDGE)
    anchors = {0.0: "start", 0.5: "middle", 1.0: "end"}
    ticks = [
        element("text", f"{share:.0%}".replace("%", ""), x=place(share), y=12, class_="tick", text_anchor=anchor)
        for share, anchor in anchors.items()
    ]
    return element("svg", *ticks, class_="spark", width=width, height=16, viewBox=f"0 0 {width} 16", aria_hidden="true")


def _tone(estimate: Estimate, reference: float | None, quiet: bool) -> str:
    if quiet:
        return " quiet"
    surely_below = reference is not None and estimate.high is not None and estimate.high < reference
    return " below" if surely_below else ""
