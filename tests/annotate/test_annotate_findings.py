"""The report on planted studies: it finds what was planted, and says no more than the data carry."""

import json
import random

import pytest

from annotate_study import fill, pairs, prefer_green, scores, study
from prbench.annotate.answer import AnnotatorAnswer
from prbench.annotate.claim import Equivalence, judge, judge_preference, judge_quality
from prbench.annotate.findings import find
from prbench.annotate.findings_tables import tables
from prbench.annotate.people import forget
from prbench.show import render
from prbench.stats import Estimate
from small_suite import mirrored


def rater(seed, *, green=0.9, lead=0.0, unsure=0.05):
    """Somebody who prefers green with a probability, and rates green better by `lead` in helpfulness."""
    chance = random.Random(seed)

    def decide(shown, green_first):
        general = chance.choice([3, 4])
        given = {
            name: {
                "factuality": general,
                "relevance": min(5, max(1, general + chance.choice([-1, 0, 0, 1]))),
                "helpfulness": min(5, max(1, round(general + (lead if name == "green" else 0) + chance.gauss(0, 0.4)))),
            }
            for name in ("green", "black")
        }
        first, second = ("green", "black") if green_first else ("black", "green")
        wanted = first if (chance.random() < green) == (first == "green") else second
        preference = "unsure" if chance.random() < unsure else "first" if wanted == first else "second"
        return AnnotatorAnswer(preference=preference, first=scores(given[first]), second=scores(given[second]))

    return decide


def planted(path, *, count=60, people=3, **habits):
    opened = study(path, pairs(count), names=[f"a{n}" for n in range(people)], pairs=None)
    for number in range(people):
        fill(opened.store, number + 1, rater(number, **habits))
    return opened.store


def test_the_claim_holds_where_it_was_planted(tmp_path):
    found = find(planted(tmp_path))
    assert found.claim.holds == "holds"
    assert set(found.claim.quality.values()) == {"equal"}
    agreement = found.preference.agreement
    assert 0.5 < agreement.low < 0.87 < agreement.high
    assert (agreement.n, found.judgments, found.annotators, found.pairs) == (180, 180, 3, 60)
    assert abs(found.preference.first_shown.value - 0.5) < 0.15
    assert found.quality["factuality"].difference.value == 0
    assert 3 < found.quality["helpfulness"].chosen.value < 4
    assert found.preference.alpha.value == pytest.approx(found.preference.kappa.value, abs=0.02)
    assert found.preference.alpha.low > 0.4  # who follow the labels agree, although labels all say "chosen"


def test_a_difference_of_quality_breaks_the_claim(tmp_path):
    found = find(planted(tmp_path, lead=1.0))
    assert found.claim.holds == "does not hold"
    assert found.claim.quality["helpfulness"] == "different"
    assert found.quality["helpfulness"].difference.low > 0.5
    assert "helpfulness differs between chosen and rejected" in found.claim.text


def test_a_coin_is_not_a_preference(tmp_path):
    found = find(planted(tmp_path, green=0.5))
    assert found.claim.holds == "not shown"
    assert found.claim.preference == "not shown"
    assert "not surely different from a coin's" in found.claim.text


def test_labels_that_people_turn_round_break_the_claim(tmp_path):
    found = find(planted(tmp_path, green=0.05))
    assert found.claim.holds == "does not hold"
    assert "people prefer the rejected answer" in found.claim.text


def test_few_annotations_get_no_verdict(tmp_path):
    found = find(planted(tmp_path, count=8, people=2))
    assert found.claim.holds == "too few annotations"
    text = render(tables(found), "table")
    assert "8 pairs judged by 2 annotators: too few for a verdict" in text
    assert "holds" not in text


def test_one_annotator_has_no_interval_and_no_verdict(tmp_path):
    found = find(planted(tmp_path, people=1))
    assert found.preference.agreement.low is None
    assert found.quality["relevance"].equivalence.p is None
    assert found.claim.holds == "too few annotations"
    assert "no pair was judged by two annotators" in render(tables(found), "table")


def test_nothing_judged_yet_is_a_report_too(tmp_path):
    found = find(study(tmp_path).store)
    assert found.judgments == 0
    assert found.claim.holds == "too few annotations"
    assert "0 pairs judged by 0 annotators" in render(tables(found), "md")
    json.dumps(found.to_json(), allow_nan=False)


def test_unanimity_is_not_certainty(tmp_path):
    opened = study(tmp_path, pairs(30), pairs=None)
    for annotator in (1, 2):
        fill(opened.store, annotator, prefer_green)
    found = find(opened.store)
    agreement = found.preference.agreement
    assert agreement.value == 1
    assert 0.8 < agreement.low < 1
    assert found.preference.alpha.value == 1
    assert found.quality["relevance"].alpha.value is None  # all ratings are equal: chance cannot be corrected for
    assert found.claim.holds == "holds"


