"""Charts say in words what they show, stay inside their frame, and let no text become markup."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench.show import Table
from prbench.show.charts import (
    ContextPoint,
    figure,
    heat_class,
    heat_table,
    html_table,
    interval_mark,
    reliability,
    slope,
    user_histogram,
)
from prbench.stats import CalibrationBin, Estimate

SVG = "{http://www.w3.org/2000/svg}"
shares = st.floats(0, 1)


def metric(value, low=None, high=None):
    return Estimate(value, low, high, 9)


def parse(drawing):
    return ElementTree.fromstring(str(drawing))


CHARTS = {
    "slope": lambda name, value: slope(
        name, [ContextPoint("none", metric(value, 0.0, 1.0)), ContextPoint("oracle", metric(1 - value), leaks=True)]
    ),
    "users": lambda name, value: user_histogram(name, [value, 1 - value, 0.5]),
    "calibration": lambda name, value: reliability(
        name, [CalibrationBin(0.5 + value / 2, value, 3), CalibrationBin(1.0, 0.0, 1)]
    ),
}


@pytest.mark.parametrize("kind", CHARTS)
@settings(deadline=None)
@given(name=st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=20), value=shares)
def test_every_chart_has_a_text_alternative_and_stays_in_its_frame(kind, name, value):
    drawing = parse(CHARTS[kind](f"<{name}>", value))
    assert drawing.get("role") == "img"
    assert f"<{name}>" in drawing.find("title").text
    assert re.search(r"\d", drawing.find("desc").text)
    _, _, width, height = map(float, drawing.get("viewBox").split())
    for shape in drawing.iter():
        for attribute, limit in (("cx", width), ("x1", width), ("x2", width), ("cy", height), ("y1", height)):
            place = shape.get(attribute)
            assert place is None or -0.01 <= float(place) <= limit + 0.01
        assert shape.get("style") is None  # the page's policy would drop it


def test_a_slope_tells_its_numbers_and_marks_what_leaks():
    points = [
        ContextPoint("none", metric(0.5, 0.5, 0.5)),
        ContextPoint("profile", metric(0.777, 0.7, 0.85)),
        ContextPoint("other", None),
        ContextPoint("oracle", metric(0.9, 0.8, 1.0), leaks=True),
    ]
    drawing = parse(slope("tea", points))
    assert drawing.find("desc").text == "none 50.0 %, profile 77.7 %, oracle 90.0 %. Chance is 50 %."
    classes = [path.get("class") for path in drawing.iter("path")]
    assert classes == ["curve", "curve leaks"]
    assert sum("hollow" in (mark.get("class") or "") for mark in drawing.iter("circle")) == 1


def test_the_worst_decile_is_drawn_apart():
    means = [0.02, 0.03, *[0.9] * 18]
    drawing = parse(user_histogram("tea", means))
    assert "worst decile 2.5 %" in drawing.find("desc").text
    hollow = [bar for bar in drawing.iter("rect") if "hollow" in bar.get("class")]
    assert len(hollow) == 1
    assert float(hollow[0].get("x")) < 30


def test_a_mark_turns_where_the_interval_lies_below_chance():
    assert "below" in interval_mark(metric(0.3, 0.2, 0.4))
    assert "below" not in interval_mark(metric(0.3, 0.2, 0.6))
    assert "circle" not in interval_mark(None)
    assert 'aria-hidden="true"' in interval_mark(metric(0.3))


@settings(deadline=None)
@given(shares)
def test_tints_are_symmetric_about_chance(share):
    one, two = heat_class(share), heat_class(1 - share)
    assert one.replace("high", "low") == two.replace("high", "low")
    assert one == "heat-mid" or one != two


def test_tables_and_figures_escape_what_they_hold():
    table = Table("<t>", ["<a>", "b"], [["<x>", "<y>"]], ["<n>"])
    for html in (html_table(table), figure(html_table(table), table, "<c>"), heat_table("<t>", "<k>", ["<c>"], {})):
        assert not re.search(r"<(t|a|x|y|n|c|k)>", html)
    assert figure(html_table(table), table).count("<details") == 1
