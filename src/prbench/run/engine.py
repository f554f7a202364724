"""The engine: asks what is not known yet, keeps each answer at once, writes a record when its calls are answered."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Protocol

import numpy as np

from prbench.calls import Asker, Budget, CallCache, View
from prbench.config import Price
from prbench.models import ModelCard
from prbench.run.work import OpenWork, RecordTask
from prbench.types import CallUse, Outcome, Record


class RecordListener(Protocol):
    """Hears of every record as it is made."""

    def __call__(self, record: Record, spent_usd: float) -> None:
        """One more record, and what was spent so far in this process."""
        ...


class Engine:
    """Executes a run's open work.

    Args:
        card: Of the model that is asked.
        asker: Asker of the model.
        cache: Answers of earlier runs; None asks everything anew.
        append: Takes each finished record.
        budget: Counts what is spent, and stops resumably at its limit.
        read: What the outcomes behind a record come to, by the order that was shown.
    """

    def __init__(
        self,
        card: ModelCard,
        asker: Asker,
        cache: CallCache | None,
        append: Callable[[Record], None],
        budget: Budget | None = None,
        read: Callable[[Sequence[Outcome], str], Mapping[str, Any]] | None = None,
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
        self._outcomes: dict[str, Outcome] = {}
        """Answers that some record still waits for."""
        self.asked = 0
        self.tokens = 0

    def execute(self, work: OpenWork) -> None:
        """Make every record of the work."""
        for record in work.unfit:
            self._finish(record)
        waiting = _Waiting(work)
        if self._cache is not None:
            for key, outcome in self._cache.look_up(list(work.calls)):
                waiting.cached[work.calls.number(key)] = True
                self._answer(key, self._priced(outcome), waiting)
        self._ask(work.calls.without(waiting.answered), waiting)

    def _ask(self, calls: Mapping[str, View], waiting: "_Waiting") -> None:
        left = len(calls)
        if calls and self._card.price is not None and self._card.price.costs:
            self.budget.check()
        # Stopping early must cancel what is under way.
        with self.budget.metering(), closing(self.asker.ask(calls)) as answers:
            for key, outcome in answers:
                if waiting.is_answered(key):  # of a worker that was taken for dead
                    continue
                self._take(key, outcome, waiting)
                left -= 1
                self.budget.take(outcome.cost_usd, more=left > 0)
        for key in calls:
            if not waiting.is_answered(key):
                self._answer(key, Outcome.failed("the model gave no outcome"), waiting)

    def _take(self, key: str, outcome: Outcome, waiting: "_Waiting") -> None:
        self.asked += 1
        self.tokens += outcome.tokens_in + outcome.tokens_out
        if self._cache is not None:
            self._cache.keep(key, outcome, at_once=outcome.cost_usd > 0 or bool(outcome.raw))
        self._answer(key, outcome, waiting)

    def _priced(self, outcome: Outcome) -> Outcome:
        """An answer from an earlier run at today's price."""
        price = self._card.price
        if price is None:
            return outcome
        return outcome.model_copy(update={"cost_usd": _cost(price, outcome)})

    def _answer(self, key: str, outcome: Outcome, waiting: "_Waiting") -> None:
        self._outcomes[key] = outcome
        for task in waiting.release(key):
            self._finish(self._record(task, waiting))
            for used in waiting.settle(task):
                del self._outcomes[used]

    def _finish(self, record: Record) -> None:
        self.keep(record)
        if self.listener is not None:
            self.listener(record, self.budget.spent_usd)

    def _record(self, task: RecordTask, waiting: "_Waiting") -> Record:
        outcomes = [self._outcomes[key] for key in task.keys]
        return Record(
            pair=task.pair,
            context=task.context,
            order=task.order,
            repeat=task.repeat,
            shown_user=task.shown_user,
            posts=task.posts,
            dropped=task.dropped,
            raw=tuple(outcome.raw for outcome in outcomes if outcome.raw),
            calls=tuple(self._use(key, waiting.is_cached(key)) for key in task.keys),
            **self._read(outcomes, task.order),
        )

    def _use(self, key: str, cached: bool) -> CallUse:
        outcome = self._outcomes[key]
        return CallUse(
            key=key,
            tokens_in=outcome.tokens_in,
            tokens_out=outcome.tokens_out,
            tokens_cached=outcome.tokens_cached,
            latency_ms=outcome.latency_ms,
            cost_usd=outcome.cost_usd,
            cached=cached,
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
    """Tasks by the calls they wait for; calls by their numbers, in arrays."""

    def __init__(self, work: OpenWork) -> None:
        self._calls, self._tasks = work.calls, work.tasks
        number = work.calls.number
        self._missing = np.array([len(keys) for keys in work.tasks.keys], dtype=np.int64)
        wanted = np.array([number(key) for keys in work.tasks.keys for key in keys], dtype=np.int64)
        order = np.argsort(wanted, kind="stable")
        self._waiting = np.repeat(np.arange(len(self._missing)), self._missing)[order]
        """Tasks, sorted by the call that they wait for."""
        self._open = np.bincount(wanted, minlength=len(work.calls))
        """Number of records of each call that are not made yet."""
        self._begin = np.concatenate([[0], np.cumsum(self._open)])
        self.answered = bytearray(len(work.calls))
        self.cached = bytearray(len(work.calls))

    def is_answered(self, key: str) -> bool:
        """Whether a call was answered."""
        return bool(self.answered[self._calls.number(key)])

    def is_cached(self, key: str) -> bool:
        """Whether the answer was there already from an earlier run."""
        return bool(self.cached[self._calls.number(key)])

    def release(self, key: str) -> Iterator[RecordTask]:
        """The tasks that this answer completes."""
        number = self._calls.number(key)
        self.answered[number] = True
        for place in self._waiting[self._begin[number] : self._begin[number + 1]].tolist():
            self._missing[place] -= 1
            if self._missing[place] == 0:
                yield self._tasks[place]

    def settle(self, task: RecordTask) -> Iterator[str]:
        """Yield the calls that no task waits for any more, now that the record of a task is made."""
        for key in task.keys:
            number = self._calls.number(key)
            self._open[number] -= 1
            if self._open[number] == 0:
                yield key
