"""Speed of a model on texts, learned from the batches that it was given.

Answers and what they share (question, posts) are told apart: a model may read a post a hundred times faster than an
answer. The seconds of a batch are fitted as `a` for each character of an answer plus `b` for each shared one, by least
squares over the latest batches, beside a weak guess that holds where nothing was seen yet. A batch of texts that were
met lately says nothing, since a model may have kept what it made of them.
"""

from collections.abc import Hashable

_GUESS = ((8_000.0, 0.0, 2.0), (0.0, 80_000.0, 2.0))
"""Characters of answers, shared ones, and the seconds that they are taken to need before anything is known."""
_GUESS_WEIGHT = 0.02
_FADING = 0.8
"""Weight of the batches so far beside a new one."""
_TELLING = 2_000
"""Characters below which the time of a batch says more of its overhead than of the model."""
_REMEMBERED = 4_096
"""Texts that are known to have been met."""


class Pace:
    """Estimate of the seconds that characters take.

    Example:
        >>> pace = Pace()
        >>> pace.seconds(8_000, 0)
        2.0
        >>> for _ in range(9):
        ...     pace.learn(30_000, 10_000, 0.3)
        ...     pace.learn(500, 90_000, 0.01)
        >>> round(pace.seconds(30_000, 0), 2), round(pace.seconds(0, 90_000), 2)
        (0.3, 0.02)
    """

    def __init__(self) -> None:
        self.known = False
        """Whether any batch was long enough to tell."""
        self._sums: tuple[float, ...] = (0.0,) * 5
        self._rates = self._fit()
        self._met: dict[Hashable, None] = {}

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
        self.known = True
        faded = (_FADING * old for old in self._sums)
        self._sums = _added(tuple(faded), own, shared, took_s, 1.0)
        self._rates = self._fit()

    def _fit(self) -> tuple[float, float]:
        """The two rates; neither is negative, whatever the noise."""
        sums = self._sums
        for own, shared, took_s in _GUESS:
            sums = _added(sums, own, shared, took_s, _GUESS_WEIGHT)
        oo, os, ss, ot, st = sums
        determinant = oo * ss - os * os
        own_s, shared_s = (ot * ss - st * os) / determinant, (st * oo - ot * os) / determinant
        if own_s < 0:
            return 0.0, st / ss
        return (ot / oo, 0.0) if shared_s < 0 else (own_s, shared_s)


def _added(sums: tuple[float, ...], own: float, shared: float, took_s: float, weight: float) -> tuple[float, ...]:
    products = (own * own, own * shared, shared * shared, own * took_s, shared * took_s)
    return tuple(old + weight * new for old, new in zip(sums, products, strict=True))
