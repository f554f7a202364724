"""Plan quality: known plans, known figures."""

import pytest

from pair_factory import make_pair
from prbench.plan import HeldPlans, Matcher, Plan, hold, limited, needs_of, summarise
from prbench.plan.quality import other_needs
from prbench.stats import Estimate
from prbench.types import Aspect, Post
from small_suite import mirrored
from word_encoder import WordEncoder


def plan_for(need, *lines, status="ok"):
    return Plan(key=need.id, need=need.id, status=status, plan=lines)


def quality(pairs, written, **settings):
    needs = needs_of(pairs)
    plans = {need.id: made for need in needs if (made := written(need)) is not None}
    held = hold(needs, plans, Matcher(WordEncoder(), 0.8), needs)
    return summarise(held, resamples=200, **settings), held


def test_a_plan_that_knows_the_user_is_told_from_one_that_knows_the_question():
    knows, _ = quality(mirrored(), lambda need: plan_for(need, need.aspects[0], "something else entirely"))
    assert knows.own["recall"].value == 1.0
    assert knows.own["precision"].value == 0.5
    assert knows.own["f1"].value == pytest.approx(2 / 3)
    assert knows.own["recall"].n == knows.plans == 36
    assert knows.other["recall"].value == 0.0
    assert knows.personal["recall"].value == 1.0

    def for_everybody(need):
        topic = need.aspects[0].split()[-1]
        return plan_for(need, f"ASPECT red {topic}", f"ASPECT blue {topic}")

    guesses, _ = quality(mirrored(), for_everybody)
    assert guesses.own["recall"].value == guesses.other["recall"].value == 1.0
    assert guesses.personal["recall"] == Estimate(0.0, None, None, 36)  # nothing varies
    assert guesses.own["precision"].value == 0.5


def test_what_could_not_be_read_is_counted_apart_and_is_a_miss_in_the_strict_figure_only():
    def written(need):
        if need.pair.user == "u0a":
            return plan_for(need, status="invalid")
        return None if need.pair.user == "u0b" else plan_for(need, *need.aspects)

    found, held = quality(mirrored(), written)
    assert found.unread == {"failed": 6, "invalid": 6}
    assert found.read == 24
    assert found.own["recall"].value == 1.0
    assert found.own["recall"].n == 24
    assert found.own["recall"].low < 1.0  # two couples do not make it certain
    assert (found.strict["recall"].value, found.strict["recall"].n) == (pytest.approx(2 / 3), 36)
    assert HeldPlans.model_validate_json(held.model_dump_json()) == held


def test_intervals_are_clustered_by_couple():
    found, _ = quality(mirrored(couples=4), lambda need: plan_for(need, *need.aspects if need.unit < "c2" else ("x",)))
    recall = found.own["recall"]
    assert recall.value == 0.5
    assert recall.high - recall.low > 0.5  # four couples, each all right or all wrong; 48 plans would give 0.28


def test_the_other_user_asked_the_same_question_and_wants_something_else():
    pairs = mirrored()
    needs = needs_of(pairs)
    others = other_needs(needs, needs, seed=0)
    assert len(others) == len(needs)
    for need in needs:
        other = others[need.pair.user, need.id]
        assert other.pair.question == need.pair.question
        assert other.pair.user != need.pair.user
        assert not set(other.aspects) & set(need.aspects)
    assert others != other_needs(needs, needs, seed=3)


def test_where_nobody_else_asked_it_the_other_has_another_question_and_the_table_knows():
    pairs = [
        make_pair(
            id=name,
            user=name,
            question=f"{name}?",
            chosen="a",
            rejected="b",
            profile=(Post(id="1", text=name),),
            rubric_aspects=(Aspect(aspect=f"wants {name}"),),
        )
        for name in ("tea", "jam", "ink")
    ]
    found, held = quality(pairs, lambda need: plan_for(need, *need.aspects))
    assert found.other_same_question == 0
    assert found.other["recall"].n == 3
    assert all(row.other not in ("", row.user) for row in held.rows)
    alone, _ = quality(pairs[:1], lambda need: plan_for(need, *need.aspects))
    assert alone.other["recall"] == Estimate.undefined()


def test_a_sample_keeps_what_users_expect_in_pairs_that_it_left_out():
    pair = mirrored()[0]
    more = pair.model_copy(update={"id": "more", "rubric_aspects": (Aspect(aspect="also this"),)})
    (need,) = needs_of([pair], [pair, more])
    assert need.aspects == (pair.rubric_aspects[0].aspect, "also this")


def test_a_limit_takes_both_halves_of_a_couple_and_a_part_of_a_larger_limit():
    needs = needs_of(mirrored(couples=4))
    small, large = limited(needs, 6, seed=1), limited(needs, 20, seed=1)
    assert len(small) == 6
    assert {need.id for need in small} <= {need.id for need in large}
    for need in small:
        assert sum(one.unit == need.unit and one.pair.question == need.pair.question for one in small) == 2
    assert [need.id for need in small] != [need.id for need in limited(needs, 6, seed=2)]
    assert limited(needs, None, seed=0) == needs
