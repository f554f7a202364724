"""Meter of requests while they are under way: each is announced before it is sent, and settled by its reply.

A model that pays for its requests tells the meter of the code that asks it, so that money is written down before it can
be spent. The meter is found through a context variable, since between who asks and who sends there may be a planner, a
judge or a wrapper that knows nothing of money.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Meter(Protocol):
    """Counts what requests cost; called from the thread that sends them."""

    def begin(self, most_usd: float, *, again: bool = False) -> int:
        """Note a request that is about to be sent and costs at most so much; returns its number.

        Args:
            most_usd: Its price, were every byte a token and the reply as long as allowed; 0 where there is no price.
            again: Whether it was sent before and met a passing fault.

        Raises:
            BudgetError: If nothing more may be spent; the request must not be sent.
        """
        ...

    def settle(self, number: int, cost_usd: float) -> None:
        """Note what a request cost in the end; one that is never settled may have cost all that was announced."""
        ...

    def abandon(self, number: int) -> None:
        """Note that no reply to a request will be read, though it may have cost all that was announced."""
        ...


_METER: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered(meter: Meter) -> Iterator[None]:
    """Have every request that is begun in this block announced to a meter."""
    token = _METER.set(meter)
    try:
        yield
    finally:
        _METER.reset(token)


def current_meter() -> Meter | None:
    """Return the meter of the code that asks; None where nothing is counted."""
    return _METER.get()
