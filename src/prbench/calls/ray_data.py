"""The same shards on a Ray cluster: Ray Data's actors hold the model, and each shard's answers stream back as a row.

A shard that is under way on an actor or a node that dies is run again by Ray, which retries for ever; the ledger, an
actor beside the driver, sees to it that a shard that kills each actor is not. One row is one whole shard: a row
that was half sent could be sent again in another order, and answers would be lost.
"""

import contextlib
import logging
import os
import pickle
import sys
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

# No usage is reported, and lines from inside Ray do not come between our own.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
if "RAY_ADDRESS" not in os.environ:
    # Its name notwithstanding, this alone makes every part of a cluster of our own listen on the loopback device only.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

import ray
import ray.data
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from prbench.calls.ask import WorkerEfforts
from prbench.calls.attempts import Attempts, Decision, only_deaths
from prbench.calls.shards import Shard, View, cut, singles
from prbench.calls.worker import ModelOrigin, WorkerModel, WorkerReport, work_on
from prbench.calls.workers import cores, most_workers
from prbench.errors import ConfigError
from prbench.types import Outcome
from prbench.web import LOOPBACK

MOST_CALLS = 128
"""Largest number of calls in one shard. Its answers come all at once, so it is smaller than a shard for a worker that
sends them one by one."""
DIED = "the worker that was asked died"


class RayData(WorkerEfforts):
    """Asks on the cluster that RAY_ADDRESS names, else on one of its own that ends with the run.

    Args:
        origin: Which model, and where.
        workers: How many actors; None for as many as cores (or GPUs) and memory allow.
        weight_bytes: Size of the model's weights, if known.
    """

    def __init__(self, origin: ModelOrigin, workers: int | None, weight_bytes: int | None) -> None:
        super().__init__()
        self._origin = origin
        self._workers = workers
        self._weight_bytes = weight_bytes
        self._answered: set[str] = set()

    def ask(self, calls: Mapping[str, View]) -> Generator[tuple[str, Outcome]]:
        """Cut the calls into shards and yield outcomes shard by shard; closing it stops the actors."""
        if not calls:
            return
        with _quiet(), _cluster():
            pool = _pool(self._workers, self._weight_bytes, self._origin.options.device)
            ledger = _ledger(pool.actors)
            origin = self._origin._replace(threads=pool.threads)
            shards = cut(calls, pool.actors, MOST_CALLS)
            again: list[Shard] = []
            for shard, reports in _stream(shards, origin, pool, ledger):
                yield from self._take(shard, reports, again)
            alone = [call for shard in again for call in shard.without(self._answered).calls]
            for shard, reports in _stream(singles(alone, len(shards)), origin, pool, ledger):
                yield from self._take(shard, reports, again)
            self.replaced = ray.get(ledger.count.remote())

    def _take(self, shard: Shard, reports: Sequence[WorkerReport], again: list[Shard]) -> Iterator[tuple[str, Outcome]]:
        """Pass on a shard's answers; where it has none, its calls are to be asked one by one, or have failed."""
        for report in reports:
            self.add(report.tally)
            self._answered.update(key for key, _ in report.answers)
            yield from report.answers
        last = reports[-1]
        if last.error is not None and (last.kind == "broken" or not self._answered):
            raise last.error
        if last.kind != "done" and shard.whole:
            again.append(shard)
        elif last.kind != "done":
            reason = DIED if last.error is None else getattr(last.error, "message", str(last.error))
            yield shard.calls[0][0], Outcome.failed(reason)


