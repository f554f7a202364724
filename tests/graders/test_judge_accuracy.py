"""A judge's own accuracy: right, wrong, tied and missing grades, and what may be ranked with it."""

import pytest

import small_suite
from prbench.errors import StudyError
from prbench.graders import Grade, examine, judge_accuracy, require_able, rubric_tags
from prbench.models import ModelCard
from prbench.stats import Estimate

PAIRS = small_suite.mirrored(couples=3, questions=6)


class Rule:
    """A judge that follows a function and keeps what it was asked."""

    card = ModelCard(address="rule")

    def __init__(self, rule):
        self.rule = rule
        self.asked = []

    def refuses(self, grading):
        return None

    def forecast(self, gradings):
        return 0

    def grade(self, gradings):
        self.asked += gradings
        for place in reversed(range(len(gradings))):
            yield place, self.rule(gradings[place])


def by_rubric(grading):
    """Reads the rubric: the colour that it names must be in the answer."""
    return Grade.given([2.0 if grading.aspects[0].aspect.split()[1] in grading.answer else 0.0])


def test_a_judge_who_follows_the_rubric_is_always_right():
    accuracy = judge_accuracy(Rule(by_rubric), PAIRS)
    assert accuracy.to_json() == {"value": 1.0, "low": 1.0, "high": 1.0, "n": len(PAIRS)}


def test_a_judge_who_contradicts_the_rubric_is_always_wrong():
    assert judge_accuracy(Rule(lambda g: Grade.given([2 - by_rubric(g).score])), PAIRS).value == 0.0


@pytest.mark.parametrize(
    "rule", [lambda g: Grade.given([1]), lambda g: Grade.given([2 * (len(g.answer) % 7) / 7])], ids=["ties", "length"]
)
def test_a_judge_who_does_not_look_at_the_rubric_is_at_exactly_one_half(rule):
    accuracy = judge_accuracy(Rule(rule), PAIRS)
    assert accuracy.value == 0.5
    with pytest.raises(StudyError, match=r"rule is at chance: accuracy 0\.500"):
        require_able(accuracy, judge="rule")


def test_a_missing_grade_is_counted_and_enters_no_mean():
    def rule(grading):
        return Grade.invalid("no list") if "tea" in grading.question else by_rubric(grading)

    found = examine(Rule(rule), PAIRS)
    lost = sum("tea" in pair.question for pair in PAIRS)
    assert found.missing == {"no list": lost}
    assert (found.accuracy.value, found.accuracy.n) == (1.0, len(PAIRS) - lost)


def test_without_a_single_grade_nothing_is_known_and_nothing_is_ranked():
    found = examine(Rule(lambda g: Grade.failed("gone")), PAIRS)
    assert found.accuracy == Estimate.undefined()
    with pytest.raises(StudyError, match="accuracy unknown with lower bound unknown"):
        require_able(found.accuracy)


def test_equal_gradings_are_asked_once():
    judge = Rule(by_rubric)
    doubled = [pair.model_copy(update={"id": f"{pair.id}{copy}"}) for pair in PAIRS for copy in "ab"]
    assert examine(judge, doubled).gradings == len(judge.asked) == 2 * len(PAIRS)


def test_a_sample_is_graded_under_the_rubrics_it_is_given():
    judge = Rule(by_rubric)
    whole = [*PAIRS, PAIRS[0].model_copy(update={"id": "left out", "tags": {"axis": "size", "pole": "big"}})]
    examine(judge, PAIRS[:1], tags=rubric_tags(whole))
    assert [grading.tags["axis"] for grading in judge.asked] == ["colour+size"] * 2


@pytest.mark.parametrize(("low", "chance", "able"), [(0.51, 0.5, True), (0.5, 0.5, False), (0.6, 0.75, False)])
def test_only_a_judge_whose_lower_bound_lies_above_guessing_may_rank(low, chance, able):
    accuracy = Estimate(0.8, low, 0.9, 100)
    if able:
        require_able(accuracy, chance)
    else:
        with pytest.raises(StudyError, match="at chance"):
            require_able(accuracy, chance)


def test_the_same_seed_gives_the_same_interval():
    def noisy(grading):
        return Grade.given([2.0 if len(grading.answer) % 2 else by_rubric(grading).score / 2])

    pairs = small_suite.mirrored(couples=12, questions=8)
    first, second = (judge_accuracy(Rule(noisy), pairs, seed=4) for _ in range(2))
    assert first == second
