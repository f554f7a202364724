"""Neutral words that are no user's own, to hold a user's own against.

Any post and any plan before a question makes some answers likelier than others, for any author. Putting these in the
place of the user's takes that out and leaves what the user's own words do (domain-conditional mutual information,
Holtzman et al. 2021, "Surface form competition").
"""

from dataclasses import replace

from prbench.types import AnswerView, Post

__all__ = ["NEUTRAL_PLAN", "NEUTRAL_POSTS", "as_anybody"]

NEUTRAL_PLAN = ("Something useful", "The way I like it")
_TEXTS = (
    """A question about the house
Hello everybody. I have a question and I hope somebody here can help. It came up again last week and I would like to \
settle it before the end of the month. What would you do?""",
    """Which one to take?
There are two ways to go about it and I have read a little about both. I am not sure yet. Thank you for reading, and \
for any answer.""",
    """Still the same thing
I asked about this some time ago and the answers were useful. Now there is a new side to it. How do other people \
handle this?""",
)
NEUTRAL_POSTS = tuple(Post(id=f"anybody-{number}", text=text) for number, text in enumerate(_TEXTS, start=1))


def as_anybody(view: AnswerView) -> AnswerView:
    """The same view with neutral posts and a neutral plan, each where the view has its own.

    Example:
        >>> as_anybody(AnswerView("Tea?", "Green.", plan=("Strong",), user="ann")).plan
        ('Something useful', 'The way I like it')
    """
    posts = NEUTRAL_POSTS if view.posts else ()
    return replace(view, posts=posts, plan=NEUTRAL_PLAN if view.plan else (), user=None)
