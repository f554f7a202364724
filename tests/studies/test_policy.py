"""What the policy is asked: the question, the best posts with their ids, a style; nothing of the standard."""

from collections import Counter

from prbench.studies.policy import PLAIN, STYLES, draw_styles, policy_posts, policy_prompt
from prbench.types import Pair, Post
from small_suite import mirrored

SUITE_WORDS = ("ASPECT", "SECRET", "REASON")


def pair() -> Pair:
    return mirrored(1, 1)[0]


def test_the_hidden_standard_never_reaches_the_policy():
    for posts in (0, 2):
        for style in STYLES:
            text = "\n".join(
                message.content for message in policy_prompt(pair(), posts=posts, style=style.instruction).messages
            )
            assert not any(word in text for word in (*SUITE_WORDS, pair().chosen, pair().rejected))
            assert (style.instruction or "") in text


def test_without_posts_the_prompt_is_the_same_for_every_user():
    one, other = (found for found in mirrored(1, 1))
    assert policy_prompt(one, style="Be brief.") == policy_prompt(other, style="Be brief.")
    assert policy_prompt(one, posts=2) != policy_prompt(other, posts=2)


def test_posts_are_chosen_by_relevance_and_keep_their_ids():
    posts = (
        Post(id="a", text="my bicycle squeaks"),
        Post(id="b", text="the soup was too salty again"),
        Post(id="c", text="rain all week"),
    )
    asked = pair().model_copy(update={"profile": posts, "question": "How do I mend salty soup in the rain?"})
    assert policy_posts(asked, 2) == (posts[1], posts[2])
    shown = policy_prompt(asked, posts=2).messages[1].content
    assert "salty again" in shown
    assert "bicycle" not in shown


def test_styles_differ_and_the_plain_one_is_among_them():
    assert len(STYLES) >= 8
    assert len({style.name for style in STYLES}) == len({style.instruction for style in STYLES}) == len(STYLES)
    assert STYLES[0] == PLAIN


def test_over_many_questions_every_style_comes_about_equally_often():
    drawn = Counter(style.name for number in range(300) for style in draw_styles(16, f"question {number}"))
    styled = [drawn[style.name] for style in STYLES[1:]]
    assert drawn["plain"] == 300 * 4
    expected = 300 * 12 / len(styled)
    assert min(styled) > 0.6 * expected
    assert max(styled) < 1.4 * expected
    assert draw_styles(16, "tea") == draw_styles(16, "tea")
    assert draw_styles(16, "tea", seed=1) != draw_styles(16, "tea")
