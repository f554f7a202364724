"""Views: what a model may see.

The leak guard is here. A `Pair` holds the hidden scoring standard (narrative and rubric aspects); a view has no field
for it. Models and prompts take views only, so showing the standard to a model is a type error. The one door is the
`oracle` context, which puts the true aspects into the view's plan and is marked as leaking wherever it is printed.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from prbench.errors import DataError
from prbench.types.pairs import Frozen, Message, Post, Text


class Judgment(Frozen):
    """A pair that a user has judged: what a model may adapt to. Never a pair that it is scored on."""

    question: Text
    chosen: Text
    rejected: Text


@dataclass(frozen=True, slots=True)
class AnswerView:
    """Part of one answer's data that a Rater may see."""

    question: str
    answer: str
    posts: tuple[Post, ...] = ()
    plan: tuple[str, ...] = ()
    user: str | None = None
    """User whose posts and plan these are; None where no user is shown."""
    turns: tuple[Message, ...] = ()
    """The conversation that `question` is the text of, where it has several turns."""

    def __post_init__(self) -> None:
        _check_shown(self.posts, self.plan)


@dataclass(frozen=True, slots=True)
class PairView:
    """Part of a pair that a Comparer may see: the answers in an order, and no label.

    Example:
        >>> view = PairView("Tea?", "Green.", "Black.")
        >>> view.swap().first
        'Black.'
    """

    question: str
    first: str
    second: str
    posts: tuple[Post, ...] = ()
    plan: tuple[str, ...] = ()
    user: str | None = None
    turns: tuple[Message, ...] = ()

    def __post_init__(self) -> None:
        _check_shown(self.posts, self.plan)

    def swap(self) -> "PairView":
        """Show the same answers the other way round."""
        return PairView(self.question, self.second, self.first, self.posts, self.plan, self.user, self.turns)

    def answers(self) -> tuple[AnswerView, AnswerView]:
        """Split into one view per answer, for a Rater."""
        return (
            AnswerView(self.question, self.first, self.posts, self.plan, self.user, self.turns),
            AnswerView(self.question, self.second, self.posts, self.plan, self.user, self.turns),
        )


@dataclass(frozen=True, slots=True)
class ListView:
    """View of a Ranker: the answers to one question, all at once.

    Example:
        >>> ListView.of(PairView("Tea?", "Green.", "Black.")).answers
        ('Green.', 'Black.')
    """

    question: str
    answers: tuple[str, ...]
    posts: tuple[Post, ...] = ()
    plan: tuple[str, ...] = ()
    user: str | None = None
    turns: tuple[Message, ...] = ()

    def __post_init__(self) -> None:
        _check_shown(self.posts, self.plan)

    @classmethod
    def of(cls, pair: PairView) -> "ListView":
        """The two answers of a pair as a list."""
        return cls(pair.question, (pair.first, pair.second), pair.posts, pair.plan, pair.user, pair.turns)

    def rotated(self, places: int) -> "ListView":
        """The same list, begun so many answers later.

        Example:
            >>> ListView("Tea?", ("Green.", "Black.", "Mint.")).rotated(1).answers
            ('Black.', 'Mint.', 'Green.')
        """
        return replace(self, answers=self.answers[places:] + self.answers[:places])

    def each(self) -> tuple[AnswerView, ...]:
        """One view per answer, for a Rater."""
        shown = (self.posts, self.plan, self.user, self.turns)
        return tuple(AnswerView(self.question, answer, *shown) for answer in self.answers)


class Prompt(NamedTuple):
    """Exactly what a model receives for one call; the call's key is a hash over it."""

    messages: tuple[Message, ...]


def _check_shown(posts: tuple[Post, ...], plan: tuple[str, ...]) -> None:
    """Refuse texts where posts or lines are due: a text would be read letter by letter."""
    if isinstance(plan, str):
        raise DataError(f"the plan of a view is a text: {plan[:40]!r}", hint="give its lines: plan=(TEXT,)")
    if posts and not isinstance(posts[0], Post):
        raise DataError(f"a post of a view is {posts[0]!r}", hint='give posts: (Post(id="1", text=TEXT),)')
