"""A section of a page, and the words for contexts that all sections share."""

from typing import NamedTuple

from markupsafe import Markup

from prbench.types import Context


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
    return Context.parse(name).words


def context_label(name: str) -> str:
    """A context's name, marked where it shows the standard itself.

    Example:
        >>> context_label("oracle")
        'oracle (leaks)'
    """
    return f"{name} (leaks)" if Context.parse(name).leaks else name
