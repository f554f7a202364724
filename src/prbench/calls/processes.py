"""Several worker processes on this machine: each holds the model, none takes another's cores.

The parent hands out shards and alone writes. A worker that dies is replaced, and what it had not answered is asked
again; `attempts` says how often. What was answered is not asked again. A worker that was stopped (SIGSTOP) and not
continued for a while is ended, and then is a worker that died.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from prbench.calls.ask import WorkerEfforts
from prbench.calls.attempts import Attempts, only_deaths
from prbench.calls.shards import Shard, View, cut, singles
from prbench.calls.worker import THREAD_VARIABLES, ModelOrigin, WorkerReport
from prbench.errors import ConfigError
from prbench.types import Outcome

_GONE = (EOFError, OSError)
"""Errors of a connection whose other end has died, perhaps in the middle of a message."""
_END_SECONDS = 5.0
FROZEN_SECONDS = 10.0
"""Seconds that a worker may stand still before it is ended: it may have been stopped for a moment only."""


class WorkerProcesses(WorkerEfforts):
    """Asker that uses several processes.

    Args:
        origin: Which model, and where.
        workers: Number of processes.
    """

    def __init__(self, origin: ModelOrigin, workers: int) -> None:
        super().__init__()
        if os.name != "posix":
            raise ConfigError("worker processes need a POSIX system", hint="--workers 1, or --engine ray")
        self._origin = origin
        self._workers = workers

    def ask(self, calls: Mapping[str, View]) -> Generator[tuple[str, Outcome]]:
        """Cut the calls into shards and yield outcomes as workers send them; closing it ends all workers."""
        pool = _WorkerPool(self._origin, self._workers, deque(cut(calls, self._workers)), self)
        try:
            yield from pool.run()
        finally:
            pool.clear()


class _WorkerPool:
    """Workers, and the shards that wait for one."""

    def __init__(self, origin: ModelOrigin, size: int, waiting: deque[Shard], tallies: WorkerEfforts) -> None:
        self._origin = origin
        self._size = size
        self._waiting = waiting
        self._tallies = tallies
        self._next_number = len(waiting)
        self._attempts = Attempts(size)
        self._answered = False
        self._reasons: dict[int, str] = {}
        """Reason why each shard came back."""
        self._workers: list[_WorkerProcess] = []
        self._cleared = threading.Event()
        # In a thread, because a worker that stops in the middle of a message keeps `recv` waiting.
        threading.Thread(target=self._watch, daemon=True).start()

    def run(self) -> Iterator[tuple[str, Outcome]]:
        """Until every shard is answered or given up."""
        while True:
            self._start_workers()
            yield from self._assign()
            if not self._waiting and not self._busy:
                return
            heard = set(wait([worker.connection for worker in self._workers]))
            for worker in [worker for worker in self._workers if worker.connection in heard]:
                yield from self._listen(worker)

    def clear(self) -> None:
        """End all workers: those that are in the middle of something at once."""
        self._cleared.set()
        for worker in self._workers:
            worker.dismiss()
        for worker in self._workers:
            worker.wait()

    def _watch(self) -> None:
        while not self._cleared.wait(FROZEN_SECONDS / 5):
            for worker in tuple(self._workers):
                worker.end_if_frozen()

    @property
    def _busy(self) -> int:
        return sum(worker.shard is not None for worker in self._workers)

    def _start_workers(self) -> None:
        while len(self._workers) < min(self._size, self._busy + len(self._waiting)):
            self._workers.append(_WorkerProcess(self._origin))

    def _assign(self) -> Iterator[tuple[str, Outcome]]:
        for worker in [worker for worker in self._workers if worker.ready]:
            while self._waiting and worker.shard is None:
                yield from self._begin(self._waiting.popleft(), worker)

    def _begin(self, shard: Shard, worker: "_WorkerProcess") -> Iterator[tuple[str, Outcome]]:
        decision = self._attempts.begin(shard.number, whole=shard.whole)
        if decision == "go":
            worker.take(shard)
        elif decision == "split":
            self._waiting += singles(shard.calls, self._next_number)
            self._next_number += len(shard.calls)
        else:
            yield from ((key, Outcome.failed(self._reasons[shard.number])) for key, _ in shard.calls)

    def _listen(self, worker: "_WorkerProcess") -> Iterator[tuple[str, Outcome]]:
        try:
            report: WorkerReport = worker.connection.recv()
        except _GONE:
            self._replace(worker)
            return
        self._tallies.add(report.tally)
        if report.answers:
            self._answered = True
            self._attempts.answered()
            worker.answered(report.answers)
            yield from report.answers
        if report.kind == "broken" and report.error is not None:
            raise report.error
        if report.kind == "refused" and report.error is not None:
            self._refused(worker, report.error)
        worker.ready = report.kind == "ready"
        if report.kind == "done":
            worker.shard = None

    def _refused(self, worker: "_WorkerProcess", error: BaseException) -> None:
        """A model that raises at its first call is wrong, unless others answer: then only these calls are."""
        if not self._answered:
            raise error
        self._take_back(worker, getattr(error, "message", str(error)))

    def _replace(self, worker: "_WorkerProcess") -> None:
        self._workers.remove(worker)
        last_words = worker.wait()
        self._tallies.replaced += 1
        self._tallies.frozen += worker.frozen
        self._attempts.died()
        self._take_back(worker, f"the worker process that was asked {last_words}")
        if self._attempts.hopeless:
            raise only_deaths(self._origin.address, last_words)

    def _take_back(self, worker: "_WorkerProcess", reason: str) -> None:
        if worker.shard is not None and worker.shard.calls:
            self._reasons[worker.shard.number] = reason
            self._waiting.append(worker.shard)
        worker.shard = None


class _WorkerProcess:
    """One process, and the shard it works on."""

    def __init__(self, origin: ModelOrigin) -> None:
        self.connection: Connection[Any, Any]
        self.connection, theirs = Pipe()
        threads = {variable: str(origin.threads) for variable in THREAD_VARIABLES}
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, with code of our own
            [sys.executable, "-P", "-c", f"from prbench.calls.worker import main; main({theirs.fileno()})"],
            env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(origin.path)},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            process_group=0,  # Ctrl-C reaches the parent alone, which then ends its workers
        )
        theirs.close()
        self.shard: Shard | None = None
        self.ready = False
        """Whether it waits for a shard, so that sending one does not block."""
        self.frozen = False
        """Whether it was ended because it stood still."""
        self._stopped_at: float | None = None
        with suppress(*_GONE):  # a worker that is gone already is heard of in `recv`
            self.connection.send(origin)

    def take(self, shard: Shard) -> None:
        """Begin to answer a shard."""
        self.shard = shard
        self.ready = False
        with suppress(*_GONE):
            self.connection.send(shard)

    def answered(self, answers: tuple[tuple[str, Outcome], ...]) -> None:
        """Note what need not be asked again."""
        if self.shard is not None:
            self.shard = self.shard.without({key for key, _ in answers})

    def end_if_frozen(self) -> None:
        """End it where it has been stopped for too long; its connection then breaks, as of any worker that dies."""
        if not self._is_stopped():
            self._stopped_at = None
        elif self._stopped_at is None:
            self._stopped_at = time.monotonic()
        elif time.monotonic() - self._stopped_at >= FROZEN_SECONDS:
            self.frozen = True
            self._process.kill()

    def _is_stopped(self) -> bool:
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return False
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # it has ended and was waited for
            return False

    def dismiss(self) -> None:
        """Tell it to end: at once where it is in the middle of something."""
        if self.shard is not None or not self.ready:
            self._process.kill()
        self.connection.close()

    def wait(self) -> str:
        """Wait for its end; returns how it ended."""
        self.connection.close()
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if self.frozen:
            return f"stood still (SIGSTOP) for {FROZEN_SECONDS:.0f} s and was ended"
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
