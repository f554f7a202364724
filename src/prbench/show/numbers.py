"""The one place that decides how a number looks: a text for people that still knows its numbers for CSV."""

from typing import Self

from prbench.stats import Estimate


class Number(str):
    """A cell's text, and the numbers it was made of in the same unit; None where there is none.

    Example:
        >>> cell = Number("50.0 [25.0, 75.0]", 50.0, 25.0, 75.0)
        >>> print(cell, cell.value, cell.low)
        50.0 [25.0, 75.0] 50.0 25.0
    """

    __slots__ = ("high", "low", "ranged", "value")

    value: float | None
    low: float | None
    high: float | None
    ranged: bool
    """Whether this kind of number has an interval, even where this one has none."""

    def __new__(
        cls,
        text: str,
        value: float | None,
        low: float | None = None,
        high: float | None = None,
        *,
        ranged: bool | None = None,
    ) -> Self:
        """Make a text that knows its numbers."""
        cell = super().__new__(cls, text)
        cell.value, cell.low, cell.high = value, low, high
        cell.ranged = low is not None if ranged is None else ranged
        return cell


def percent(value: float | None, digits: int = 1) -> Number:
    """A share as a percentage.

    Example:
        >>> percent(0.7594), percent(None)
        ('75.9', '–')
    """
    return Number("–" if value is None else f"{100 * value:.{digits}f}", _hundredfold(value))


def count(value: int, noun: str = "") -> Number:
    """Format a whole number, with what is counted beside it where a noun is given.

    Example:
        >>> count(2668), count(2668).value, count(1, "pair"), count(2668, "pair")
        ('2,668', 2668, '1 pair', '2,668 pairs')
    """
    return Number(f"{value:,}" + (f" {noun}{'' if value == 1 else 's'}" if noun else ""), value)


def interval(estimate: Estimate | None) -> Number:
    """A share with its 95 % interval, in percent.

    Example:
        >>> interval(Estimate(0.5, 0.25, 0.75, n=8))
        '50.0 [25.0, 75.0]'
        >>> interval(Estimate(0.5, None, None, n=1))
        '50.0'
    """
    return _ranged(estimate, ".1f")


def points(estimate: Estimate | None) -> Number:
    """A difference of shares with its interval, in signed percentage points.

    Example:
        >>> points(Estimate(0.051, -0.01, 0.112, n=40))
        '+5.1 [-1.0, +11.2]'
    """
    return _ranged(estimate, "+.1f")


def _ranged(estimate: Estimate | None, shape: str) -> Number:
    found = estimate or Estimate.undefined()
    value, low, high = map(_hundredfold, (found.value, found.low, found.high))
    if value is None:
        return Number("–", None, ranged=True)
    if low is None or high is None:
        return Number(format(value, shape), value, ranged=True)
    text = f"{format(value, shape)} [{format(low, shape)}, {format(high, shape)}]"
    return Number(text, value, low, high, ranged=True)


def p_value(p: float | None) -> Number:
    """A probability as it is printed.

    Example:
        >>> p_value(0.0312), p_value(0.00004), p_value(None)
        ('0.031', '< 0.001', '–')
    """
    if p is None:
        return Number("–", None)
    return Number("< 0.001" if p < 0.001 else f"{p:.3f}", p)


def bar(value: float | None, width: int = 10) -> str:
    """A share as a small bar of blocks.

    Example:
        >>> bar(0.5, 4)
        '██  '
    """
    if value is None:
        return " " * width
    eighths = round(max(0.0, min(1.0, value)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width)


def _hundredfold(value: float | None) -> float | None:
    """A share in percent, without the dust that multiplying leaves."""
    return None if value is None else round(100 * value, 6)
