"""The engine: asks what is not known yet, keeps each answer at once, writes a record when its calls are answered."""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Protocol

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
        read: What the outcomes behind a record come to, by the order that was shown.
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
        self._read = read or verdict_fields
        self._batch = _BATCH if instant else 1
        self._outcomes: dict[int, Outcome] = {}
        """Answers that some record still waits for."""
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
            self._outcomes[number] = outcome
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
        task, numbers = waiting.tasks[place], waiting.calls_of(place)
        outcomes = [self._outcomes[number] for number in numbers]
        calls = zip(task.keys, outcomes, numbers, strict=True)
        return MadeRecord(
            task.pair,
            task.context,
            task.order,
            task.repeat,
            shown_user=task.shown_user,
            posts=task.posts,
            dropped=task.dropped,
            raw=tuple([outcome.raw for outcome in outcomes if outcome.raw]),
            calls=tuple([(key, packed_use(outcome, cached=bool(waiting.cached[n]))) for key, outcome, n in calls]),
            **self._read(outcomes, task.order),
        )


def verdict_fields(outcomes: Sequence[Outcome], order: str) -> Mapping[str, Any]:
    """Return the fields of a verdict from the outcomes of a pair's calls: two scores are compared."""
    for status in ("failed", "invalid"):
        if bad := [outcome for outcome in outcomes if outcome.status == status]:
            return {"status": status, "reason": bad[0].reason}
    if order == "rated" and len(outcomes) == 2:
        chosen, rejected = (outcome.score for outcome in outcomes)
        if chosen is None or rejected is None:
            return {"status": "invalid", "reason": "the model gave no score"}
        verdict = "first" if chosen > rejected else "second" if chosen < rejected else "tie"
        return {
            "status": "ok",
            "verdict": verdict,
            "chosen_score": chosen,
            "rejected_score": rejected,
            "margin": chosen - rejected if math.isfinite(chosen - rejected) else None,
        }
    (only,) = outcomes
    if only.verdict is None:
        return {"status": "invalid", "reason": "the model gave no verdict"}
    if only.margin is not None and only.margin * {"first": 1, "tie": 0, "second": -1}[only.verdict] < 0:
        return {"status": "invalid", "reason": "the model's margin speaks against its verdict"}
    margin = only.margin if only.margin is None or order != "chosen-second" else -only.margin
    return {"status": "ok", "verdict": only.verdict, "margin": margin}


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

    def release(self, call: int) -> Iterator[int]:
        """The tasks that this answer completes."""
        self.answered[call] = True
        for task in self._waiting[self._begin[call] : self._begin[call + 1]]:
            self._missing[task] -= 1
            if self._missing[task] == 0:
                yield task

    def settle(self, task: int) -> Iterator[int]:
        """Yield the calls that no task waits for any more, now that the record of a task is made."""
        for call in self.calls_of(task):
            self._open[call] -= 1
            if self._open[call] == 0:
                yield call


def _plain(numbers: "NDArray[np.int64]") -> "array[int]":
    return array("q", numbers.astype(np.int64, copy=False).tobytes())
