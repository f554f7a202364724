"""SHOW: what every room prints and draws with.

Tables and numbers are here, drawings in `show.charts`, the frame and the templates of HTML pages in `show.page`.
"""

from prbench.show.numbers import Number, bar, count, interval, p_value, percent, points
from prbench.show.table import FORMATS, Format, Table, latex_text, render

__all__ = [
    "FORMATS",
    "Format",
    "Number",
    "Table",
    "bar",
    "count",
    "interval",
    "latex_text",
    "p_value",
    "percent",
    "points",
    "render",
]
