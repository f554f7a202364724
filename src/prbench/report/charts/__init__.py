"""CHARTS: numbers in, inline SVG out. Pure functions; every chart says in words what it shows.

A chart carries a `<title>` and a `<desc>` for whoever does not see it, and is put on a page beside a table of the same
numbers (`figure`). Colours come from classes, so a chart follows the theme; no style attribute, no script.
"""

from prbench.report.charts.calibration import reliability
from prbench.report.charts.figure import figure, html_table, small_multiples
from prbench.report.charts.forest import interval_mark, interval_scale
from prbench.report.charts.heat import heat_class, heat_table
from prbench.report.charts.histogram import user_histogram
from prbench.report.charts.slope import ContextPoint, slope

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
