"""CHARTS: numbers in, inline SVG out. Pure functions; every chart says in words what it shows.

A chart carries a `<title>` and a `<desc>` for readers who do not see it, and is put on a page beside a table of the
same numbers (`figure`). Colours come from classes, so a chart follows the theme; no style attribute, no script.
"""

from prbench.show.charts.calibration import reliability
from prbench.show.charts.figure import figure, html_table, small_multiples
from prbench.show.charts.forest import interval_mark, interval_scale
from prbench.show.charts.heat import heat_class, heat_table
from prbench.show.charts.histogram import user_histogram
from prbench.show.charts.slope import ContextPoint, slope

__all__ = [
    "ContextPoint",
    "figure",
    "heat_class",
    "heat_table",
    "html_table",
    "interval_mark",
    "interval_scale",
    "reliability",
    "slope",
    "small_multiples",
    "user_histogram",
]
