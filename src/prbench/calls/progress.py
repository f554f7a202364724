"""Progress in words: a line now and then, with the time that is left."""

import time
from collections.abc import Callable

SAY_SECONDS = 10.0
_TELLING = 20
"""Number of steps after which the time left can be told: the first ones wait for the model to be opened."""


class ProgressLine:
    """Says now and then how far a stage is.

    Args:
        what: The stage.
        say: Hears each line.
        total: How much there is to do, where that is known from the start.
    """

    def __init__(self, what: str, say: Callable[[str], None], total: int = 0) -> None:
        self._what, self._say, self._total = what, say, total
        self._done = 0
        self._began = self._said = time.monotonic()

    def one_more(self) -> None:
        """Count one more as done."""
        self.at(self._done + 1, self._total)

    def at(self, done: int, total: int, more: str = "") -> None:
        """Report that so many of so many are done; `more` is said as well."""
        self._done = done
        now = time.monotonic()
        if now - self._said >= SAY_SECONDS:
            self._said = now
            left = max(total - done, 0) * (now - self._began) / max(done, 1)
            known = f" · {clock(left)} left" if done >= _TELLING else ""
            self._say(f"{self._what}: {done:,}/{total:,}{known}{more}")


def clock(seconds: float) -> str:
    """A duration as a person says it.

    Example:
        >>> clock(42), clock(250), clock(7300)
        ('42 s', '4 min 10 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
