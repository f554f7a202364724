"""Speed of a model on texts, learned from the batches that it was given.

Answers and what they share (question, posts) are told apart: a model may read a post a hundred times faster than an
answer. The seconds of a batch are fitted as `a` for each character of an answer plus `b` for each shared one, by least
squares over the latest batches, beside a weak guess that holds where nothing was seen yet: what the model foresees for
itself, if it does. A batch of texts that were met lately says nothing where a model may have kept what it made of them.
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple

from prbench.models import Foreseeable, Rater, Windowed, can_rate
from prbench.types import AnswerView


class Rates(NamedTuple):
    """Seconds that a character takes."""

    own: float
    """Seconds of a character of an answer."""
    shared: float
    """Seconds of a character of a question or a post."""


USUAL = Rates(2 / 8_000, 2 / 80_000)
"""Guess for a model that foresees nothing."""
_GUESSED = (8_000.0, 20_000.0)
"""Characters of answers and shared ones that the guess is taken to have seen, no more for a fast model than for a slow
one."""
_GUESS_WEIGHT = 0.02
_FADING = 0.8
"""Weight of the batches so far beside a new one."""
_FIRST_FADING = 0.1
"""Weight of the first batch beside the second: it paid for much that is done once."""
_TOKEN = 4
"""Characters of a token, where a model does not count them itself."""
_TELLING = 2_000
"""Characters below which the time of a batch says more of its overhead than of the model."""
_REMEMBERED = 4_096
"""Texts that are known to have been met."""


class Pace:
    """Estimate of the seconds that characters take.

    Args:
        guess: Rates before anything is known.

    Example:
        >>> pace = Pace()
        >>> pace.seconds(8_000, 0)
        2.0
        >>> for _ in range(9):
        ...     pace.learn(30_000, 10_000, 0.3)
        ...     pace.learn(500, 90_000, 0.01)
        >>> round(pace.seconds(30_000, 0), 2), round(pace.seconds(0, 90_000), 3)
        (0.3, 0.005)
    """

    def __init__(self, guess: Rates = USUAL) -> None:
        self._guess = guess
        self._batches = 0
        self._sums: tuple[float, ...] = (0.0,) * 5
        self._rates = self._fit()
        self._met: dict[Hashable, None] = {}

    @property
    def known(self) -> bool:
        """Whether any batch was long enough to tell."""
        return self._batches > 0

    def seconds(self, own: float, shared: float) -> float:
        """Return the seconds that so many characters take."""
        return self._rates[0] * own + self._rates[1] * shared

    def fresh(self, text: Hashable) -> bool:
        """Whether a text is met for the first time lately; from now on it is not."""
        if text in self._met:
            return False
        while len(self._met) >= _REMEMBERED:
            del self._met[next(iter(self._met))]
        self._met[text] = None
        return True

    def forget(self) -> None:
        """Take every text for fresh; what was learned of the speed stays."""
        self._met.clear()

    def learn(self, own: float, shared: float, took_s: float) -> None:
        """Take a batch into account: its characters, those that were not fresh left out, and its time."""
        if own + shared < _TELLING:
            return
        self._batches += 1
        fading = _FIRST_FADING if self._batches == 2 else _FADING
        faded = (fading * old for old in self._sums)
        self._sums = _added(tuple(faded), own, shared, took_s, 1.0)
        self._rates = self._fit()

    def _fit(self) -> tuple[float, float]:
        """The two rates; neither is negative, whatever the noise."""
        sums = self._sums
        own, shared = _GUESSED
        sums = _added(sums, own, 0.0, own * self._guess.own, _GUESS_WEIGHT)
        sums = _added(sums, 0.0, shared, shared * self._guess.shared, _GUESS_WEIGHT)
        oo, os, ss, ot, st = sums
        determinant = oo * ss - os * os
        own_s, shared_s = (ot * ss - st * os) / determinant, (st * oo - ot * os) / determinant
        if own_s < 0:
            return 0.0, st / ss
        return (ot / oo, 0.0) if shared_s < 0 else (own_s, shared_s)


def keeps_texts(model: object) -> bool:
    """Whether a model may keep what it made of a text from one call to the next."""
    return getattr(model, "computes_once", None) is None


def foreseen_rates(model: Rater, sample: Callable[[], AnswerView | None]) -> Rates:
    """Return the rates that a model foresees for itself; where it foresees nothing, the usual guess.

    What a model keeps of posts is no part of what it foresees: there posts are taken to be as much faster as usual.

    Args:
        model: Rater that will be asked.
        sample: Gives a view of the kind that it will be shown, if there is one.
    """
    view = sample() if isinstance(model, Foreseeable) and can_rate(model) else None
    if view is None or not isinstance(model, Foreseeable):
        return USUAL
    prompt = model.render(view)
    letters = sum(len(message.content) for message in prompt.messages)
    tokens = model.length(prompt) if isinstance(model, Windowed) else letters // _TOKEN
    own = model.foreseen_seconds(tokens, tokens) / max(letters, 1)
    if own <= 0:
        return USUAL
    return Rates(own, own * USUAL.shared / USUAL.own if keeps_texts(model) else own)


def _added(sums: tuple[float, ...], own: float, shared: float, took_s: float, weight: float) -> tuple[float, ...]:
    products = (own * own, own * shared, shared * shared, own * took_s, shared * took_s)
    return tuple(old + weight * new for old, new in zip(sums, products, strict=True))
