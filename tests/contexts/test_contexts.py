import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pair_factory import make_pair
from prbench.contexts import ContextBuilder, Unfit, derangement, mirror_twins, render_all, user_stances
from prbench.errors import ContextError
from prbench.models import load_generator, load_model
from prbench.models.python import wrap
from prbench.plan import Planner
from prbench.types import Aspect, Context, Pair, Post
from small_suite import Spy, SpyComparer, mirrored

ALL = ("none", "profile", "retrieved@2", "other", "opposite", "plan", "profile+plan", "oracle")


def show(builder, pair, context):
    return builder.show(pair, Context.parse(context))


@given(st.sets(st.text(min_size=1, max_size=5), min_size=2, max_size=30), st.integers(0, 5))
def test_derangement_moves_everybody_and_is_a_permutation(users, seed):
    moved = derangement(users, seed)
    assert set(moved) == set(moved.values()) == users
    assert all(user != other for user, other in moved.items())
    assert moved == derangement(sorted(users, reverse=True), seed)


def test_derangement_refuses_one_user():
    with pytest.raises(ContextError, match="at least two users"):
        derangement(["ann"], 0)


def test_what_each_context_shows():
    pairs = mirrored()
    builder = ContextBuilder(pairs, Spy(), plans={pair.id: ("be red",) for pair in pairs})
    pair = pairs[0]
    views = {context: show(builder, pair, context).view for context in ALL}
    assert views["none"].posts == ()
    assert views["none"].user is None
    assert views["none"].plan == ()
    assert views["profile"].posts == pair.profile
    assert len(views["retrieved@2"].posts) == 2
    assert set(views["retrieved@2"].posts) < set(pair.profile)
    assert views["other"].user != pair.user
    assert views["other"].posts[0].id.startswith(views["other"].user)
    assert views["opposite"].user == "u0b"
    assert views["opposite"].posts == pairs[6].profile
    assert views["plan"].plan == ("be red",)
    assert views["plan"].posts == ()
    assert views["profile+plan"].plan == ("be red",)
    assert views["profile+plan"].posts == pair.profile
    assert views["oracle"].plan == ("ASPECT blue tea (REASON u0a)",)
    assert views["oracle"].posts == ()
    assert all(view.first == pair.chosen and view.question == pair.question for view in views.values())


words = st.text(alphabet="abcdefghijklmnop qrstuvwxyz", min_size=4, max_size=30)


def every_prompting_model(tiny_reward_model):
    """One of each kind that renders: transformers, both chat judges, plain functions, and both spies."""
    return [
        Spy(),
        SpyComparer(),
        load_model(f"hf:{tiny_reward_model}"),
        load_model("chat:judge@http://127.0.0.1:9/v1#compare"),
        load_model("chat:judge@http://127.0.0.1:9/v1#rate"),
        wrap(lambda view: 0.0),
        load_model("longer"),
    ]


@pytest.mark.parametrize("context", ALL)
@given(narrative=words, aspect=words, reason=words, evidence=words)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_nothing_of_the_hidden_standard_reaches_a_model_but_under_oracle(
    tiny_reward_model, context, narrative, aspect, reason, evidence
):
    marks = [f"§{number}{text}§" for number, text in enumerate((narrative, aspect, reason, evidence))]
    hidden = Aspect(aspect=marks[1], reason=marks[2], evidence=marks[3])
    pairs = [
        pair.model_copy(update={"narrative": marks[0], "rubric_aspects": (hidden,)})
        for pair in mirrored(couples=2, questions=2)
    ]
    for model in every_prompting_model(tiny_reward_model):
        if not Context.parse(context).needs <= model.card.reads:
            continue
        builder = ContextBuilder(pairs, model, plans={pair.id: ("a plan",) for pair in pairs})
        seen = "".join(
            message.content
            for pair in pairs
            for prompt in render_all(model, show(builder, pair, context).view)
            for message in prompt.messages
        )
        leaked = [mark for mark in marks if mark in seen]
        assert leaked == (marks[1:3] if context == "oracle" else []), model.card.address


def test_the_planner_sees_nothing_of_the_hidden_standard_nor_the_answers():
    pair = mirrored()[0]
    generator = load_generator("chat:planner@http://127.0.0.1:9/v1")
    text = "".join(message.content for message in Planner(generator).prompt(pair).messages)
    assert pair.profile[0].text in text
    assert pair.question in text
    for hidden in ("SECRET", "ASPECT", "REASON", pair.chosen, pair.rejected):
        assert hidden not in text


def test_retrieved_posts_keep_their_own_ids():
    pairs = mirrored()
    builder = ContextBuilder(pairs, Spy())
    for pair in pairs:
        known = {post.id: post.text for post in pair.profile}
        for post in show(builder, pair, "retrieved@1").view.posts:
            assert known[post.id] == post.text


