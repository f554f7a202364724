"""The rival benchmark: adherent against missing answers from the same questions, not mirrored."""

import pytest
from rival import adherent_and_missing, answer_stances, rival_pairs

from prbench.data import Suite, load_pairs, write_pairs
from prbench.graders import rubric_tags
from prbench.types import read_stances


@pytest.fixture(scope="module")
def mirror():
    return list(load_pairs("mirror", split="test"))


@pytest.fixture(scope="module")
def made(mirror):
    return rival_pairs(mirror)


def test_chosen_meets_all_of_the_users_aspects_and_rejected_none(mirror, made):
    stances, tags = answer_stances(mirror), rubric_tags(mirror)
    wanted = {(pair.user, pair.question): read_stances(tags[pair.id]) for pair in mirror}
    for pair in made:
        for axis, pole in wanted[pair.user, pair.question].items():
            assert stances[pair.question][pair.chosen][axis] == pole
            assert stances[pair.question][pair.rejected][axis] != pole


def test_each_couple_has_one_pair_for_each_question_and_the_suite_is_not_mirrored(mirror, made):
    asked = {(pair.tags["couple"], pair.question) for pair in mirror}
    assert {(pair.tags["couple"], pair.question) for pair in made} == asked
    assert len(made) == len(asked)
    assert not Suite.of(made).is_mirrored
    halves = {pair.user[-1] for pair in made}
    assert halves == {"a", "b"}


def test_what_the_user_does_not_care_about_differs_too():
    answers = {
        "bold joke": {"risk": "bold", "humour": "joke"},
        "bold plain": {"risk": "bold", "humour": "plain"},
        "safe joke": {"risk": "safe", "humour": "joke"},
        "safe plain": {"risk": "safe", "humour": "plain"},
    }
    for salt in "abcdef":
        chosen, rejected = adherent_and_missing(answers, {"humour": "joke"}, salt)
        assert {chosen, rejected} in ({"bold joke", "safe plain"}, {"safe joke", "bold plain"})
        assert chosen.endswith("joke")
    assert adherent_and_missing({"bold joke": {"humour": "joke"}}, {"humour": "joke"}, "a") is None


def test_it_can_be_written_read_and_made_again(mirror, made, tmp_path):
    read = load_pairs(str(write_pairs(made, tmp_path / "rival.jsonl")))
    assert len(read) == len(made)
    assert rival_pairs(mirror) == made
    assert rival_pairs(mirror, seed=1) != made
