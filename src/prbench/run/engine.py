"""The engine: asks what is not known yet, keeps each answer at once, writes a record when its calls are answered."""

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from prbench.calls import Asker, Budget, CallCache
from prbench.config import Price
from prbench.models import ModelCard
from prbench.results import MadeRecord, packed_use
from prbench.run.work import Calls, OpenWork
from prbench.types import Outcome

_BATCH = 1024
"""Answers of an instant model that are kept at once."""


class RecordListener(Protocol):
    """Hears of every record as it is made."""

    def __call__(self, record: MadeRecord, spent_usd: float) -> None:
        """One more record, and what was spent so far in this process."""
        ...


class Engine:
    """Executes a run's open work.

    Args:
        card: Of the model that is asked.
        asker: Asker of the model.
        cache: Answers of earlier runs; None asks everything anew.
        append: Takes records as they are finished.
        budget: Counts what is spent, and stops resumably at its limit.
        read: What the outcomes behind a record come to, by the order that was shown; default: `read_verdict`.
        instant: Whether the model answers faster than a record is written, so that many are kept at once.
    """

    def __init__(
        self,
        card: ModelCard,
        asker: Asker,
        cache: CallCache | None,
        append: Callable[[Sequence[MadeRecord]], None],
        budget: Budget | None = None,
        read: Callable[[Sequence[Outcome], str], Mapping[str, Any]] | None = None,
        instant: bool = False,
    ) -> None:
        self._card = card
        self.asker = asker
        """Asker, which knows what was computed."""
        self._cache = cache if card.reusable else None
        self.keep = append
        self.listener: RecordListener | None = None
        """Listener that hears of each finished record."""
        self.budget = budget or Budget()
        """Budget, which knows what was spent."""
        self._read = read
        self._batch = _BATCH if instant else 1
        self._outcomes: dict[int, tuple[Outcome, tuple[Any, ...]]] = {}
        """Answers that some record still waits for, each with what it took."""
        self.asked = 0
        self.tokens = 0

    def execute(self, work: OpenWork) -> None:
        """Make every record of the work."""
        self._finish([MadeRecord.of(record) for record in work.unfit])
        waiting = _Waiting(work)
        if self._cache is not None:
            for key, outcome in self._cache.look_up(list(work.calls)):
                number = work.calls.number(key)
                waiting.cached[number] = True
                self._answer([(number, self._priced(outcome))], waiting)
        self._ask(work.calls.without(waiting.answered), waiting)

    def _ask(self, calls: Calls, waiting: "_Waiting") -> None:
        left = len(calls)
        if calls and self._card.price is not None and self._card.price.costs:
            self.budget.check()
        # Stopping early must cancel what is under way.
        with self.budget.metering(), closing(self.asker.ask(calls)) as answers:
            while batch := list(islice(answers, self._batch)):
                numbered = []
                for key, outcome in batch:
                    number = calls.number(key)
                    if not waiting.answered[number]:  # else of a worker that was taken for dead
                        waiting.answered[number] = True
                        self._take(key, outcome)
                        numbered.append((number, outcome))
                self._answer(numbered, waiting)
                for _, outcome in numbered:
                    left -= 1
                    self.budget.take(outcome.cost_usd, more=left > 0)
        if left:
            missing = [number for key in calls if not waiting.answered[number := calls.number(key)]]
            self._answer([(number, Outcome.failed("the model gave no outcome")) for number in missing], waiting)

    def _take(self, key: str, outcome: Outcome) -> None:
        self.asked += 1
        self.tokens += outcome.tokens_in + outcome.tokens_out
        if self._cache is not None:
            self._cache.keep(key, outcome, at_once=outcome.cost_usd > 0 or bool(outcome.raw))

    def _priced(self, outcome: Outcome) -> Outcome:
        """An answer from an earlier run at today's price."""
        price = self._card.price
        if price is None:
            return outcome
        return outcome.model_copy(update={"cost_usd": _cost(price, outcome)})

    def _answer(self, answers: Iterable[tuple[int, Outcome]], waiting: "_Waiting") -> None:
        """Make the records that these answers complete."""
        made = []
        for number, outcome in answers:
            self._outcomes[number] = outcome, packed_use(outcome, cached=bool(waiting.cached[number]))
            for place in waiting.release(number):
                made.append(self._record(place, waiting))
                for used in waiting.settle(place):
                    del self._outcomes[used]
        self._finish(made)

    def _finish(self, made: Sequence[MadeRecord]) -> None:
        if made:
            self.keep(made)
        if self.listener is not None:
            for record in made:
                self.listener(record, self.budget.spent_usd)

    def _record(self, place: int, waiting: "_Waiting") -> MadeRecord:
        pair, context, order, repeat, keys, shown_user, posts, dropped = waiting.tasks.values(place)
        answers = [self._outcomes[number] for number in waiting.calls_of(place)]
        outcomes = [outcome for outcome, _ in answers]
        slot = (pair, context, order, repeat)
        shown = (shown_user, posts, dropped, tuple([outcome.raw for outcome in outcomes if outcome.raw]))
        calls = tuple([(key, use) for key, (_, use) in zip(keys, answers, strict=True)])
        if self._read is None:
            return MadeRecord._make((*slot, *read_verdict(outcomes, order), *shown, (), calls))
        found = self._read(outcomes, order)
        read = ReadVerdict(**{name: found[name] for name in ReadVerdict._fields if name in found})
        return MadeRecord._make((*slot, *read, *shown, found.get("jurors", ()), calls))


