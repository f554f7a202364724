"""Requests in the queue, and what of a model's outcomes their clients may read."""

import logging
import math
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from prbench.serve.gathering import Load, Waiting, load_of
from prbench.serve.items import ItemError, Scored, ScoreItem
from prbench.types import AnswerView, Outcome

_LOG = logging.getLogger(__name__)


@dataclass(eq=False)
class Job:
    """One request: its items, and what they came to."""

    items: Sequence[ScoreItem]
    waiting: Sequence[Waiting]
    """Cost of each item."""
    arrived: float
    deadline: float
    done: "Future[list[Scored]]" = field(default_factory=Future)
    shown: dict[int, AnswerView | ItemError] = field(default_factory=dict)
    """Made when the first item of a question is reached: a request's answers to one question are shown together."""
    results: dict[int, Scored] = field(default_factory=dict)
    left: Load = field(init=False)
    """Characters of the items that still wait."""

    _places: dict[tuple[object, object], list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        """Count what it costs, and find what belongs together."""
        self.left = load_of(self.waiting)
        for place, one in enumerate(self.waiting):
            self._places[one.user, one.question].append(place)

    def beside(self, place: int) -> list[int]:
        """The items with the same user and question as this one."""
        return self._places[self.waiting[place].user, self.waiting[place].question]

    def settle(self, place: int, result: Scored) -> None:
        """Keep one item's result; the last one answers the request."""
        self.results[place] = result
        # From here on it cannot be cancelled; if it was, its caller no longer waits.
        if len(self.results) < len(self.items) or self.done.done():
            return
        if self.done.set_running_or_notify_cancel():
            self.done.set_result([self.results[place] for place in range(len(self.items))])


Entry = tuple[Job, int]
"""One item of a job, by its place."""


def read(outcome: Outcome) -> Scored:
    """A score, or why there is none; a failure is never a number.

    Example:
        >>> read(Outcome.scored(0.5)), read(Outcome.scored(float("inf")))
        (0.5, ItemError(kind='invalid', message='score is inf'))
    """
    if outcome.status == "failed":
        return ItemError("failed", outcome.reason)
    if outcome.status != "ok" or outcome.score is None:
        return ItemError("invalid", outcome.reason or "the model gave no score")
    # Asked once more: what a model makes without `Outcome.scored` has met no check.
    return outcome.score if math.isfinite(outcome.score) else ItemError("invalid", f"score is {outcome.score}")


def discreet(outcome: Outcome) -> Outcome:
    """An outcome whose reason a client may read: why a model failed may quote paths and texts of this machine."""
    if outcome.status != "failed":
        return outcome
    _LOG.error("an item failed: %s", outcome.reason)
    return Outcome.failed("the model failed; the server's log says more")


def logged(error: BaseException) -> str:
    """Put an error into the log, whole; returns what the client may know of it."""
    _LOG.error("an item failed", exc_info=error)
    return f"the model raised {type(error).__name__}; the server's log says more"
