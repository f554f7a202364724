"""`diluted@K` and `recent@K`: what is shown, and that neither gives away what decides a pair."""

from collections import defaultdict

import pytest

from prbench.contexts import ContextBuilder
from prbench.contexts.dilute import silent_posts
from prbench.data import load_pairs
from prbench.errors import ContextError
from prbench.models import load_model
from prbench.types import Context
from small_suite import mirrored


@pytest.fixture(scope="module")
def pairs():
    return load_pairs("mirror", split="test")


@pytest.fixture(scope="module")
def builder(pairs):
    return ContextBuilder(pairs, load_model("longer"), seed=3)


def posts(builder, pair, context):
    return builder.show(pair, Context.parse(context)).view.posts


def test_the_same_posts_are_added_for_both_halves_and_all_their_pairs(pairs, builder):
    added, places = defaultdict(set), defaultdict(set)
    for pair in pairs[::3]:  # both halves of every couple, and many of their questions
        shown = posts(builder, pair, "diluted@8")
        own = {post.id for post in pair.profile}
        assert [post for post in shown if post.id in own] == list(pair.profile)
        couple = pair.tags["couple"]
        added[couple].add(tuple(post.id for post in shown if post.id not in own))
        places[couple, len(shown)].add(tuple(post.id in own for post in shown))
    assert {len(found) for found in added.values()} == {1}
    assert {len(ids) for found in added.values() for ids in found} == {8}
    assert {len(found) for found in places.values()} == {1}
    assert len({found.pop() for found in added.values()}) == 40, "another choice for every couple"


def test_what_is_added_shows_nothing_and_is_by_others_of_the_split(pairs, builder):
    silent = {post.id: unit for unit, post in silent_posts(pairs)["test"]}
    evidence = {post for pair in pairs for a in pair.rubric_aspects for post in a.evidence.split(", ")}
    assert not evidence & silent.keys()
    for pair in pairs[::97]:
        own = {post.id for post in pair.profile}
        for post in posts(builder, pair, "diluted@8"):
            assert post.id in own or silent[post.id] != pair.tags["couple"]


def test_fewer_are_among_more_and_the_seed_decides(pairs, builder):
    pair = pairs[0]
    few, many = posts(builder, pair, "diluted@4"), posts(builder, pair, "diluted@12")
    assert [post for post in many if post in few] == list(few)
    other = ContextBuilder(pairs, load_model("longer"), seed=4)
    assert set(posts(other, pair, "diluted@4")) != set(few)


def test_too_few_silent_posts_are_said(pairs, builder):
    with pytest.raises(ContextError, match="needs 5000 posts of other users that show nothing, and split 'test' has"):
        posts(builder, pairs[0], "diluted@5000")
    small = [pair.model_copy(update={"rubric_aspects": ()}) for pair in mirrored()]
    with pytest.raises(ContextError, match="diluted@1"):
        posts(ContextBuilder(small, load_model("longer")), small[0], "diluted@1")
    with pytest.raises(ContextError, match="needs a number of posts"):
        Context.parse("diluted")
    with pytest.raises(ContextError, match="needs a number of posts"):
        Context.parse("recent@0")


def test_recent_shows_the_last_posts(pairs, builder):
    for pair in pairs[::97]:
        assert posts(builder, pair, "recent@3") == pair.profile[-3:]
        assert posts(builder, pair, "recent@500") == pair.profile
