"""Fitting a view into a model's window: whole posts go, the least relevant first; the answer is never cut (D10)."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from prbench.models.protocols import Comparer, Model, Rater, Windowed
from prbench.rank import Ranker
from prbench.types import Message, PairView, Post, Prompt, Status

_SLACK_PER_POST = 8
_SLACK = 64
"""Tokens allowed for what a template puts around texts when lengths are only added up, not measured."""


class Unfit(NamedTuple):
    """A view that cannot be shown to this model, and why."""

    reason: str
    status: Status = "invalid"
    """`failed` where asking again may help: a plan that could not be had."""


class Fitted(NamedTuple):
    """A view that fits, and the ids of the posts that had to go."""

    view: PairView
    dropped: tuple[str, ...]


def render_all(model: Model, view: PairView) -> tuple[Prompt, ...]:
    """The prompts a model will receive for a pair shown this way round: two for a Rater, one for a Comparer."""
    if is_rater(model):
        first, second = view.answers()
        rater = cast(Rater, model)
        return rater.render(first), rater.render(second)
    return (cast(Comparer, model).render(view),)


def is_rater(model: Model) -> bool:
    """Whether this model scores answers one by one."""
    return hasattr(model, "rate")


class Budget:
    """Fits views into one model's window; a model without a known window takes everything."""

    def __init__(self, model: Model, ranker: Ranker) -> None:
        self._model = model
        self._ranker = ranker
        known = isinstance(model, Windowed) and model.window is not None
        self._length: Callable[[Prompt], int] = cast(Windowed, model).length if known else lambda prompt: 0
        self._window = cast(int, cast(Windowed, model).window) if known else sys.maxsize
        self._lengths: dict[str, int] = {}

    def fit(self, view: PairView) -> Fitted | Unfit:
        """Drop posts until the view fits, keeping at least one and the original order."""
        if self._surely_fits(view) or self._over(view) <= 0:
            return Fitted(view, ())
        if not view.posts:
            return Unfit(f"question and answer alone are {self._over(view)} tokens over the window of {self._window}")
        kept = self._greedy(view)
        while kept and self._over(_showing(view, kept)) > 0:
            kept = kept[:-1]
        if not kept:
            return Unfit(f"not even one of {len(view.posts)} posts fits the window of {self._window} tokens")
        fitted = _showing(view, kept)
        ids = {post.id for post in fitted.posts}
        return Fitted(fitted, tuple(post.id for post in view.posts if post.id not in ids))

    def _over(self, view: PairView) -> int:
        """How many tokens the longest prompt of this view is over the window."""
        return max(self._length(prompt) for prompt in render_all(self._model, view)) - self._window

    def _tokens(self, text: str) -> int:
        if text not in self._lengths:
            self._lengths[text] = self._length(Prompt((Message("user", text),)))
        return self._lengths[text]

    def _surely_fits(self, view: PairView) -> bool:
        """Add up the parts with a margin; spares measuring the whole prompt where there is plenty of room."""
        parts = [view.question, view.first, view.second, *view.plan]
        posts = sum(self._tokens(post.text) + _SLACK_PER_POST for post in view.posts)
        return posts + sum(self._tokens(text) for text in parts) + 4 * _SLACK <= self._window // 2

    def _greedy(self, view: PairView) -> list[Post]:
        """The best posts whose added lengths fit, most relevant first; always at least one to try."""
        room = -self._over(replace(view, posts=()))
        kept: list[Post] = []
        for post in self._ranker.rank(view.question, view.posts):
            cost = self._tokens(post.text)
            if cost <= room:
                kept.append(post)
                room -= cost
        return kept or [min(view.posts, key=lambda post: self._tokens(post.text))]


def _showing(view: PairView, kept: Sequence[Post]) -> PairView:
    ids = {post.id for post in kept}
    return replace(view, posts=tuple(post for post in view.posts if post.id in ids))
