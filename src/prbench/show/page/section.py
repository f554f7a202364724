"""A section of a page, and the words for contexts that all sections share."""

from typing import NamedTuple

from markupsafe import Markup

from prbench.types import Context

_WORDS = {
    "none": "no posts",
    "profile": "the user's own posts",
    "other": "another user's posts",
    "opposite": "the opposite user's posts",
    "plan": "aspects inferred from the posts",
    "profile+plan": "own posts and inferred aspects",
    "oracle": "the true rubric",
}
_COUNTED = {
    "retrieved": "the {} own posts nearest to the question",
    "recent": "the {} latest own posts",
    "diluted": "own posts among {} everyday posts of others",
    "pairs": "up to {} pairs that the user has judged",
}


class Section(NamedTuple):
    """One part of a report. A study that wants to be seen hands one of these to `report_page`."""

    id: str
    """Also its anchor."""
    title: str
    lead: str
    """What to look for, in a sentence or two."""
    body: Markup
    nav: str = ""
    """Its name in the bar on top; empty keeps it out."""


def context_words(name: str) -> str:
    """What a model is shown in a context, in words.

    Example:
        >>> print(context_words("retrieved@5"))
        the 5 own posts nearest to the question
    """
    context = Context.parse(name)
    if context.k is None:
        return _WORDS[context.name]
    return _COUNTED[context.name].format(context.k)


def context_label(name: str) -> str:
    """A context's name, marked where it shows the standard itself.

    Example:
        >>> context_label("oracle")
        'oracle (leaks)'
    """
    return f"{name} (leaks)" if Context.parse(name).leaks else name
