"""Agreement and equivalence against answers that are known: worked examples of the literature, and scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from prbench.annotate.agreement import Label, fleiss, krippendorff_nominal, krippendorff_ordinal, with_interval
from prbench.annotate.claim import tost
from prbench.stats import Clusters

# Krippendorff (2011), Computing Krippendorff's alpha-reliability, section C: four observers, twelve units, some gaps.
OBSERVERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
# Fleiss (1971) as worked out in many places: ten subjects, fourteen raters, five categories.
SUBJECTS = (
    "00 00 00 00 14",
    "00 02 06 04 02",
    "00 00 03 05 06",
    "00 03 09 02 00",
    "02 02 08 01 01",
    "07 07 00 00 00",
    "03 02 06 03 00",
    "02 05 03 02 02",
    "06 05 02 01 00",
    "00 02 02 03 07",
)


def observed(rows):
    return [
        Label(rater, str(unit), int(mark), str(unit))
        for rater, row in enumerate(rows)
        for unit, mark in enumerate(row)
        if mark != "."
    ]


def counted(rows):
    return [
        Label(f"{subject}-{number}", str(subject), label, str(subject))  # every subject has raters of its own
        for subject, row in enumerate(rows)
        for number, label in enumerate([k for k, times in enumerate(row.split()) for _ in range(int(times))])
    ]


def test_krippendorffs_own_example():
    assert krippendorff_nominal(observed(OBSERVERS)) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_ordinal(observed(OBSERVERS)) == pytest.approx(0.815, abs=5e-4)
    assert with_interval(krippendorff_ordinal, observed(OBSERVERS)).n == 11  # the last unit has one observer


def test_fleiss_example_with_raters_who_differ_from_subject_to_subject():
    assert fleiss(counted(SUBJECTS)) == pytest.approx(0.210, abs=5e-4)


def test_fleiss_leaves_out_units_with_another_number_of_raters():
    labels = counted(SUBJECTS)
    more = [*labels, Label("x", "new", 0, "new"), Label("y", "new", 1, "new")]
    assert fleiss(more) == fleiss(labels)
    assert with_interval(fleiss, more).n == 10


@pytest.mark.parametrize("rows", [(), ("111",), ("11", "11"), ("1..", ".2.", "..3")])
def test_where_there_is_nothing_to_compare_agreement_is_undefined(rows):
    for coefficient in (krippendorff_nominal, krippendorff_ordinal, fleiss):
        assert with_interval(coefficient, observed(rows)).value is None


def test_perfect_agreement_is_one_and_contrary_marks_are_below_nothing():
    assert with_interval(krippendorff_nominal, observed(["123123"] * 3)).value == 1
    assert with_interval(fleiss, observed(["123123"] * 3)).value == 1
    assert krippendorff_nominal(observed(["1212", "2121"])) < 0


def test_intervals_narrow_with_more_pairs_and_hold_the_value():
    random = np.random.default_rng(0)

    def width(units):
        truth = random.integers(1, 4, units)
        rows = [
            "".join(str(v) for v in np.where(random.random(units) < 0.7, truth, random.integers(1, 4, units)))
            for _ in "abc"
        ]
        found = with_interval(krippendorff_nominal, observed(rows))
        assert found.low < found.value < found.high
        return found.high - found.low

    assert width(400) < 0.5 * width(40)
    assert with_interval(krippendorff_nominal, observed(["1212", "1211"])).low is None  # four pairs: none


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=30).filter(lambda rows: len(set(rows)) > 1), st.floats(0.1, 2))
def test_tost_of_independent_rows_is_scipys_two_one_sided_t_tests(rows, margin):
    clusters = Clusters.of(range(len(rows)), range(len(rows)))
    found = tost(rows, clusters, margin)
    above = scipy_stats.ttest_1samp(rows, -margin, alternative="greater").pvalue
    below = scipy_stats.ttest_1samp(rows, margin, alternative="less").pvalue
    assert found.p == pytest.approx(max(above, below), rel=1e-6, abs=1e-12)
    inside = -margin < found.interval.low and found.interval.high < margin
    assert found.shown == inside


def test_tost_worked_by_hand():
    # A mean of 0.08 and a standard deviation of 0.8903 over 65 paired differences, margin 0.4 deviations:
    # t = (0.08 - 0.3561) / (0.8903 / √65) = -2.500 with 64 degrees of freedom, p = .0075.
    rows = scipy_stats.zscore(np.random.default_rng(0).normal(size=65), ddof=1) * 0.8903 + 0.08
    clusters = Clusters.of(range(65), range(65))
    assert tost(rows, clusters, 0.4 * 0.8903).p == pytest.approx(0.0075, abs=2e-4)
    assert tost(rows, clusters, 0.1 * 0.8903).shown is False


def test_few_clusters_make_equivalence_harder():
    rows = np.random.default_rng(1).normal(0, 0.6, 60)
    alone = tost(rows, Clusters.of(range(60), range(60)), 0.3)
    together = tost(rows, Clusters.of([row % 3 for row in range(60)], [row // 3 for row in range(60)]), 0.3)
    assert alone.p < together.p


def test_certainty_is_never_claimed():
    rows, pairs = [0.0] * 20, list(range(10)) * 2
    assert tost(rows, Clusters.of([0] * 10 + [1] * 10, pairs), 0.5).p == 0.5**10
    assert tost([1.0] * 20, Clusters.of([0] * 10 + [1] * 10, pairs), 0.5).p == 1
    one = tost(rows, Clusters.of([0] * 20, list(range(20))), 0.5)
    assert (one.p, one.shown) == (None, False)
    assert tost([], Clusters.of([], []), 0.5).p is None
