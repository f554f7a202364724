"""Who may know what: divisions, draws and posts."""

from collections import defaultdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pair_factory import make_pair
from prbench.scorecard.protocol import SHOTS, divide, item_of, some_posts
from prbench.types import Post
from small_suite import mirrored


@st.composite
def mirrored_worlds(draw):
    """Users who mirror each other on some questions, not always the same two."""
    pairs = []
    for number in range(draw(st.integers(1, 25))):
        one, two = draw(st.permutations("abcdef"))[:2]
        question = f"Question {draw(st.integers(0, 6))}?"
        tags = {"mirror": f"m{number}"}
        for user, chosen, rejected in ((one, "x", "y"), (two, "y", "x")):
            pairs.append(
                make_pair(
                    id=f"{number}{user}", user=user, question=question, chosen=chosen, rejected=rejected, tags=tags
                )
            )
    return pairs


@given(mirrored_worlds(), st.integers(0, 5))
def test_a_question_is_on_one_side_and_mirrored_pairs_stay_together(pairs, seed):
    division = divide(pairs, seed)
    shown = {(user, item_of(pair)) for user, found in division.shots.items() for pair in found}
    evaluated = {(pair.user, item_of(pair)) for pair in division.evaluated}
    assert not shown & evaluated
    drawn = [pair for found in division.shots.values() for pair in found]
    assert sorted(pair.id for pair in [*drawn, *division.evaluated]) == sorted(pair.id for pair in pairs)
    assert not {pair.tags["mirror"] for pair in drawn} & {pair.tags["mirror"] for pair in division.evaluated}


@given(mirrored_worlds(), st.integers(0, 5))
def test_more_shots_include_fewer_and_nobody_depends_on_the_order_of_rows(pairs, seed):
    division, reordered = divide(pairs, seed), divide(pairs[::-1], seed)
    for few, many in pairwise(SHOTS):
        assert division.judgments(many) == reordered.judgments(many)
        for user, judged in division.judgments(few).items():
            assert division.judgments(many)[user][:few] == judged


def test_couples_give_exactly_half_of_their_questions_and_the_same_pairs_with_opposite_labels():
    division = divide(mirrored(5, 12), seed=3)
    questions = defaultdict(set)
    for pair in division.evaluated:
        questions[pair.user].add(pair.question)
    assert {len(found) for found in questions.values()} == {6}
    judged = division.judgments(4)
    for couple in range(5):
        one, two = judged[f"u{couple}a"], judged[f"u{couple}b"]
        assert [(shot.question, shot.chosen, shot.rejected) for shot in one] == [
            (shot.question, shot.rejected, shot.chosen) for shot in two
        ]


def test_seeds_differ_and_a_user_with_few_pairs_gives_all():
    pairs = mirrored(3, 12)
    assert divide(pairs, 0).evaluated != divide(pairs, 1).evaluated
    assert divide(pairs, 0) == divide(pairs, 0)
    assert divide(pairs, 0).given(16) == 6.0
    assert divide(pairs, 0).given(2) == 2.0


def test_items_divide_where_all_share_a_question():
    pairs = [
        make_pair(
            id=f"{n}",
            user="ann",
            question="Which is funnier?",
            chosen=f"a{n}",
            rejected="b",
            tags={"item_pair": f"{n}"},
        )
        for n in range(8)
    ]
    assert len(divide(pairs, 0).evaluated) == 4


def test_posts_are_drawn_by_seed_and_user_and_keep_their_order():
    posts = [Post(id=f"{n}", text=f"text {n}") for n in range(10)]
    few = some_posts("ann", posts, 4, seed=0)
    assert [post.id for post in few] == sorted(post.id for post in few)
    assert set(few) < set(some_posts("ann", posts, 8, seed=0))
    drawn = {some_posts(user, posts, 4, seed) for user in ("ann", "bob") for seed in range(4)}
    assert len(drawn) > 4
    assert some_posts("ann", posts, 0, 0) == ()
    assert some_posts("ann", posts, None, 0) == tuple(posts)
    assert some_posts("ann", posts, 99, 0) == tuple(posts)
