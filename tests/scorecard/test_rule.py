"""The verdict at its borders."""

import pytest

from prbench.scorecard.rule import Rule, RuleEvidence
from prbench.stats import Estimate


def share(value, low=None, n=100):
    return Estimate(value, low, 1.0, n)


BEST = RuleEvidence(
    personalized=share(0.95, 0.9),
    seen_axes=share(0.89, 0.85),
    specificity=share(0.4, 0.3),
    coverage=share(0.85, 0.7),
    generic=share(0.88, 0.8),
    best_generic=0.91,
    without_verdict=0.05,
)


def test_exactly_at_every_border_wins():
    assert Rule().judge(BEST) == ("wins", ())


@pytest.mark.parametrize(
    ("change", "miss"),
    [
        ({"seen_axes": share(0.8899)}, "accuracy 89.0 % < 89.0 %"),
        ({"seen_axes": share(0.7)}, "accuracy 70.0 % < 89.0 %"),
        ({"seen_axes": None, "personalized": share(0.88, 0.8)}, "accuracy 88.0 % < 89.0 %"),
        ({"coverage": share(0.8)}, "personas covered 80.0 % < 85.0 %"),
        ({"coverage": None}, "personas covered – < 85.0 %"),
        ({"generic": share(0.87)}, "generic accuracy 4.0 points below the best"),
        ({"generic": None}, "no generic accuracy"),
        ({"without_verdict": 0.051}, "5.1 % of pairs without a verdict"),
    ],
)
def test_a_hair_less_is_partial_and_says_why(change, miss):
    assert Rule().judge(BEST._replace(**change)) == ("partial", (miss,))


@pytest.mark.parametrize(
    "change",
    [
        {"personalized": share(0.95, 0.5)},
        {"personalized": share(0.95)},
        {"personalized": None},
        {"specificity": share(0.4, 0.0)},
        {"specificity": share(0.4)},
        {"specificity": None},
    ],
)
def test_without_proof_of_the_person_everything_else_counts_for_nothing(change):
    judged = Rule().judge(BEST._replace(**change))
    assert judged.verdict == "fails"
    assert len(judged.misses) == 1


def test_personalized_accuracy_counts_where_axes_are_not_told_apart():
    assert Rule().judge(BEST._replace(seen_axes=None)).verdict == "wins"


def test_the_sentences_name_the_thresholds_that_judge():
    rule = Rule(accuracy=0.7, coverage=0.6, generic_slack=0.1, without_verdict=0.2, chance=0.4)
    text = " ".join(rule.sentences())
    assert all(f"{number:.1f}" in text for number in (70, 60, 10, 20, 40))
    assert rule.judge(BEST._replace(seen_axes=share(0.7), coverage=share(0.6))).verdict == "wins"
