"""Histogram of a model's accuracy over users, with the tenth for whom it does worst."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from prbench.show.charts.svg import chart, element, scale
from prbench.show.numbers import percent

WIDTH, HEIGHT = 300, 176
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 40, 26
_BINS = 20


def user_histogram(name: str, means: Sequence[float]) -> Markup:
    """Users by their accuracy in bins of five points; the worst decile (at least one user) is drawn apart.

    Example:
        >>> "worst decile 20.0 %" in user_histogram("tea", [0.2, 0.5, 0.75, 1.0])
        True
    """
    ordered = sorted(means)
    tenth = max(1, len(ordered) // 10) if ordered else 0
    worst = sum(ordered[:tenth]) / tenth if tenth else None
    mean = sum(ordered) / len(ordered) if ordered else None
    counts = _counts(ordered)
    worst_counts = _counts(ordered[:tenth])
    parts = [element("text", name, x=0, y=14, class_="name"), *_frame(), *_bars(counts, worst_counts)]
    if mean is not None and worst is not None:
        parts.append(
            element("text", f"mean {percent(mean)} · worst decile {percent(worst)}", x=0, y=30, class_="label")
        )
    said = f"{len(ordered):,} users: mean {percent(mean)} %, worst decile {percent(worst)} %, "
    said += f"from {percent(min(ordered, default=None))} to {percent(max(ordered, default=None))} %."
    return chart(WIDTH, HEIGHT, f"Accuracy of {name} user by user", said, parts)


def _counts(means: Sequence[float]) -> list[int]:
    counts = [0] * _BINS
    for mean in means:
        counts[min(int(mean * _BINS + 1e-9), _BINS - 1)] += 1
    return counts


def _frame() -> Iterator[Markup]:
    across = scale(0.0, 1.0, _LEFT, WIDTH - _RIGHT)
    bottom = HEIGHT - _BOTTOM
    yield element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=bottom, y2=bottom, class_="axis")
    yield element("line", x1=across(0.5), x2=across(0.5), y1=_TOP, y2=bottom, class_="chance")
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        yield element("text", f"{100 * share:.0f}", x=across(share), y=HEIGHT - 10, class_="tick", text_anchor=anchor)


def _bars(counts: Sequence[int], worst: Sequence[int]) -> Iterator[Markup]:
    across = scale(0.0, _BINS, _LEFT, WIDTH - _RIGHT)
    up = scale(0.0, max([*counts, 4]), HEIGHT - _BOTTOM, _TOP)
    width = across(1) - across(0) - 2
    for i, (count, marked) in enumerate(zip(counts, worst, strict=True)):
        for low, high, tone in ((0, marked, "mark hollow"), (marked, count, "mark")):
            if high > low:
                height = up(low) - up(high)
                inset = 0.9 if "hollow" in tone else 0.0
                yield element(
                    "rect",
                    x=across(i) + 1 + inset,
                    y=up(high) + inset,
                    width=width - 2 * inset,
                    height=max(height - 2 * inset, 0.5),
                    rx=1,
                    class_=tone,
                )
