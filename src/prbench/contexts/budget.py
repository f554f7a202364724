"""Fitting a view into a model's window: whole posts go, the least relevant first; the answer is never cut.

Lengths come from the model itself, of prompts as it will receive them. Measuring every try whole would take
minutes, so each post, question and answer is measured once and the parts are added up. Sums are held against whole
prompts now and then; only a prompt that is nearer to the window than sums have been off is measured whole.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from prbench.models import Comparer, Model, Ranker, Rater, Windowed, is_rater
from prbench.rank import PostRanker
from prbench.types import ListView, PairView, Post, Prompt, Status

_MARGIN = 64
"""Tokens by which sums may be off before any was held against a whole prompt."""
_LEAST_MARGIN = 4
_COMPARED = 16
"""Sums that are held against whole prompts before they are trusted; afterwards one in as many to the power of two."""
_TRIES = 3
"""Number of posts in a row that may fail to fit before no further one is tried."""
_DOT = Post(id=".", text=".")


class Unfit(NamedTuple):
    """A view that cannot be shown to this model, and why."""

    reason: str
    status: Status = "invalid"
    """`failed` where asking again may help: a plan that could not be had."""


class FittedView(NamedTuple):
    """A view that fits, and the ids of the posts that had to go."""

    view: PairView
    dropped: tuple[str, ...]


class FittedList(NamedTuple):
    """A list that fits, and the ids of the posts that had to go."""

    view: ListView
    dropped: tuple[str, ...]


def render_all(model: Model, view: PairView) -> tuple[Prompt, ...]:
    """The prompts a model will receive for a pair shown this way round: two for a Rater, one for a Comparer."""
    if is_rater(model):
        first, second = view.answers()
        return model.render(first), model.render(second)
    return (cast(Comparer, model).render(view),)


class PromptBudget:
    """Fits views into one model's window; a model without a known window takes everything.

    Args:
        model: Whose window, and who measures.
        ranker: Which posts to keep where not all fit.
    """

    def __init__(self, model: Model | Ranker, ranker: PostRanker) -> None:
        self._model = model
        known = isinstance(model, Windowed) and model.window is not None
        self._sums = Lengths(cast(Model, model), cast(Windowed, model).length if known else lambda prompt: 0)
        self._ranker = ranker
        self._window = cast(int, cast(Windowed, model).window) if known else sys.maxsize

    @property
    def unlimited(self) -> bool:
        """Whether everything fits."""
        return self._window == sys.maxsize

    def fit(self, view: PairView) -> FittedView | Unfit:
        """Drop posts until the view fits, keeping at least one and the original order."""
        if self._window == sys.maxsize or self._fits(view):
            return FittedView(view, ())
        if not view.posts:
            over = self._sums.whole(view) - self._window
            return Unfit(f"question and answer alone are {over} tokens over the window of {self._window}")
        kept = self._chosen(view)
        if not kept:
            return Unfit(f"not even one of {len(view.posts)} posts fits the window of {self._window} tokens")
        left = tuple(post.id for place, post in enumerate(view.posts) if place not in kept)
        return FittedView(_showing(view, kept), left)

    def fit_all(self, view: PairView, answers: Sequence[str]) -> FittedView | Unfit:
        """Drop posts until the view fits whichever of these answers it holds, so that all are read with the same."""
        longest = max(answers, key=lambda text: self._sums.answer(view.question, text), default="")
        return self.fit(replace(view, first=longest, second=longest))

    def fit_list(self, view: ListView) -> FittedList | Unfit:
        """Drop posts until the whole list fits, the least relevant first; lists are measured whole."""
        if self._list_fits(view):
            return FittedList(view, ())
        ranked = [post.id for post in self._ranker.rank(view.question, view.posts)]
        fewest, most = 0, len(ranked) - 1  # as many of the best as fit, found by halving
        while fewest < most:
            middle = (fewest + most + 1) // 2
            fewest, most = (middle, most) if self._list_fits(_keeping(view, ranked[:middle])) else (fewest, middle - 1)
        if fewest <= 0:
            what = f"{len(view.answers)} answers and {'one post' if view.posts else 'their question'}"
            return Unfit(f"{what} do not fit the window of {self._window} tokens")
        kept = _keeping(view, ranked[:fewest])
        return FittedList(kept, tuple(post.id for post in view.posts if post.id not in set(ranked[:fewest])))

    def _list_fits(self, view: ListView) -> bool:
        if self._window == sys.maxsize:
            return True
        prompt = cast(Ranker, self._model).render(view)
        return cast(Windowed, self._model).length(prompt) <= self._window

    def _chosen(self, view: PairView) -> set[int]:
        """Places of the most relevant posts that fit together: first by their own lengths, then with all around."""
        places = {id(post): place for place, post in enumerate(view.posts)}
        ranked = [places[id(post)] for post in self._ranker.rank(view.question, view.posts)]
        room = self._window - self._sums.added_up(replace(view, posts=()))
        kept: list[int] = []
        for place in ranked:
            cost = self._sums.further(view.posts[place])
            if cost <= room:
                kept.append(place)
                room -= cost
        while kept and not self._fits(_showing(view, set(kept))):
            kept.pop()
        misses = 0
        for place in ranked:
            if place not in kept and misses < _TRIES:
                fits = self._fits(_showing(view, {*kept, place}))
                kept, misses = ([*kept, place], 0) if fits else (kept, misses + 1)
        return set(kept)

    def _fits(self, view: PairView) -> bool:
        length = self._sums.added_up(view)
        if self._sums.to_be_checked() or abs(length - self._window) <= self._sums.margin:
            length = self._sums.check(view, length)
        return length <= self._window


class Lengths:
    """Tokens of prompts, added up from parts that are measured once each.

    A prompt is its frame with so many posts of one dot, and what question, plan, posts and answers add to it.

    Args:
        model: Model that renders prompts.
        length: Measures one rendered prompt.
    """

    def __init__(self, model: Model, length: Callable[[Prompt], int]) -> None:
        self._model = model
        self._length = length
        self._rates = is_rater(model)
        self._frames: dict[int, int] = {}
        self._questions: dict[tuple[bool, tuple[str, ...], str], int] = {}
        self._posts: dict[str, int] = {}
        self._answers: dict[tuple[str, str], int] = {}
        self._asked = self._compared = self._worst = 0

    @property
    def margin(self) -> int:
        """Tokens by which a sum may be off, by what was seen so far."""
        return _MARGIN if self._compared < _COMPARED else max(_LEAST_MARGIN, 2 * self._worst)

    def to_be_checked(self) -> bool:
        """Whether the next sum is to be held against a whole prompt: the first ones, then now and then."""
        self._asked += 1
        return self._compared < _COMPARED or self._asked % _COMPARED**2 == 0

    def check(self, view: PairView, length: int) -> int:
        """Measure a view whole and remember by how much the sum was off."""
        whole = self.whole(view)
        self._compared += 1
        self._worst = max(self._worst, abs(whole - length))
        return whole

    def whole(self, view: PairView) -> int:
        """Tokens of the longest prompt of this view, measured."""
        return max(self._length(prompt) for prompt in render_all(self._model, view))

    def added_up(self, view: PairView) -> int:
        """Tokens of the longest prompt of this view, from its parts."""
        answers = [self.answer(view.question, text) for text in (view.first, view.second)]
        return (
            self._frame(len(view.posts))
            + self._question(view)
            + sum(map(self._post, view.posts))
            + (max(answers) if self._rates else sum(answers))
        )

    def answer(self, question: str, text: str) -> int:
        """Return the tokens that an answer adds to a prompt without it."""
        key = (question, text)
        if key not in self._answers:
            bare = PairView(question, "", "")
            self._answers[key] = self._first(replace(bare, first=text)) - self._question(bare) - self._frame(0)
        return self._answers[key]

    def further(self, post: Post) -> int:
        """Return the tokens of one more post, beside another one."""
        return self._frame(2) - self._frame(1) + self._post(post)

    def _frame(self, posts: int) -> int:
        if posts not in self._frames:
            self._frames[posts] = self._first(PairView(".", "", "", (_DOT,) * posts))
        return self._frames[posts]

    def _question(self, view: PairView) -> int:
        key = (bool(view.posts), view.plan, view.question)
        if key not in self._questions:
            around = PairView(view.question, "", "", (_DOT,) if view.posts else (), view.plan, None, view.turns)
            self._questions[key] = self._first(around) - self._frame(len(around.posts))
        return self._questions[key]

    def _post(self, post: Post) -> int:
        if post.text not in self._posts:
            self._posts[post.text] = self._first(PairView(".", "", "", (post,))) - self._frame(1)
        return self._posts[post.text]

    def _first(self, view: PairView) -> int:
        """Tokens of the prompt that shows the view's first answer."""
        if self._rates:
            return self._length(cast(Rater, self._model).render(view.answers()[0]))
        return self.whole(view)


def _keeping(view: ListView, ids: Sequence[str]) -> ListView:
    return replace(view, posts=tuple(post for post in view.posts if post.id in set(ids)))


def _showing(view: PairView, kept: set[int]) -> PairView:
    return replace(view, posts=tuple(post for place, post in enumerate(view.posts) if place in kept))
