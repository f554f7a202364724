"""A model as it stands at one point of a curve: adapted to some judged pairs of each user, shown some of their posts.

It answers under the context `profile`, so that the model is told whose pair it is also where no post is shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple, TypeVar, cast

from prbench.config import digest
from prbench.models import Adaptive, Comparer, Model, ModelCard, Preparable, Rater, Windowed, is_rater
from prbench.scorecard.protocol import some_posts
from prbench.types import AnswerView, Channel, Judgment, Message, Outcome, PairView, Prompt

_KNOWN = "judged pairs"
"""Role of the turn that keeps users apart who are shown the same texts: equal prompts are one call."""

View = TypeVar("View", AnswerView, PairView)
Judgments = Mapping[str, Sequence[Judgment]]


class Point(NamedTuple):
    """Amount that is known of a user."""

    shots: int
    posts: int | None
    """Number of posts, None for all."""

    @property
    def label(self) -> str:
        """Name of the point's folder.

        Example:
            >>> Point(4, None).label
            'shots-4-posts-all'
        """
        return f"shots-{self.shots}-posts-{'all' if self.posts is None else self.posts}"


@contextmanager
def adapted(model: Model, judgments: Judgments, point: Point, seed: int) -> Iterator[Model]:
    """The model with so much known of each user; forgets them in the end."""
    given = {user: tuple(found) for user, found in judgments.items() if found}
    try:
        for user, found in given.items():
            cast(Adaptive, model).fit_user(user, found)
        kind = AdaptedRater if is_rater(model) else AdaptedComparer
        yield cast(Model, kind(model, given, point, seed))
    finally:
        for user in given:
            cast(Adaptive, model).fit_user(user, ())


class _Adapted:
    """Base of adapted Raters and Comparers."""

    def __init__(self, model: Model, judgments: Judgments, point: Point, seed: int) -> None:
        self._model = model
        self._point = point
        self._seed = seed
        self._judged = {user: digest([shot.model_dump() for shot in found]) for user, found in judgments.items()}
        card = model.card
        known = {"shots": point.shots, "posts": point.posts, "seed": seed, "judgments": digest(self._judged)}
        # Says that it reads posts, for without them it would not be told who the user is.
        self.card: ModelCard = card.model_copy(
            update={"parameters": {**card.parameters, "known": known}, "reads": card.reads | {Channel.POSTS}}
        )

    @property
    def window(self) -> int | None:
        """Window of the model itself."""
        return self._model.window if isinstance(self._model, Windowed) else None

    def length(self, prompt: Prompt) -> int:
        """Return the length as the model measures it."""
        own = Prompt(tuple(message for message in prompt.messages if message.role != _KNOWN))
        return cast(Windowed, self._model).length(own)

    def prepare(self) -> None:
        """Load the weights of the model."""
        if isinstance(self._model, Preparable):
            self._model.prepare()

    def _marked(self, prompt: Prompt, user: str | None) -> Prompt:
        """The prompt with what the user has judged, which a model need not render itself."""
        judged = self._judged.get(user or "")
        return prompt if judged is None else Prompt((*prompt.messages, Message(_KNOWN, judged)))

    def _shown(self, view: View) -> View:
        return replace(view, posts=some_posts(view.user or "", view.posts, self._point.posts, self._seed))


class AdaptedRater(_Adapted):
    """A Rater at one point."""

    def render(self, view: AnswerView) -> Prompt:
        """Return what the model receives, and what it was fitted to."""
        return self._marked(cast(Rater, self._model).render(self._shown(view)), view.user)

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Ask the model for ratings."""
        return cast(Rater, self._model).rate([self._shown(view) for view in views])


class AdaptedComparer(_Adapted):
    """A Comparer at one point."""

    def render(self, view: PairView) -> Prompt:
        """Return what the model receives, and what it was fitted to."""
        return self._marked(cast(Comparer, self._model).render(self._shown(view)), view.user)

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Ask the model for verdicts."""
        return cast(Comparer, self._model).compare([self._shown(view) for view in views])