class ReadVerdict(NamedTuple):
    """What the outcomes behind a record come to."""

    status: str
    reason: str = ""
    verdict: str | None = None
    chosen_score: float | None = None
    rejected_score: float | None = None
    margin: float | None = None


def read_verdict(outcomes: Sequence[Outcome], order: str) -> ReadVerdict:
    """Return the verdict that the outcomes of a pair's calls come to: two scores are compared."""
    for status in ("failed", "invalid"):
        if bad := [outcome for outcome in outcomes if outcome.status == status]:
            return ReadVerdict(status, bad[0].reason)
    if order == "rated" and len(outcomes) == 2:
        chosen, rejected = outcomes[0].score, outcomes[1].score
        if chosen is None or rejected is None:
            return ReadVerdict("invalid", "the model gave no score")
        verdict = "first" if chosen > rejected else "second" if chosen < rejected else "tie"
        margin = chosen - rejected if math.isfinite(chosen - rejected) else None
        return ReadVerdict("ok", "", verdict, chosen, rejected, margin)
    (only,) = outcomes
    if only.verdict is None:
        return ReadVerdict("invalid", "the model gave no verdict")
    if only.margin is not None and only.margin * {"first": 1, "tie": 0, "second": -1}[only.verdict] < 0:
        return ReadVerdict("invalid", "the model's margin speaks against its verdict")
    margin = only.margin if only.margin is None or order != "chosen-second" else -only.margin
    return ReadVerdict("ok", verdict=only.verdict, margin=margin)


def _cost(price: Price, outcome: Outcome) -> float:
    return price.cost_usd(outcome.tokens_in, outcome.tokens_out, outcome.tokens_cached, outcome.tokens_stored)


class _Waiting:
    """Tasks by the calls they wait for; both by their numbers, in arrays."""

    def __init__(self, work: OpenWork) -> None:
        self.tasks = work.tasks
        number = work.calls.number
        missing = np.array([len(keys) for keys in work.tasks.keys], dtype=np.int64)
        wanted = np.array([number(key) for keys in work.tasks.keys for key in keys], dtype=np.int64)
        still_open = np.bincount(wanted, minlength=len(work.calls))
        order = np.argsort(wanted, kind="stable")
        # Looked into one by one, which plain arrays do faster.
        self._missing = _plain(missing)
        self._wanted, self._wants = _plain(wanted), _plain(np.concatenate([[0], np.cumsum(missing)]))
        """Calls of all tasks, and where those of each task begin."""
        self._waiting = _plain(np.repeat(np.arange(len(missing)), missing)[order])
        """Tasks, sorted by the call that they wait for."""
        self._open = _plain(still_open)
        """Number of records of each call that are not made yet."""
        self._begin = _plain(np.concatenate([[0], np.cumsum(still_open)]))
        self.answered = bytearray(len(work.calls))
        """1 of each call that was answered."""
        self.cached = bytearray(len(work.calls))
        """1 of each call whose answer was there already from an earlier run."""

    def calls_of(self, task: int) -> "array[int]":
        """The calls that a task waits for."""
        return self._wanted[self._wants[task] : self._wants[task + 1]]

    def release(self, call: int) -> list[int]:
        """The tasks that this answer completes."""
        self.answered[call] = True
        complete, missing = [], self._missing
        for task in self._waiting[self._begin[call] : self._begin[call + 1]]:
            missing[task] -= 1
            if missing[task] == 0:
                complete.append(task)
        return complete

    def settle(self, task: int) -> list[int]:
        """The calls that no task waits for any more, now that the record of a task is made."""
        settled, still_open = [], self._open
        for call in self.calls_of(task):
            still_open[call] -= 1
            if still_open[call] == 0:
                settled.append(call)
        return settled


def _plain(numbers: "NDArray[np.int64]") -> "array[int]":
    return array("q", numbers.astype(np.int64, copy=False).tobytes())
