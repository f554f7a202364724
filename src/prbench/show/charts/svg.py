"""SVG as text: elements with escaped attributes and contents, and scales from values to places."""

from collections.abc import Callable, Iterable

from markupsafe import Markup, escape

Value = str | float | int | None


def element(name: str, *content: Markup | str, **attributes: Value) -> Markup:
    """One element; an attribute that is None is left out, `class_` is `class`, `stroke_width` is `stroke-width`.

    Example:
        >>> print(element("text", "a < b", x=1.50, class_="tick"))
        <text x="1.5" class="tick">a &lt; b</text>
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), number(value))
        for key, value in attributes.items()
        if value is not None
    )
    if not content:
        return Markup("<{}{}/>").format(escape(name), written)
    return Markup("<{0}{1}>{2}</{0}>").format(escape(name), written, Markup("").join(content))


def chart(width: float, height: float, title: str, description: str, parts: Iterable[Markup]) -> Markup:
    """A whole drawing, with its name and its description in words.

    Example:
        >>> print(chart(10, 5, "Tea", "Two cups.", []))
        <svg class="chart" viewBox="0 0 10 5" role="img"><title>Tea</title><desc>Two cups.</desc></svg>
    """
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *parts,
        class_="chart",
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
    )


def number(value: Value) -> str:
    """A number in as few characters as a drawing needs; text as it is."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return a linear function from values to places; what lies outside is drawn at the edge.

    Example:
        >>> place = scale(0, 1, 10, 110)
        >>> place(0.5), place(2)
        (60.0, 110)
    """

    def place(value: float) -> float:
        share = (value - low) / (high - low)
        return min(max(start + share * (end - start), min(start, end)), max(start, end))

    return place


def path(points: Iterable[tuple[float, float]]) -> str:
    """The `d` of a line through points.

    Example:
        >>> path([(0, 1.0), (2, 3.25)])
        'M0 1L2 3.25'
    """
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
