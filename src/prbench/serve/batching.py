"""The queue between many requests and one model: a thread of its own asks the model, a batch at a time.

A batch is closed when it is full, or when its first item has waited long enough. Short work goes before long work, and
a batch lasts about two seconds where its items can be parted, so that a client with small texts waits for no more than
the batch under way; one batch in four begins with the oldest request. What cannot be done before its deadline is
refused rather than begun. Equal inputs in a batch are asked once. A model that raises on a batch is asked again item by
item, so that one bad item costs no other item its score. What was accepted is answered, also while the server drains.
"""

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from prbench.models import Rater
from prbench.serve.gathering import Waiting, load_of, next_batch, waiting_of
from prbench.serve.items import ItemError, Scored, ScoreItem, TooManyError
from prbench.serve.jobs import Entry, Job, discreet, logged, read
from prbench.serve.metrics import Metrics
from prbench.serve.pace import USUAL, Pace, Rates, keeps_texts
from prbench.types import AnswerView, Outcome

Result = TypeVar("Result")
_LOG = logging.getLogger(__name__)
_LONGEST_WAIT_S = 30
"""The most that a refused client is asked to wait."""
_BATCH_S = 2.0
"""Seconds that a batch should last, as far as that can be chosen."""
_OLDEST_EVERY = 4
"""One batch in so many begins with the oldest request, however long it is."""
Show = Callable[[Sequence[ScoreItem]], Sequence[AnswerView | ItemError]]
Cost = Callable[[ScoreItem], Waiting]


class QueueLimits(NamedTuple):
    """Limits on the size of batches and on the number of items that may wait."""

    max_batch: int = 32
    max_wait_s: float = 0.010
    max_queue: int = 4096
    """Items and chores that may wait; a request that would not fit is refused whole."""
    deadline_s: float = 120.0
    """The longest that a request may take; one that says less gets less."""


class OverloadedError(Exception):
    """The queue is full, or the server drains."""


