"""The engine: asks what is not known yet, keeps each answer at once, writes a record when its calls are answered."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Protocol

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
        asker: Who asks it.
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
        """Knows what was computed."""
        self._cache = cache if card.reusable else None
        self.keep = append
        self.listener: RecordListener | None = None
        """Hears of each finished record."""
        self.budget = budget or Budget()
        """Knows what was spent."""
        self._read = read or verdict_fields
        self._outcomes: dict[str, Outcome] = {}
        self._cached: set[str] = set()
        self.asked = 0
        self.tokens = 0

    def execute(self, work: OpenWork) -> None:
        """Make every record of the work."""
        for record in work.unfit:
            self._finish(record)
        waiting = _Waiting(work.tasks)
        if self._cache is not None:
            for key, outcome in self._cache.find(list(work.calls)).items():
                self._cached.add(key)
                self._answer(key, self._priced(outcome), waiting)
        self._ask({key: view for key, view in work.calls.items() if key not in self._outcomes}, waiting)

    def _ask(self, calls: Mapping[str, View], waiting: "_Waiting") -> None:
        left = len(calls)
        if calls and self._card.price is not None and self._card.price.costs:
            self.budget.check()
        # Stopping early must cancel what is under way.
        with self.budget.metering(), closing(self.asker.ask(calls)) as answers:
            for key, outcome in answers:
                if key in self._outcomes:  # of a worker that was taken for dead
                    continue
                self._take(key, outcome, waiting)
                left -= 1
                self.budget.take(outcome.cost_usd, more=left > 0)
        for key in calls:
            if key not in self._outcomes:
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
            self._finish(self._record(task))

    def _finish(self, record: Record) -> None:
        self.keep(record)
        if self.listener is not None:
            self.listener(record, self.budget.spent_usd)

    def _record(self, task: RecordTask) -> Record:
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
            calls=tuple(self._use(key) for key in task.keys),
            **self._read(outcomes, task.order),
        )

    def _use(self, key: str) -> CallUse:
        outcome = self._outcomes[key]
        return CallUse(
            key=key,
            tokens_in=outcome.tokens_in,
            tokens_out=outcome.tokens_out,
            tokens_cached=outcome.tokens_cached,
            latency_ms=outcome.latency_ms,
            cost_usd=outcome.cost_usd,
            cached=key in self._cached,
        )


def verdict_fields(outcomes: Sequence[Outcome], order: str) -> Mapping[str, Any]:
    """What the outcomes of a pair's calls say: two scores are lifted to a verdict by their difference."""
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
    """Tasks by the calls they wait for."""

    def __init__(self, tasks: Sequence[RecordTask]) -> None:
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._missing: list[int] = []
        self._tasks = tasks
        for index, task in enumerate(tasks):
            distinct = set(task.keys)
            self._missing.append(len(distinct))
            for key in distinct:
                self._by_key[key].append(index)

    def release(self, key: str) -> Iterator[RecordTask]:
        """The tasks that this answer completes."""
        for index in self._by_key.pop(key, ()):
            self._missing[index] -= 1
            if self._missing[index] == 0:
                yield self._tasks[index]
