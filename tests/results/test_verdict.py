"""The verdict's rule on constructed runs of every grade, and the same sentence wherever a run is shown."""

from pathlib import Path

import pytest

from prbench import evaluate
from prbench.results import METRICS, RULE, Effects, UserGrade, verdict
from prbench.stats import Estimate
from prbench.stats.bias import PositionBias
from small_suite import follows_posts, mirrored


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    pairs = mirrored(couples=12, questions=8)
    out = tmp_path_factory.mktemp("verdict") / "run"
    return evaluate(follows_posts, pairs, contexts=["none", "profile", "other", "opposite"], resamples=100, out=out)


def made(found, own, gain, specificity, reversal=None, keep=("none", "profile", "other", "opposite")):
    """The same run with other numbers."""
    contexts = {name: context for name, context in found.contexts.items() if name in keep}
    if own is not None:
        accuracy = Estimate(*own, n=100)
        contexts["profile"] = contexts["profile"].model_copy(update={"accuracy": accuracy})
    effects = {
        name: Estimate(*ends, n=100)
        for name, ends in (("gain", gain), ("specificity", specificity), ("reversal", reversal))
        if ends is not None
    }
    update = {"contexts": contexts, "effects": Effects(**effects)}
    return found.model_copy(update=update) if hasattr(found, "model_copy") else found


POSITIVE, NOTHING, WIDE, NEGATIVE = (0.1, 0.05, 0.15), (0.0, -0.02, 0.02), (0.05, -0.1, 0.2), (-0.1, -0.15, -0.05)

CASES = {
    "knows": ((0.8, 0.76, 0.84), POSITIVE, POSITIVE, POSITIVE, UserGrade.KNOWS),
    "knows, unmirrored": ((0.8, 0.75, 0.84), POSITIVE, POSITIVE, None, UserGrade.KNOWS),
    "high but the interval begins too low": ((0.8, 0.74, 0.86), POSITIVE, POSITIVE, POSITIVE, UserGrade.FOLLOWS),
    "follows": ((0.62, 0.58, 0.66), POSITIVE, POSITIVE, POSITIVE, UserGrade.FOLLOWS),
    "does not turn round": ((0.62, 0.58, 0.66), POSITIVE, POSITIVE, NOTHING, UserGrade.SWAYED),
    "any user does": ((0.53, 0.505, 0.561), POSITIVE, NOTHING, POSITIVE, UserGrade.SWAYED),
    "only other users hurt": ((0.5, 0.48, 0.52), NOTHING, POSITIVE, None, UserGrade.SWAYED),
    "worse with the user": ((0.45, 0.4, 0.49), NEGATIVE, NOTHING, None, UserGrade.SWAYED),
    "another user serves better": ((0.5, 0.48, 0.52), NOTHING, NEGATIVE, None, UserGrade.SWAYED),
    "ignores": ((0.5, 0.5, 0.5), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), UserGrade.IGNORES),
    "ignores, nearly": ((0.5, 0.49, 0.51), NOTHING, NOTHING, NOTHING, UserGrade.IGNORES),
    "too few pairs": ((0.55, 0.3, 0.8), WIDE, WIDE, None, UserGrade.OPEN),
    "no interval": ((0.55, None, None), (0.05, None, None), (0.05, None, None), None, UserGrade.OPEN),
    "no other user": ((0.8, 0.76, 0.84), POSITIVE, None, None, UserGrade.UNSHOWN),
}


@pytest.mark.parametrize(("own", "gain", "specificity", "reversal", "grade"), CASES.values(), ids=CASES)
def test_the_grade_follows_from_the_intervals(found, own, gain, specificity, reversal, grade):
    said = verdict(made(found, own, gain, specificity, reversal))
    assert said.grade is grade
    assert said.sentence.startswith(f"{found.model.address} {grade.value}")
    assert said.sentence.endswith(".")
    if own[1] is not None:
        assert (
            f"{100 * own[0]:.1f} % [{100 * own[1]:.1f}, {100 * own[2]:.1f}] with the user's own posts" in said.sentence
        )


@pytest.mark.parametrize(("gain", "little"), [((0.05, 0.02, 0.09), True), ((0.06, 0.02, 0.11), False)])
def test_a_small_gain_is_called_a_little(found, gain, little):
    said = verdict(made(found, (0.55, 0.52, 0.59), gain, POSITIVE, POSITIVE))
    assert ("follows this user a little: 55.0" in said.sentence) is little


def test_a_model_that_turns_round_with_the_opposite_user_is_said_to_where_no_other_was_shown(found):
    said = verdict(made(found, (0.8, 0.76, 0.84), POSITIVE, None, POSITIVE))
    assert said.grade is UserGrade.UNSHOWN
    assert "it turns round with the opposite user, and --context none,profile,other tells the rest" in said.sentence


def test_a_model_that_reads_no_posts_is_not_told_to_show_some():
    def shorter(question, answer):
        return -len(answer)

    said = verdict(evaluate(shorter, mirrored(couples=3, questions=2), contexts=["none", "profile", "other"]))
    assert said.grade is UserGrade.UNSHOWN
    assert said.sentence.endswith("; it reads no posts.")


@pytest.mark.parametrize(
    ("score", "why"),
    [(lambda question, answer, posts: 1.0, "both answers of every pair get the same score")],
)
def test_a_model_that_decides_nothing_is_not_said_to_ignore_the_user(score, why):
    said = verdict(evaluate(score, mirrored(couples=3, questions=2), contexts=["none", "profile", "other"]))
    assert why in said.sentence
    assert "ignores" not in said.sentence


def test_a_judge_that_always_takes_the_first_answer_is_said_to(found):
    sure = Estimate(1.0, 1.0, 1.0, n=8)
    update = {"ties": sure, "position": PositionBias(flip_rate=sure, first_preferred=sure)}
    contexts = {name: context.model_copy(update=update) for name, context in found.contexts.items()}
    assert "decides by the order alone" in verdict(found.model_copy(update={"contexts": contexts})).sentence


def test_a_model_that_answered_nothing_has_no_number(found):
    nothing = {
        name: context.model_copy(update={"accuracy": Estimate.undefined()}) for name, context in found.contexts.items()
    }
    said = verdict(found.model_copy(update={"contexts": nothing}))
    assert said.sentence == f"{found.model.address} was not judged: no pair was answered."


def test_a_model_that_follows_the_posts_is_found_to(found):
    said = verdict(found)
    assert said.grade in (UserGrade.FOLLOWS, UserGrade.KNOWS)
    assert said.sentence.endswith("it is this user that counts, not any user.")


def test_every_grade_stands_in_the_rule_and_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    for grade in UserGrade:
        assert grade.value in RULE
    assert RULE in page
    for name, metric in METRICS.items():
        assert f"| {name} | {metric.definition} |" in page


def test_the_report_opens_with_the_same_sentence(found):
    from html import unescape

    from prbench.report.page import report_page

    assert verdict(found).sentence in unescape(report_page([found.folder], with_texts=False))
