"""Fitting a view into a model's window: whole posts go, the least relevant first; the answer is never cut.

Lengths come from the model itself, of prompts as it will receive them. Measuring every prompt whole would cost as much
as tokenising the run twice, so parts are measured once and added up; only near the window is the whole prompt measured.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from prbench.models import Comparer, Model, Windowed, is_rater
from prbench.rank import Ranker
from prbench.types import PairView, Post, Prompt, Status

_MARGIN = 64
"""Tokens by which added-up lengths may be off; a prompt nearer to the window than that is measured whole."""
_TRIES = 3
"""How many posts in a row may fail to fit before no further one is tried."""


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
        return model.render(first), model.render(second)
    return (cast(Comparer, model).render(view),)


class Budget:
    """Fits views into one model's window; a model without a known window takes everything.

    Args:
        model: Whose window, and who measures.
        ranker: Which posts to keep where not all fit.
    """

    def __init__(self, model: Model, ranker: Ranker) -> None:
        known = isinstance(model, Windowed) and model.window is not None
        self._model = model
        self._ranker = ranker
        self._length: Callable[[Prompt], int] = cast(Windowed, model).length if known else lambda prompt: 0
        self._window = cast(int, cast(Windowed, model).window) if known else sys.maxsize
        self._frames: dict[tuple[object, ...], int] = {}
        self._answers: dict[tuple[str, str], int] = {}
        self._posts: dict[str, int] = {}

    def fit(self, view: PairView) -> Fitted | Unfit:
        """Drop posts until the view fits, keeping at least one and the original order."""
        if self._window == sys.maxsize or self._added_up(view) + _MARGIN <= self._window or self._fits(view):
            return Fitted(view, ())
        if not view.posts:
            over = self._whole(view) - self._window
            return Unfit(f"question and answer alone are {over} tokens over the window of {self._window}")
        kept = self._chosen(view)
        if not kept:
            return Unfit(f"not even one of {len(view.posts)} posts fits the window of {self._window} tokens")
        shown = _showing(view, kept)
        return Fitted(shown, tuple(post.id for post in view.posts if post not in set(kept)))

    def fit_all(self, view: PairView, answers: Sequence[str]) -> Fitted | Unfit:
        """Drop posts until the view fits whichever of these answers it holds, so that all are read with the same."""
        longest = max(answers, key=lambda text: self._answer(view, text), default="")
        return self.fit(replace(view, first=longest, second=longest))

    def _chosen(self, view: PairView) -> list[Post]:
        """The most relevant posts that fit together: first by added lengths, then as measured whole."""
        ranked = self._ranker.rank(view.question, view.posts)
        room = self._window - self._whole(replace(view, posts=()))
        kept: list[Post] = []
        for post in ranked:
            cost = self._post(post, view)
            if cost <= room:
                kept.append(post)
                room -= cost
        while kept and not self._fits(_showing(view, kept)):
            kept.pop()
        misses = 0
        for post in ranked:
            if post not in kept and misses < _TRIES:
                fits = self._fits(_showing(view, [*kept, post]))
                kept, misses = ([*kept, post], 0) if fits else (kept, misses + 1)
        return kept

    def _fits(self, view: PairView) -> bool:
        return self._whole(view) <= self._window

    def _whole(self, view: PairView) -> int:
        """Tokens of the longest prompt of this view, measured whole."""
        return max(self._length(prompt) for prompt in render_all(self._model, view))

    def _added_up(self, view: PairView) -> int:
        """Tokens of the longest prompt, from the frame (posts, plan, question) and the answers measured apart."""
        key = (view.posts, view.plan, view.question)
        if key not in self._frames:
            self._frames[key] = self._whole(replace(view, first="", second=""))
        longest = [self._answer(view, text) for text in (view.first, view.second)]
        return self._frames[key] + (max(longest) if is_rater(self._model) else sum(longest))

    def _answer(self, view: PairView, text: str) -> int:
        if (view.question, text) not in self._answers:
            bare = PairView(view.question, "", "")
            self._answers[view.question, text] = self._whole(replace(bare, first=text)) - self._whole(bare)
        return self._answers[view.question, text]

    def _post(self, post: Post, view: PairView) -> int:
        """What one more post costs, beside another one, so that what a template says once is not counted each time."""
        if post.text not in self._posts:
            one, two = replace(view, posts=(post,)), replace(view, posts=(post, post))
            self._posts[post.text] = self._whole(two) - self._whole(one)
        return self._posts[post.text]


def _showing(view: PairView, kept: Sequence[Post]) -> PairView:
    wanted = set(kept)
    return replace(view, posts=tuple(post for post in view.posts if post in wanted))
