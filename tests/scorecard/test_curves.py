"""Curves of learners whose accuracy at every point is known."""

import json

import pytest

import planted_models
from prbench.models import load_model
from prbench.results import verify
from prbench.scorecard import CurveSheet, ScorecardConfig, curve_tables, make_curves
from prbench.scorecard.adapted import Point, adapted
from prbench.scorecard.curves import points_of
from prbench.show import render
from prbench.types import AnswerView, Judgment, PairView, Post
from small_suite import SpyComparer


def curves_of(values, out, *names, **settings):
    models = [{"address": f"py:planted_models:{name}"} for name in names]
    return make_curves(ScorecardConfig.of(**{**values, "models": models, **settings}), out)


@pytest.fixture(scope="module")
def sheet(suites, tmp_path_factory):
    values = {"suite": str(suites / "pairs.jsonl"), "resamples": 100}
    names = ("Learner", "LabelBlind", "follows", "sound_only")
    return curves_of(values, tmp_path_factory.mktemp("curves") / "out", *names)


def accuracies(points):
    return [point.accuracy.value for point in points]


def test_a_learner_is_right_from_the_fourth_judged_pair_on(sheet):
    learner = sheet.curves[0]
    assert [point.shots for point in learner.shots_without_posts] == [0, 1, 2, 4, 8, 16]
    assert accuracies(learner.shots_without_posts) == [0.5, 0.5, 0.5, 1.0, 1.0, 1.0]
    assert accuracies(learner.shots_with_posts) == [1.0] * 6
    assert [point.given for point in learner.shots_with_posts] == [0, 1, 2, 4, 6, 6]


def test_all_points_are_of_the_same_pairs_and_compared_with_the_first(sheet):
    learner = sheet.curves[0]
    assert {point.accuracy.n for point in learner.shots_without_posts} == {sheet.evaluated.counts.pairs} == {96}
    assert [point.change and point.change.value for point in learner.shots_without_posts] == [None, 0, 0, 0.5, 0.5, 0.5]
    assert learner.shots_without_posts[3].change.low > 0


def test_the_cold_start_of_whoever_knows_nothing_is_one_half(sheet):
    assert {curves.cold_start.accuracy.value for curves in sheet.curves[:2]} == {0.5}


def test_judged_pairs_without_their_labels_are_worth_nothing(sheet):
    assert accuracies(sheet.curves[1].shots_without_posts) == [0.5] * 6


def test_one_post_is_enough_for_who_follows_posts(sheet):
    learner = sheet.curves[0]
    assert [point.posts for point in learner.posts] == [0, 1, 2, 4, 8, None]
    assert accuracies(learner.posts) == [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_a_model_that_cannot_be_opened_says_so_and_a_blind_one_has_no_curve(sheet):
    assert [curves.name for curves in sheet.curves] == [
        f"py:planted_models:{name}" for name in ("Learner", "LabelBlind", "follows")
    ]
    assert "has no 'follows'" in sheet.curves[2].failed
    tables = curve_tables(sheet)
    assert [table.title.split(" ")[0] for table in tables] == ["Few", "Posts", "Curves"]
    assert "has no 'follows'" in render(tables, "md")
    assert CurveSheet.model_validate(json.loads(sheet.model_dump_json())) == sheet


def test_points_are_runs_that_verify(sheet):
    for point in sheet.curves[0].shots_without_posts[2:4]:
        assert not verify(point.run).mismatches


def test_finished_curves_ask_nothing(values, tmp_path):
    first = curves_of(values, tmp_path, "Learner", limit=96)
    assert planted_models.CALLS
    planted_models.CALLS.clear()
    assert curves_of(values, tmp_path, "Learner", limit=96) == first
    assert not planted_models.CALLS


def test_another_seed_is_another_run(values, tmp_path):
    curves_of(values, tmp_path, "Learner", limit=96)
    planted_models.CALLS.clear()
    curves_of(values, tmp_path, "Learner", limit=96, seed=1)
    assert planted_models.CALLS


SHOT = Judgment(question="Tea?", chosen="red", rejected="blue")


def test_users_are_forgotten_also_after_a_failure():
    learner = planted_models.Learner()

    def fail():
        with adapted(learner, {"ann": [SHOT]}, Point(1, 0), seed=0):
            raise ZeroDivisionError(learner.judged["ann"])

    with pytest.raises(ZeroDivisionError) as error:
        fail()
    assert error.value.args == ((SHOT,),)
    assert learner.judged["ann"] == ()


def test_the_card_says_what_was_known_so_that_no_answer_is_taken_for_another():
    learner = planted_models.Learner()
    cards = []
    for shots in ((), (SHOT,), (SHOT, SHOT)):
        with adapted(learner, {"ann": shots}, Point(len(shots), None), seed=0) as model:
            cards.append(json.dumps(model.card.parameters, sort_keys=True))
    assert len(set(cards)) == 3


def test_a_window_does_not_count_what_keeps_users_apart():
    spy = planted_models.Learner()
    spy.window = 100
    spy.length = lambda prompt: len(prompt.messages)
    view = AnswerView("Tea?", "red", user="ann")
    with adapted(spy, {"ann": [SHOT]}, Point(1, 0), seed=0) as model:
        assert (len(model.render(view).messages), model.length(model.render(view)), model.window) == (3, 2, 100)


def test_a_judge_is_shown_some_posts_too():
    judge = SpyComparer()
    posts = tuple(Post(id=f"{n}", text="red") for n in range(5))
    view = PairView("Tea?", "red", "blue", posts, user="ann")
    with adapted(judge, {}, Point(0, 2), seed=0) as model:
        list(model.compare([view]))
        assert len(model.render(view).messages) == 2 + 3
    assert len(judge.views[0].posts) == 2


def test_curves_that_a_model_can_have():
    assert points_of(load_model("random")) == {}
    assert set(points_of(planted_models.Learner())) == {"shots_with_posts", "shots_without_posts", "posts"}
    assert set(points_of(planted_models.Counting())) == {"posts"}