def test_other_does_not_depend_on_what_is_left_out():
    pairs = mirrored(couples=4)
    builder = ContextBuilder(pairs, Spy(), seed=3)
    again = ContextBuilder(list(reversed(pairs)), Spy(), seed=3)
    assert [show(builder, pair, "other").view.user for pair in pairs] == [
        show(again, pair, "other").view.user for pair in pairs
    ]


def test_opposite_needs_a_mirrored_suite():
    pairs = [pair.model_copy(update={"tags": {}}) for pair in mirrored()]
    with pytest.raises(ContextError, match="has no other half"):
        show(ContextBuilder(pairs, Spy()), pairs[0], "opposite")


def test_an_empty_profile_and_a_missing_rubric_cannot_be_shown():
    bare = make_pair()
    builder = ContextBuilder([bare], Spy())
    assert "no posts" in show(builder, bare, "profile").reason
    assert "no rubric" in show(builder, bare, "oracle").reason
    assert show(builder, bare, "plan").status == "failed"


def long_pair(count: int, words: int) -> Pair:
    profile = tuple(Post(id=f"p{i}", text=" ".join([f"word{i}"] * words)) for i in range(count))
    return make_pair(question="what about word3", profile=profile, chosen="yes it is", rejected="no")


def test_whole_posts_are_dropped_and_the_answer_never_cut():
    pair = long_pair(count=6, words=50)
    model = Spy(window=120)
    shown = show(ContextBuilder([pair], model), pair, "profile")
    assert [post.id for post in shown.view.posts] == ["p0", "p3"]  # the one that bears on the question, then the first
    assert shown.dropped == ("p1", "p2", "p4", "p5")
    assert all(post in pair.profile for post in shown.view.posts)
    prompts = render_all(model, shown.view)
    assert max(map(model.length, prompts)) <= 120
    assert [prompt.messages[-1].content for prompt in prompts] == [pair.chosen, pair.rejected]


def test_no_post_fits_is_said_and_not_hidden():
    pair = long_pair(count=3, words=500)
    shown = show(ContextBuilder([pair], Spy(window=100)), pair, "profile")
    assert isinstance(shown, Unfit)
    assert "not even one of 3 posts fits the window of 100 tokens" in shown.reason


def test_a_question_that_does_not_fit_is_said():
    pair = long_pair(count=1, words=1)
    shown = show(ContextBuilder([pair], Spy(window=4)), pair, "none")
    assert isinstance(shown, Unfit)
    assert "question and answer alone" in shown.reason


@given(st.integers(1, 12), st.integers(1, 60), st.integers(30, 400))
def test_what_fits_is_shown_in_the_original_order_and_within_the_window(count, words, window):
    pair = long_pair(count, words)
    model = Spy(window=window)
    shown = show(ContextBuilder([pair], model), pair, "profile")
    if isinstance(shown, Unfit):
        assert words + 6 > window
        return
    assert max(map(model.length, render_all(model, shown.view))) <= window
    order = [pair.profile.index(post) for post in shown.view.posts]
    assert order == sorted(order)
    assert order
    assert {post.id for post in shown.view.posts} | set(shown.dropped) == {post.id for post in pair.profile}


def test_twins_and_stances():
    pairs = mirrored(couples=1, questions=1)
    assert mirror_twins(pairs)[pairs[0].id] == pairs[1]
    assert user_stances(pairs) == {"u0a": {"colour": "blue"}, "u0b": {"colour": "red"}}


@pytest.mark.parametrize("text", ["profil", "retrieved", "retrieved@0", "retrieved@x", ""])
def test_unknown_contexts_are_refused(text):
    with pytest.raises(ContextError):
        Context.parse(text)


def test_the_posts_that_bear_on_the_question_are_kept_and_retrieved():
    pair = long_pair(count=6, words=50)  # it asks about word3
    assert [post.id for post in show(ContextBuilder([pair], Spy(window=70)), pair, "profile").view.posts] == ["p3"]
    assert [post.id for post in show(ContextBuilder([pair], Spy()), pair, "retrieved@1").view.posts] == ["p3"]


def test_candidates_are_shown_as_the_pairs_own_answers_are():
    pairs = mirrored()
    builder = ContextBuilder(pairs, Spy())
    for context in ("none", "profile", "other", "retrieved@2", "oracle"):
        view = show(builder, pairs[0], context).view
        shown = builder.show_answers(pairs[0], Context.parse(context), [pairs[0].chosen, pairs[0].rejected])
        assert shown.views == view.answers()


def test_all_candidates_are_read_with_the_posts_that_fit_the_longest():
    pair = long_pair(count=6, words=50)
    model = Spy(window=120)
    long = "word " * 40
    both = ContextBuilder([pair], model).show_answers(pair, Context.parse("profile"), ["short", long])
    alone = ContextBuilder([pair], model).show_answers(pair, Context.parse("profile"), ["short"])
    assert both.views[0].posts == both.views[1].posts
    assert model.length(model.render(both.views[1])) <= 120
    assert len(alone.views[0].posts) > len(both.views[0].posts)