class ShardActor:
    """Actor of the Ray cluster that answers one shard per row."""

    def __init__(self, origin: ModelOrigin, ledger: Any) -> None:
        self._model = WorkerModel(origin)
        self._address = origin.address
        self._ledger = ledger

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Answer a shard, unless too many have died of it."""
        shard: Shard = pickle.loads(row["shard"])  # noqa: S301 - written by our own driver
        reports: list[WorkerReport] = []
        decision = ray.get(self._ledger.begin.remote(shard.number, shard.whole))
        if decision == "go":
            reports.append(work_on(self._model, shard, reports.append))
            ray.get(self._ledger.end.remote(shard.number, reports[-1].kind == "done"))
        elif decision == "hopeless":
            reports.append(WorkerReport("broken", error=only_deaths(self._address, "was an actor of Ray")))
        else:
            reports.append(WorkerReport("given up"))
        return {"number": shard.number, "reports": pickle.dumps(reports)}


class ShardLedger:
    """Knows which shards were begun and not ended: begun again, their actor has died."""

    def __init__(self, workers: int) -> None:
        self._attempts = Attempts(workers)
        self._open: set[int] = set()
        self._deaths = 0

    def begin(self, shard: int, whole: bool) -> Decision | Literal["hopeless"]:
        """Whether a shard may be tried once more."""
        if shard in self._open:
            self._deaths += 1
            self._attempts.died()
        self._open.add(shard)
        return "hopeless" if self._attempts.hopeless else self._attempts.begin(shard, whole=whole)

    def end(self, shard: int, answered: bool) -> None:
        """A shard is answered, or was refused by a model that lives; Ray asks again if its answers are lost."""
        self._open.discard(shard)
        self._attempts.ended(shard)
        if answered:
            self._attempts.answered()

    def count(self) -> int:
        """Actors that died in the middle of a shard."""
        return self._deaths


class _ActorPool(NamedTuple):
    """Placement of the model's copies on the cluster."""

    actors: int
    threads: int
    gpus: int
    """Number of GPUs of each actor."""


def _pool(workers: int | None, weight_bytes: int | None, device: str) -> _ActorPool:
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    if gpus and device != "cpu":
        return _ActorPool(min(workers or gpus, gpus), 1, 1)
    node_cores = [int(node.get("CPU", 0)) for node in nodes]
    if not any(node_cores):
        raise ConfigError("the Ray cluster has no cores to work on", hint="`ray status` shows what its nodes offer")
    memory = sum(int(node.get("memory", 0)) for node in nodes)
    wanted = workers or most_workers(sum(node_cores), memory, weight_bytes)
    threads = share_of(wanted, node_cores)
    return _ActorPool(min(wanted, sum(node // threads for node in node_cores)), threads, 0)


def share_of(workers: int, node_cores: Sequence[int]) -> int:
    """The most cores that each of so many workers can have, none of them on two nodes.

    Example:
        >>> share_of(3, [8, 8]), share_of(4, [8, 8]), share_of(99, [8, 8])
        (4, 4, 1)
    """
    shares = range(max(node_cores, default=1), 0, -1)
    return next((share for share in shares if sum(node // share for node in node_cores) >= workers), 1)


def _ledger(workers: int) -> Any:
    """Start the ledger on the driver's own node: where that dies, the run ends anyway."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(ShardLedger).options(num_cpus=0, scheduling_strategy=here).remote(workers)


def _stream(
    shards: Sequence[Shard], origin: ModelOrigin, pool: _ActorPool, ledger: Any
) -> Iterator[tuple[Shard, Sequence[WorkerReport]]]:
    """Run the shards through the actors; yields each with what was reported of it, as they finish."""
    if not shards:
        return
    by_number = {shard.number: shard for shard in shards}
    rows = [{"shard": pickle.dumps(shard)} for shard in shards]
    with ray.data.DataContext.current(_context()):
        answered = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
            ShardActor,
            fn_constructor_args=(origin, ledger),
            compute=ray.data.ActorPoolStrategy(size=min(pool.actors, len(rows))),
            num_cpus=None if pool.gpus else pool.threads,
            num_gpus=pool.gpus or None,
        )
        with contextlib.closing(iter(answered.iter_batches(batch_size=None, prefetch_batches=0))) as batches:
            for batch in batches:
                for number, reports in zip(batch["number"], batch["reports"], strict=True):
                    yield by_number[int(number)], pickle.loads(reports)  # noqa: S301 - written by our own actors


def _context() -> Any:
    context = ray.data.DataContext.get_current().copy()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_no_progress_timeout_s = -1  # a large model takes its time
    return context


@contextlib.contextmanager
def _cluster() -> Iterator[None]:
    """Connect to the cluster that is there, else start one that ends with the run and that no other user can reach."""
    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS")
    own = {"num_cpus": cores(), "include_dashboard": False, "_node_ip_address": LOOPBACK}
    try:
        ray.init(
            address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **({} if address else own)
        )
    except Exception as error:  # a node that starts too slowly is a bare Exception in Ray
        raise ConfigError(
            f"Ray at {address or 'this machine'} cannot be used: {error}",
            hint="RAY_ADDRESS names a running cluster as HOST:PORT; without it one is started here",
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Ray's own warnings and progress from our lines, and what it prints of dead nodes from standard output."""
    logger = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
