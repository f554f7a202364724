"""Contexts: what of the user a model is shown, each described once for help, tables, pages and docs."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator

from prbench.errors import ContextError, did_you_mean


class Channel(StrEnum):
    """A way in which the user reaches a model."""

    POSTS = "posts"
    PLAN = "plan"


class ContextKind(NamedTuple):
    """One kind of context: everything that help, tables, pages and docs say of it."""

    needs: frozenset[Channel]
    """The channels a model must read for this context to mean anything."""
    shows: str
    """Description of what the model is shown; `{}` stands for the number K of a context that is written NAME@K."""
    tells: str
    """Explanation of what accuracy under this context is good for."""
    own: bool = True
    """Whether it is the pair's own user who is shown."""
    picks: Literal["", "own", "suite"] = ""
    """Posts that are picked from: the user's own, those of a suite's other users, or none."""
    source: Literal["", "profile", "judgments", "rubric"] = "profile"
    """Part of a suite that the context is made of. A model that is shown the rubric is shown the scoring standard
    itself."""

    @property
    def counts(self) -> str:
        """Return the unit that the number K counts."""
        return "labelled pairs" if self.source == "judgments" else "posts"


_POSTS, _PLAN = frozenset({Channel.POSTS}), frozenset({Channel.PLAN})

CONTEXTS: dict[str, ContextKind] = {
    "none": ContextKind(
        frozenset(), "no posts", "what it does without knowing the user (50 % on mirrored pairs)", own=False, source=""
    ),
    "profile": ContextKind(_POSTS, "the user's own posts", "**gain** = own − none"),
    "retrieved": ContextKind(
        _POSTS, "the {} own posts nearest to the question", "gain, where a model takes few posts", picks="own"
    ),
    "recent": ContextKind(_POSTS, "the {} latest own posts", "how much history a model needs", picks="own"),
    "diluted": ContextKind(
        _POSTS,
        "own posts among {} everyday posts of others",
        "how much noise a model stands; the added posts show nothing, are by other people of the split, and are the "
        "same for both halves of a couple and all their pairs, by seed",
        picks="suite",
    ),
    "pairs": ContextKind(
        _POSTS,
        "up to {} pairs that the user has judged",
        "what a few labels tell: as text, or through `fit_user` where the model adapts; never a pair that is scored, "
        "nor a question that is scored for that user",
        source="judgments",
    ),
    "plan": ContextKind(_PLAN, "aspects inferred from the posts", "whether spelling out what the user expects helps"),
    "profile+plan": ContextKind(
        _POSTS | _PLAN, "own posts and inferred aspects", "whether spelling it out helps beside the posts"
    ),
    "other": ContextKind(
        _POSTS,
        "another user's posts",
        "**specificity** = own − other: whether it is *this* user that counts, or any user",
        own=False,
        picks="suite",
    ),
    "opposite": ContextKind(
        _POSTS,
        "the opposite user's posts",
        "**reversal** = own − opposite (mirrored suites): a model that follows the user must flip",
        own=False,
        picks="suite",
    ),
    "oracle": ContextKind(_PLAN, "the true rubric", "**headroom closed** = gain ÷ (oracle − none)", source="rubric"),
}
"""Every context, in the order in which pages show them; `contexts.posts` says which posts each one shows."""


def context_names() -> list[str]:
    """Every context as it is written, such as `recent@K`.

    Example:
        >>> context_names()[:3]
        ['none', 'profile', 'retrieved@K']
    """
    return [f"{name}@K" if _is_counted(name) else name for name in CONTEXTS]


def _is_counted(name: str) -> bool:
    return name in CONTEXTS and "{}" in CONTEXTS[name].shows


@dataclass(frozen=True, slots=True)
class Context:
    """Part of the user's data that a model is shown: one of the kinds in `CONTEXTS`.

    Example:
        >>> Context.parse("retrieved@5")
        Context(name='retrieved', k=5)
        >>> str(Context.parse("profile"))
        'profile'
    """

    name: str
    k: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Context":
        """Read the name of a context; some have a number of posts or labelled pairs, as `recent@5` or `pairs@3`."""
        text = text.strip()
        name, _, number = text.partition("@")
        if _is_counted(name):
            if not re.fullmatch(r"[1-9][0-9]*", number):
                raise ContextError(
                    f"context {text!r} needs a number of {CONTEXTS[name].counts}", hint=f"for example {name}@10"
                )
            return cls(name, int(number))
        if text not in CONTEXTS:
            raise ContextError(f"unknown context {text!r}", hint=did_you_mean(text, context_names()))
        return cls(text)

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"

    @property
    def kind(self) -> ContextKind:
        """Return the description of contexts of this name."""
        return CONTEXTS[self.name]

    @property
    def needs(self) -> frozenset[Channel]:
        """The channels a model must read for this context to mean anything."""
        return self.kind.needs

    @property
    def leaks(self) -> bool:
        """Whether the model is shown the scoring standard itself."""
        return self.kind.source == "rubric"

    @property
    def words(self) -> str:
        """Return what a model is shown, in words.

        Example:
            >>> Context.parse("retrieved@5").words
            'the 5 own posts nearest to the question'
        """
        return self.kind.shows.format(self.k)


ContextName = Annotated[str, AfterValidator(lambda name: str(Context.parse(name)))]
"""A context as it is written in a file."""
