"""Runs against each other: two, several in order, one model in time."""

import pytest

from prbench import evaluate
from prbench.errors import RunError
from prbench.results import history, load_run, standings, versus
from small_suite import follows_posts, mirrored


@pytest.fixture
def run(tmp_path):
    evaluate(
        follows_posts, mirrored(), contexts=["none", "profile", "other", "oracle"], out=tmp_path / "run", by=["axis"]
    )
    return tmp_path / "run"


def weaker(question, answer, posts):
    return follows_posts(question, answer, posts) if "tea" in question else -follows_posts(question, answer, posts)


def test_compare_two_runs(run, tmp_path):
    evaluate(lambda question, answer, posts: len(answer), mirrored(), contexts=["profile"], out=tmp_path / "blind")
    found = versus(load_run(run), load_run(tmp_path / "blind"))
    assert found.context == "profile"
    assert (found.accuracy_one, found.accuracy_two) == (1.0, 0.5)
    assert found.comparison.difference.value == 0.5
    assert len(found.won) == 18
    assert found.lost == ()
    assert found.comparison.mcnemar_p == pytest.approx(2 * 0.5**18)
    back = versus(load_run(tmp_path / "blind"), load_run(run))
    assert back.comparison.difference.value == -0.5


def test_compare_needs_something_in_common(run, tmp_path):
    evaluate(follows_posts, [p.model_copy(update={"id": f"x{p.id}"}) for p in mirrored()], out=tmp_path / "other")
    with pytest.raises(RunError, match="no pair in common"):
        versus(load_run(run), load_run(tmp_path / "other"))
    with pytest.raises(RunError, match="has no context 'plan'"):
        versus(load_run(run), load_run(run), "plan")


def test_standings_put_equal_models_into_one_group(run, tmp_path):
    evaluate(follows_posts, mirrored(), contexts=["profile"], out=tmp_path / "same")
    evaluate(lambda question, answer, posts: 0.0, mirrored(), contexts=["profile"], out=tmp_path / "ties")
    places = {
        place.name: place
        for place in standings([load_run(run), load_run(tmp_path / "same"), load_run(tmp_path / "ties")], "profile")
    }
    assert len(places) == 3
    assert places[str(run)].letters == places[str(tmp_path / "same")].letters


def test_runs_in_folders_of_the_same_name_are_told_apart(tmp_path):
    for name in ("a", "b", "c"):
        evaluate(follows_posts, mirrored(), contexts=["profile"], out=tmp_path / name / "run")
    assert len(standings([load_run(tmp_path / name / "run") for name in "abc"], "profile")) == 3


def test_pairs_are_matched_by_content_and_not_by_id_alone(run, tmp_path):
    changed = [pair.model_copy(update={"question": pair.question + " And why?"}) for pair in mirrored()]
    evaluate(follows_posts, changed, contexts=["profile"], out=tmp_path / "changed")
    with pytest.raises(RunError, match="no pair in common"):
        versus(load_run(run), load_run(tmp_path / "changed"))


def test_runs_that_share_ids_but_not_pairs_are_not_ranked_together(run, tmp_path):
    changed = [pair.model_copy(update={"question": pair.question + " And why?"}) for pair in mirrored()]
    evaluate(follows_posts, changed, contexts=["profile"], out=tmp_path / "changed")
    with pytest.raises(RunError, match="no pair in common"):
        standings([load_run(run), load_run(tmp_path / "changed")], "profile")


def test_runs_that_overlap_in_part_are_compared_on_what_both_judged(tmp_path):
    pairs = mirrored(couples=6, questions=6)
    for name, some, model in (("one", pairs[:48], follows_posts), ("two", pairs[24:], weaker)):
        evaluate(model, some, contexts=["profile"], out=tmp_path / name)
    one, two = (load_run(tmp_path / name) for name in ("one", "two"))
    found = versus(one, two)
    assert (found.only_one, found.only_two) == (24, len(pairs) - 48)
    assert {place.name: place.mean for place in standings([one, two], "profile")}[one.name] == 1.0


def test_the_order_of_a_run_changes_nothing(run, tmp_path):
    evaluate(weaker, mirrored(), contexts=["profile"], out=tmp_path / "forth")
    evaluate(weaker, list(reversed(mirrored())), contexts=["profile"], out=tmp_path / "back")
    forth, back = (versus(load_run(run), load_run(tmp_path / name))._replace(two="") for name in ("forth", "back"))
    assert forth == back


def test_history_flags_a_regression_that_the_paired_test_carries(tmp_path):
    pairs = mirrored(couples=12, questions=12)
    evaluate(follows_posts, pairs, contexts=["profile"], out=tmp_path / "good")
    evaluate(follows_posts, pairs, contexts=["profile"], out=tmp_path / "same")
    evaluate(weaker, pairs, contexts=["profile"], out=tmp_path / "bad")
    moments = history([load_run(tmp_path / name) for name in ("good", "same", "bad")])
    assert [moment.regressed for moment in moments] == [False, False, True]
    assert moments[1].p == 1.0
    assert moments[2].change.comparison.difference.value < 0