def test_only_the_latest_version_counts_and_changes_are_counted(tmp_path):
    from prbench.annotate.tasks import last_code, save, show

    opened = study(tmp_path)
    fill(opened.store, 1, prefer_green)
    with opened.store.writing() as connection:
        shown = show(connection, 1, last_code(connection, 1))
        turned = AnnotatorAnswer(
            preference="second" if shown.answer.preference == "first" else "first", first=scores(1), second=scores(1)
        )
        save(connection, shown, 1, turned)
    found = find(opened.store)
    assert found.judgments == 6
    assert found.preference.agreement.value == pytest.approx(5 / 6)
    assert [each.changed for each in found.people] == [1, 0]


def test_whoever_deleted_is_counted_and_nothing_else(tmp_path):
    opened = study(tmp_path, names=("ann", "bob"))
    fill(opened.store, 1, prefer_green)
    fill(opened.store, 2, prefer_green)
    with opened.store.writing() as connection:
        forget(connection, 1)
    found = find(opened.store)
    assert (found.annotators, found.judgments) == (1, 6)
    text = render(tables(found), "table")
    assert "1 more deleted their data" in text
    assert "ann " not in text


def test_halves_of_a_couple_are_one_cluster(tmp_path):
    suite = mirrored(couples=1, questions=6)
    opened = study(tmp_path, suite, pairs=None)
    fill(opened.store, 1, lambda shown, _: AnnotatorAnswer(preference="first", first=scores(), second=scores()))
    found = find(opened.store)
    assert (found.judgments, found.pairs, found.texts) == (12, 12, 6)
    assert "12 pairs of 6 different texts" in render(tables(found), "table")


def test_in_mode_self_there_is_no_label_to_meet(tmp_path):
    opened = study(tmp_path, mode="self", names=("ann", "bob", "cy"))
    fill(opened.store, 1, lambda shown, green: AnnotatorAnswer(preference="first" if green else "second"))
    fill(opened.store, 2, lambda shown, green: AnnotatorAnswer(preference="second" if green else "first"))
    fill(opened.store, 3, lambda shown, green: AnnotatorAnswer(preference="unsure"))
    found = find(opened.store)
    assert (found.claim, found.quality, found.preference.agreement) == (None, {}, None)
    assert (found.preference.disputed, found.preference.mirrored) == (6, 12)
    assert found.preference.decided.value == pytest.approx(2 / 3)
    text = render(tables(found), "table")
    assert "6 pairs are disputed; 12 judgments have an opposite to mirror; too few" in text
    assert "label" not in text.replace("labels", "")


def test_the_same_seed_gives_the_same_report(tmp_path):
    store = planted(tmp_path, count=40)
    assert find(store).to_json() == find(store).to_json()
    assert find(store, margin=0.01).claim.quality["relevance"] == "not shown"


@pytest.mark.parametrize(
    ("difference", "p", "state"),
    [
        ((-0.1, 0.1), 0.01, "equal"),
        ((0.1, 0.2), 0.01, "equal"),
        ((0.1, 0.9), 0.4, "different"),
        ((-0.9, -0.1), 0.4, "different"),
        ((-0.6, 0.7), 0.3, "not shown"),
        ((None, None), None, "not shown"),
    ],
)
def test_words_for_quality(difference, p, state):
    found = Estimate(0.0, *difference, 60)
    assert judge_quality(found, Equivalence(0.5, p, found)) == state


@pytest.mark.parametrize(
    ("bounds", "state"),
    [
        ((0.51, 0.9), "follows the label"),
        ((0.5, 0.9), "not shown"),
        ((0.1, 0.49), "goes against the label"),
        ((None, None), "not shown"),
    ],
)
def test_words_for_preference(bounds, state):
    assert judge_preference(Estimate(0.5, *bounds, 60)) == state


def test_big_words_need_everything():
    whole = {"factuality": "equal", "relevance": "equal", "helpfulness": "equal"}
    assert judge(2, 20, whole, "follows the label", 0.5).holds == "holds"
    assert judge(2, 19, whole, "follows the label", 0.5).holds == "too few annotations"
    assert judge(2, 20, {**whole, "relevance": "not shown"}, "follows the label", 0.5).holds == "not shown"
    assert judge(2, 20, {**whole, "relevance": "different"}, "follows the label", 0.5).holds == "does not hold"
    assert judge(2, 20, whole, "not shown", 0.5).holds == "not shown"
