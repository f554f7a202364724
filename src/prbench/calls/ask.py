"""Askers of calls: this process itself, several processes on this machine, or actors of a Ray cluster.

An Asker takes calls by key and yields their outcomes as they come; what is cached, kept, recorded and spent is the
Engine's business alone. So with every asker a run has one writer, one store and the same keys.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from prbench.calls.shards import View
from prbench.models import Accounted, Comparer, Effort, Model, Noted, Paced, Preparable, Ranker, is_rater
from prbench.types import ListView, Outcome

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

CHUNK = 2048
"""Calls handed to a model at once: enough to sort by length, little enough to hold in memory."""


class Asker(Protocol):
    """Seam between the engine and whatever answers its calls."""

    @property
    def effort(self) -> Effort:
        """Return the effort of scoring so far, all workers together; empty where it is not counted."""
        ...

    @property
    def peak_flops(self) -> float | None:
        """Operations per second that the machine could make for one worker, where that is known."""
        ...

    @property
    def note(self) -> str | None:
        """Return what a user should know about how the model was run."""
        ...

    def ask(self, calls: Mapping[str, View]) -> Generator[tuple[str, Outcome]]:
        """Yield `(key, outcome)` in any order, each key at most once. Closing the iterator stops all work."""
        ...


class InProcess:
    """Asker that uses the model in this process."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._before = effort_of(model) + Effort()  # of earlier runs with the same model; a copy, for it goes on

    @property
    def effort(self) -> Effort:
        """Effort as the model counts it, since this run began."""
        return effort_of(self._model) - self._before

    @property
    def peak_flops(self) -> float | None:
        """Operations per second as the model measures them."""
        return self._model.peak_flops if isinstance(self._model, Paced) else None

    @property
    def note(self) -> str | None:
        """Return the model's own note."""
        return self._model.note if isinstance(self._model, Noted) else None

    def ask(self, calls: Mapping[str, View]) -> Generator[tuple[str, Outcome]]:
        """Hand the calls to the model, a few thousand at a time."""
        if calls and isinstance(self._model, Preparable):
            self._model.prepare()
        yield from in_chunks(calls, lambda views: reply(self._model, views))


def in_chunks(
    asked: Mapping[str, Asked], ask: Callable[[list[Asked]], Iterator[tuple[int, Answer]]]
) -> Generator[tuple[str, Answer]]:
    """Ask a few thousand calls at a time; yields `(key, answer)` in any order. Closing it cancels what is under way.

    Args:
        asked: What is asked, by key.
        ask: Answers a list of calls by their places in it, as every model does.
    """
    keys = list(asked)
    for start in range(0, len(keys), CHUNK):
        chunk = keys[start : start + CHUNK]
        with ExitStack() as stack:
            answers = ask([asked[key] for key in chunk])
            if hasattr(answers, "close"):
                stack.callback(answers.close)
            for index, answer in answers:
                yield chunk[index], answer


def reply(model: Model, views: Sequence[Any]) -> Generator[tuple[int, Outcome]]:
    """Yield a model's outcomes for views of its own kind, or for lists; closing it cancels what is under way."""
    if views and isinstance(views[0], ListView):
        yield from cast(Ranker, model).rank(views)
    else:
        yield from model.rate(views) if is_rater(model) else cast(Comparer, model).compare(views)


def effort_of(model: Model) -> Effort:
    """Return what a model's scoring took so far; nothing where the model does not count it."""
    return model.effort if isinstance(model, Accounted) else Effort()


class WorkerEffort(NamedTuple):
    """Effort of a worker's scoring since its last report."""

    effort: Effort | None = None
    peak_flops: float | None = None
    note: str | None = None


class WorkerEfforts:
    """Sums what all workers did, also those that died later."""

    def __init__(self) -> None:
        self.effort = Effort()
        """Effort of all workers; seconds too, so that its rate is that of one worker."""
        self.peak_flops: float | None = None
        self.replaced = 0
        """Workers that died and were replaced."""
        self.frozen = 0
        """Number of these that stood still and were ended for it."""
        self._notes: dict[str, None] = {}

    def add(self, tally: WorkerEffort) -> None:
        """Count what one worker did."""
        if tally.effort is not None:
            self.effort += tally.effort
        if tally.peak_flops is not None:
            self.peak_flops = max(tally.peak_flops, self.peak_flops or 0.0)
        if tally.note:
            self._notes[tally.note] = None

    @property
    def note(self) -> str | None:
        """Return the notes of the workers, each one once."""
        frozen = f" ({self.frozen} stood still and were ended)" if self.frozen else ""
        again = "their open calls were asked again"
        died = [f"{self.replaced} worker process(es) died{frozen}; {again}"] if self.replaced else []
        return "; ".join([*self._notes, *died]) or None
