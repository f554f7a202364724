"""The one place that decides how a number looks."""

from collections.abc import Mapping
from typing import Any


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage.

    Example:
        >>> percent(0.7594), percent(None)
        ('75.9', '–')
    """
    return "–" if value is None else f"{100 * value:.{digits}f}"


def interval(metric: Mapping[str, Any] | None) -> str:
    """A share with its 95 % interval, in percent.

    Example:
        >>> interval({"value": 0.5, "low": 0.25, "high": 0.75, "n": 8})
        '50.0 [25.0, 75.0]'
        >>> interval({"value": 0.5, "low": None, "high": None, "n": 1})
        '50.0'
    """
    if metric is None or metric["value"] is None:
        return "–"
    if metric["low"] is None or metric["high"] is None:
        return percent(metric["value"])
    return f"{percent(metric['value'])} [{percent(metric['low'])}, {percent(metric['high'])}]"


def points(metric: Mapping[str, Any] | None) -> str:
    """A difference of shares with its interval, in signed percentage points.

    Example:
        >>> points({"value": 0.051, "low": -0.01, "high": 0.112, "n": 40})
        '+5.1 [-1.0, +11.2]'
    """
    if metric is None or metric["value"] is None:
        return "–"
    if metric["low"] is None or metric["high"] is None:
        return f"{100 * metric['value']:+.1f}"
    return f"{100 * metric['value']:+.1f} [{100 * metric['low']:+.1f}, {100 * metric['high']:+.1f}]"


def p_value(p: float | None) -> str:
    """A probability as it is printed.

    Example:
        >>> p_value(0.0312), p_value(0.00004), p_value(None)
        ('0.031', '< 0.001', '–')
    """
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


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