class Batcher:
    """Owner of the model: nothing else may ask it, or change what it knows of a user.

    Args:
        model: Model that scores.
        show: Makes views of a request's items; called in the model's thread only.
        limits: Limits of batches and queue.
        metrics: Counts.
        cost: Function that gives the cost of an item.
        guess: How fast the model is taken to be before it was asked.
    """

    def __init__(
        self,
        model: Rater,
        show: Show,
        limits: QueueLimits,
        metrics: Metrics,
        cost: Cost = waiting_of,
        guess: Rates = USUAL,
    ) -> None:
        self._model = model
        self._show = show
        self._cost = cost
        self._limits = limits
        self._metrics = metrics
        self._queue: deque[Entry] = deque()
        self._chores: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._changed = threading.Condition()
        self._busy = False
        self._draining = self._stopped = False
        self.abandoned = 0
        """Items and chores that were accepted and given up."""
        self._asked, self._asking_s = 0, 0.0
        self._turn = 0
        self._busy_until = 0.0
        """Time when the batch under way should be done, as far as that can be told."""
        self._pace = Pace(guess)
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)
        self._thread.start()

    @property
    def depth(self) -> int:
        """Number of items that wait."""
        return len(self._queue)

    @property
    def most_together(self) -> int:
        """Answers that may be asked about at once."""
        return self._limits.max_batch

    @property
    def retry_after_s(self) -> int:
        """Seconds until what waits now will be answered, as far as can be told."""
        seconds = self.depth * self._asking_s / self._asked if self._asked else 0.0
        return min(max(1, math.ceil(seconds)), _LONGEST_WAIT_S)

    @property
    def draining(self) -> bool:
        """Whether nothing more is accepted."""
        return self._draining

    @property
    def alive(self) -> bool:
        """Whether the model's thread still runs."""
        return self._thread.is_alive()

    @property
    def idle(self) -> bool:
        """Whether everything accepted has been answered."""
        with self._changed:
            return not (self._queue or self._chores or self._busy)

    async def score(self, items: Sequence[ScoreItem], within_s: float | None = None) -> list[Scored]:
        """Score a request's items, in their order; cancelling it takes what still waits out of the queue.

        Args:
            items: Items of one request.
            within_s: How long the client waits, where it said so.

        Raises:
            TooManyError: If the request could never be answered in time.
            OverloadedError: If it cannot be now.
        """
        if len(items) > self._limits.max_queue:
            raise TooManyError(f"the request has more than {self._limits.max_queue} items, the most that may wait")
        now = time.monotonic()
        allowed_s = min(self._limits.deadline_s, within_s or math.inf)
        job = Job(items, [self._cost(item) for item in items], now, now + allowed_s)
        with self._changed:
            self._check_room(len(items))
            self._check_time(job, allowed_s)
            self._queue.extend((job, place) for place in range(len(items)))
            self._changed.notify_all()
        return await asyncio.wrap_future(job.done)

    async def call(self, chore: Callable[[], Result]) -> Result:
        """Run something in the model's thread, between batches."""
        done: Future[Result] = Future()
        with self._changed:
            self._check_room(1)
            self._chores.append((done, chore))
            self._changed.notify_all()
        return await asyncio.wrap_future(done)

    def forget(self) -> None:
        """Forget which texts were met; in the model's thread."""
        self._pace.forget()

    def _check_room(self, count: int) -> None:
        """Refuse what would not fit; with the lock held."""
        if self._draining:
            raise OverloadedError("the server is stopping")
        waiting = len(self._queue) + len(self._chores)
        if waiting + count > self._limits.max_queue:
            raise OverloadedError(f"{waiting} items are waiting, {self._limits.max_queue} are allowed")

    def _check_time(self, job: Job, allowed_s: float) -> None:
        """Refuse what cannot be done in time, as far as the model's speed is known; with the lock held."""
        if not self._pace.known:
            return
        alone_s = self._pace.seconds(*job.left)
        if alone_s > allowed_s:
            raise TooManyError(
                f"the request would take about {alone_s:.0f} s, and it may take {allowed_s:.0f} s: "
                "send fewer or shorter items"
            )
        jobs = {id(other): other for other, _ in self._queue}.values()
        under_way_s = max(0.0, self._busy_until - job.arrived)
        lasting = (self._pace.seconds(*other.left) for other in jobs)
        before_s = under_way_s + sum(other_s for other_s in lasting if other_s <= alone_s)
        if before_s + alone_s > allowed_s:
            raise OverloadedError(f"what comes first takes about {before_s:.0f} s, too long for this request")

    def drain(self) -> None:
        """Accept nothing more; what was accepted is still answered."""
        with self._changed:
            self._draining = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """Drain, and give up what still waits."""
        self.drain()
        with self._changed:
            self.abandoned += len(self._queue) + len(self._chores)
            for job, _ in self._queue:
                job.done.cancel()
            for done, _ in self._chores:
                if done.set_running_or_notify_cancel():
                    done.set_exception(OverloadedError("the server has stopped"))
            self._queue.clear()
            self._chores.clear()

    def stop(self, timeout_s: float | None = None) -> None:
        """Drain, answer what waits, end the thread."""
        self.drain()
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join(timeout_s)

    def _work(self) -> None:
        try:
            self._work_until_stopped()
        except BaseException as error:  # no request would be answered any more: they are told so
            _LOG.critical("the model's thread has ended", exc_info=error)
            self._busy = False
            self.abandon()

    def _work_until_stopped(self) -> None:
        while self._await_work():
            self._do_a_chore()
            if batch := self._collect():
                self._metrics.batches.observe(len(batch))
                began = time.perf_counter()
                self._answer_all(batch)
                self._learn_pace([job.waiting[place] for job, place in batch], time.perf_counter() - began)

    def _learn_pace(self, batch: Sequence[Waiting], took_s: float) -> None:
        """Learn from a batch, unless half of it or more was met lately and may have been kept."""
        fresh = [one for one in batch if self._pace.fresh((one.question, one.answer))]
        shared = {(one.user, one.question): one.shared for one in batch}
        new = sum(one.own for one in fresh) + sum(cost for key, cost in shared.items() if self._pace.fresh(key))
        load = load_of(batch)
        if new > sum(load) / 2 or not keeps_texts(self._model):
            self._pace.learn(*load, took_s)

    def _await_work(self) -> bool:
        with self._changed:
            self._busy = False
            while not (self._queue or self._chores):
                if self._stopped:
                    return False
                self._changed.wait()
            self._busy = True
            return True

    def _do_a_chore(self) -> None:
        """Do one chore only: scores do not wait for all that was judged, nor the other way round."""
        with self._changed:
            if not self._chores:
                return
            done, chore = self._chores.popleft()
        if done.set_running_or_notify_cancel():
            _settle(done, chore)

    def _collect(self) -> list[Entry]:
        """Wait until a batch is full or its first item has waited long enough; take it."""
        with self._changed:
            self._wait_for_company()
            self._queue = deque(self._alive())
            waiting = self._in_turn()
            costs = [self._in_seconds(job.waiting[place]) for job, place in waiting]
            chosen = next_batch(costs, self._limits.max_batch, _BATCH_S)
            batch = [waiting[place] for place in chosen]
            taken = {(id(job), place) for job, place in batch}
            self._queue = deque(entry for entry in self._queue if (id(entry[0]), entry[1]) not in taken)
            for job, place in batch:
                job.left = job.left._replace(own=job.left.own - job.waiting[place].own)
            if self._pace.known:
                lasting_s = self._pace.seconds(*load_of([job.waiting[place] for job, place in batch]))
                self._busy_until = time.monotonic() + lasting_s
        return batch

    def _alive(self) -> Iterator[Entry]:
        """Yield the waiting items in the order of arrival, without those given up; one that is too late is told so."""
        now = time.monotonic()
        for entry in self._queue:
            job = entry[0]
            if now > job.deadline and not job.done.done() and job.done.set_running_or_notify_cancel():
                job.done.set_exception(OverloadedError("the request was not reached before its deadline"))
            if not job.done.done():
                yield entry

    def _in_turn(self) -> list[Entry]:
        """Return candidates for the next batch: short requests first, part of the oldest in every fourth batch."""
        self._turn += 1
        in_turn = sorted(self._queue, key=lambda entry: self._pace.seconds(*entry[0].left))
        if self._turn % _OLDEST_EVERY or not in_turn:
            return in_turn
        oldest = self._queue[0][0]
        part = [entry for entry in in_turn if entry[0] is oldest][: max(1, self._limits.max_batch // 2)]
        return part + [entry for entry in in_turn if entry[0] is not oldest]

    def _in_seconds(self, one: Waiting) -> Waiting:
        return one._replace(own=self._pace.seconds(one.own, 0), shared=self._pace.seconds(0, one.shared))

    def _wait_for_company(self) -> None:
        while self._queue and len(self._queue) < self._limits.max_batch and not self._draining:
            left = self._queue[0][0].arrived + self._limits.max_wait_s - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)

    def _answer_all(self, batch: Sequence[Entry]) -> None:
        """Answer a batch, whatever happens: an item without an answer would keep its client waiting for ever."""
        try:
            self._answer(batch)
        except BaseException as error:  # a model that breaks its protocol, or calls exit()
            said = logged(error)
            for job, place in batch:
                if place not in job.results:
                    job.settle(place, ItemError("failed", said))

    def _answer(self, batch: Sequence[Entry]) -> None:
        asked: list[tuple[Entry, AnswerView]] = []
        for entry in batch:
            view = self._view(*entry)
            if isinstance(view, ItemError):
                entry[0].settle(entry[1], view)
            else:
                asked.append((entry, view))
        outcomes = self._rate([view for _, view in asked])
        for ((job, place), _), outcome in zip(asked, outcomes, strict=True):
            job.settle(place, read(outcome))

    def _view(self, job: Job, place: int) -> AnswerView | ItemError:
        if place not in job.shown:
            places = job.beside(place)
            try:
                views = self._show([job.items[other] for other in places])
            except Exception as error:  # a template or a tokenizer that breaks on this text
                views = [ItemError("failed", logged(error))] * len(places)
            job.shown.update(zip(places, views, strict=True))
        return job.shown[place]

    def _rate(self, views: Sequence[AnswerView]) -> list[Outcome]:
        """Ask each distinct view once; every view gets an outcome."""
        same = self._model.card.deterministic
        keys = [view if same else place for place, view in enumerate(views)]
        distinct = dict(zip(keys, views, strict=True))
        self._metrics.shared.inc(len(views) - len(distinct))
        found = dict(zip(distinct, self._ask(list(distinct.values())), strict=True)) if distinct else {}
        return [found[key] for key in keys]

    def _ask(self, views: Sequence[AnswerView]) -> list[Outcome]:
        outcomes = [Outcome.failed("the model gave no outcome")] * len(views)
        began = time.perf_counter()
        try:
            for place, outcome in self._model.rate(views):
                outcomes[place] = discreet(outcome)
        except Exception as error:
            if len(views) > 1:
                return [outcome for view in views for outcome in self._ask([view])]
            return [Outcome.failed(logged(error))]
        finally:
            took_s = time.perf_counter() - began
            self._metrics.model_seconds.observe(took_s)
            self._asked, self._asking_s = self._asked + len(views), self._asking_s + took_s
        return outcomes


def _settle(done: Future[Any], chore: Callable[[], Any]) -> None:
    try:
        done.set_result(chore())
    except Exception as error:
        done.set_exception(error)
    except BaseException as error:  # a model that calls exit(): handed on as it is, it would end the server's loop
        failed = RuntimeError(f"the model raised {type(error).__name__}")
        failed.__cause__ = error
        done.set_exception(failed)
