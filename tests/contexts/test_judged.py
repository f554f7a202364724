"""Labelled pairs as a user's history."""

import pytest

import prbench
from pair_factory import make_pair
from prbench.config import RunConfig
from prbench.contexts import judged_pairs, questions_aside
from prbench.data import Suite
from prbench.errors import ConfigError, ContextError
from prbench.models.protocols import ModelCard
from prbench.run import Session
from prbench.types import AnswerView, Channel, Context, Message, Outcome, Prompt


def pair(user, number, split="test"):
    liked, other = ("green", "black") if user in "ac" else ("black", "green")
    return make_pair(
        id=f"{user}{number}",
        user=user,
        question=f"Which tea, number {number}?",
        chosen=f"The {liked} one, {number}.",
        rejected=f"The {other} one, {number}.",
        tags={"split": split},
    )


def likes(question, answer, posts):
    """Counts what the judged pairs preferred."""
    preferred = [line for post in posts for line in getattr(post, "text", post).splitlines() if "I preferred" in line]
    return sum(("green" in line) == ("green" in answer) for line in preferred)


def test_pairs_of_other_splits_are_shown_and_none_that_is_scored():
    everything = Suite.of([pair(user, n, "train" if n < 5 else "test") for user in "ab" for n in range(8)])
    scored = Suite.of([one for one in everything if one.tags["split"] == "test"])
    assert questions_aside(everything, scored, 3, 0) == set()
    found = judged_pairs(everything, scored, 3, 0)
    assert {user: len(some) for user, some in found.items()} == {"a": 3, "b": 3}
    asked = {one.question for one in scored}
    assert not any(one.question in asked for some in found.values() for one in some)
    result = prbench.evaluate(likes, everything, contexts=["none", "pairs@3"])
    assert result.contexts["none"].accuracy.value == 0.5
    assert result.contexts["pairs@3"].accuracy.value == 1.0
    assert {record.posts for record in result.records if record.context == "pairs@3"} == {3}
    assert {record.shown_user for record in result.records if record.context == "pairs@3"} == {"a", "b"}


def test_only_pairs_that_are_shown_become_objects(monkeypatch):
    everything = Suite.of([pair(user, n, "train" if n < 50 else "test") for user in "ab" for n in range(60)])
    scored = Suite.of([one for one in everything if one.tags["split"] == "test"])
    made = []
    plain = Suite.__getitem__
    monkeypatch.setattr(Suite, "__getitem__", lambda suite, place: made.append(place) or plain(suite, place))
    monkeypatch.setattr(Suite, "__iter__", lambda suite: pytest.fail("goes through all pairs"))
    assert questions_aside(everything, scored, 3, 0) == set()
    judged_pairs(everything, scored, 3, 0)
    assert len(made) == 6


def test_without_other_pairs_whole_questions_are_set_aside_under_every_context():
    everything = [pair(user, n) for user in "ab" for n in range(10)]
    result = prbench.evaluate(likes, everything, contexts=["none", "pairs@2"])
    assert result.contexts["pairs@2"].accuracy.value == 1.0
    assert result.contexts["none"].pairs == result.contexts["pairs@2"].pairs == 16
    assert "2 questions set aside as labelled pairs" in " ".join(result.suite.notes)


class Learner:
    """Adapts: likes what the user's judged pairs have in common."""

    card = ModelCard(address="py:learner", reads=frozenset({Channel.POSTS}))

    def __init__(self):
        self.learned = {}
        self.shown = set()

    def fit_user(self, user, judgments):
        self.learned[user] = tuple(judgments)

    def render(self, view: AnswerView) -> Prompt:
        return Prompt((Message("answer", view.answer),))  # says nothing of what it was fitted to

    def rate(self, views):
        for place, view in enumerate(views):
            self.shown |= set(view.posts)
            shots = self.learned.get(view.user, ())
            yield place, Outcome.scored(sum(("green" in shot.chosen) == ("green" in view.answer) for shot in shots))


def test_a_model_that_adapts_is_fitted_and_shown_nothing():
    everything = [pair(user, n, "train" if n < 5 else "test") for user in "ab" for n in range(8)]
    model = Learner()
    result = prbench.evaluate(model, everything, contexts=["none", "pairs@1", "pairs@3"])
    assert not model.shown
    assert sorted(map(len, model.learned.values())) == [1, 1, 3, 3]
    assert result.contexts["pairs@3"].accuracy.value == 1.0  # two users with opposite taste and equal prompts
    assert result.contexts["none"].accuracy.value == 0.5
    assert {record.shown_user for record in result.records if record.context == "pairs@3"} == {"a", "b"}


def test_a_user_without_pairs_and_a_number_that_is_missing():
    with pytest.raises(ContextError, match="needs a number of labelled pairs"):
        Context.parse("pairs")
    config = RunConfig.of(suite="s", model="py:x:y", contexts="pairs@2", split=None)
    from prbench.models.python import wrap

    with pytest.raises(ConfigError, match="has nothing to show under pairs@2"):
        Session(config, model=wrap(likes), suite=Suite.of([pair("a", 1)]))
