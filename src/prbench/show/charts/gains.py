"""Chart of gains and losses: users by their gain, zero in the middle."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from prbench.show.charts.svg import chart, element, scale

WIDTH, HEIGHT = 300, 160
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 40, 24
_HALF = 8
"""Bins on either side of zero."""


def gain_histogram(name: str, gains: Sequence[float], *, reach: float, what: str = "Gain user by user") -> Markup:
    """Users by what they gain; those who lose are drawn hollow.

    Args:
        name: Name of the model on the chart.
        gains: One for each user.
        reach: The chart goes from −reach to +reach; what lies beyond is drawn at the edge.
        what: Quantity that is gained.

    Example:
        >>> "mean +0.000" in gain_histogram("tea", [0.3, -0.1, -0.2], reach=1.0)
        True
        >>> "2 of 3 users gain" in gain_histogram("tea", [0.4, -0.1, 0.2], reach=1.0)
        True
    """
    reach = reach if reach > 0 else 1.0
    mean = round(sum(gains) / len(gains), 9) + 0.0 if gains else 0.0  # no “-0.000” from rounding
    better = sum(gain > 0 for gain in gains)
    said = f"{better} of {len(gains)} users gain, mean {mean:+.3f}"
    parts = [element("text", name, x=0, y=14, class_="name"), element("text", said, x=0, y=30, class_="label")]
    parts += [*_frame(reach), *_bars(gains, reach)]
    ends = f"; from {min(gains):+.3f} to {max(gains):+.3f}" if gains else ""
    return chart(WIDTH, HEIGHT, f"{what}: {name}", f"{said}{ends}.", parts)


def _frame(reach: float) -> Iterator[Markup]:
    across = scale(-reach, reach, _LEFT, WIDTH - _RIGHT)
    bottom = HEIGHT - _BOTTOM
    yield element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=bottom, y2=bottom, class_="axis")
    yield element("line", x1=across(0), x2=across(0), y1=_TOP, y2=bottom, class_="chance")
    for value, anchor in ((-reach, "start"), (0.0, "middle"), (reach, "end")):
        shown = f"{value:+.2f}" if value else "0"
        yield element("text", shown, x=across(value), y=HEIGHT - 8, class_="tick", text_anchor=anchor)


def _bars(gains: Sequence[float], reach: float) -> Iterator[Markup]:
    counts = [0] * (2 * _HALF)
    for gain in gains:
        place = int((gain / reach + 1) * _HALF)
        counts[min(max(place, 0), 2 * _HALF - 1)] += 1
    across = scale(0, 2 * _HALF, _LEFT, WIDTH - _RIGHT)
    up = scale(0, max([*counts, 4]), HEIGHT - _BOTTOM, _TOP)
    width = across(1) - across(0) - 2
    for place, count in enumerate(counts):
        if count:
            yield element(
                "rect",
                x=across(place) + 1,
                y=up(count),
                width=width,
                height=up(0) - up(count),
                rx=1,
                class_="mark" if place >= _HALF else "mark hollow",
            )
