"""Many awaitable jobs, a bounded number at a time, read from ordinary code as they finish.

The jobs run on an event loop of their own in a background thread, so the caller may be in a notebook or in a loop
itself. They run ahead of the caller by a bounded number of results, so that a caller who stops for money has not paid
for the rest. Closing the iterator cancels what is under way and waits until the thread has ended. A job that is refused
for money ends the stream only after those that are under way: what is paid for is handed over.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from queue import SimpleQueue
from typing import Generic, NamedTuple, TypeVar

from prbench.errors import BudgetError

Session = TypeVar("Session")
T = TypeVar("T")


class _Error(NamedTuple):
    error: BaseException


class _Crew(Generic[Session, T]):
    """The background side: workers that take the next index, do the job and hand over the result."""

    def __init__(
        self,
        count: int,
        job: Callable[[Session, int], Awaitable[T]],
        open_session: Callable[[], AbstractAsyncContextManager[Session]],
        concurrency: int,
    ) -> None:
        self.results: SimpleQueue[tuple[int, T] | _Error] = SimpleQueue()
        self._indices = iter(range(count))
        self._refusal: BudgetError | None = None
        self._job = job
        self._open_session = open_session
        self._workers = min(concurrency, count)
        self._room = asyncio.Semaphore(2 * concurrency)
        self._stop = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="prbench-requests", daemon=True)
        self._thread.start()

    def taken(self) -> None:
        """Make room for one more result."""
        self._loop.call_soon_threadsafe(self._room.release)

    def dismiss(self) -> None:
        """Cancel what is under way and wait for the end."""
        with suppress(RuntimeError):  # the loop is closed already if the session could not be opened
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # handed to the caller, who raises it
            self.results.put(_Error(error))

    async def _serve(self) -> None:
        async with self._open_session() as session:
            workers = [asyncio.create_task(self._work(session)) for _ in range(self._workers)]
            done = asyncio.create_task(self._tell_refusal(workers))
            await self._stop.wait()
            for task in (*workers, done):
                task.cancel()
            await asyncio.gather(*workers, done, return_exceptions=True)

    async def _tell_refusal(self, workers: Sequence[asyncio.Task[None]]) -> None:
        await asyncio.gather(*workers, return_exceptions=True)
        if self._refusal is not None:
            self.results.put(_Error(self._refusal))

    async def _work(self, session: Session) -> None:
        try:
            for index in self._indices:
                await self._room.acquire()
                self.results.put((index, await self._job(session, index)))
        except BudgetError as error:
            self._refusal = error
        except Exception as error:  # handed to the caller, who raises it
            self.results.put(_Error(error))


def stream(
    count: int,
    job: Callable[[Session, int], Awaitable[T]],
    open_session: Callable[[], AbstractAsyncContextManager[Session]],
    concurrency: int,
) -> Generator[tuple[int, T]]:
    """Do `job(session, index)` for every index below `count`; yield `(index, result)` as they finish.

    Args:
        count: How many jobs there are.
        job: One job. What it raises is raised here, and ends the stream.
        open_session: What all jobs share, opened and closed on the loop.
        concurrency: The most jobs under way at any moment.

    Example:
        >>> from contextlib import nullcontext
        >>> async def double(_: None, index: int) -> int:
        ...     return 2 * index
        >>> sorted(stream(3, double, nullcontext, concurrency=2))
        [(0, 0), (1, 2), (2, 4)]
    """
    if count == 0:
        return
    crew = _Crew(count, job, open_session, concurrency)
    try:
        for _ in range(count):
            result = crew.results.get()
            if isinstance(result, _Error):
                raise result.error
            crew.taken()
            yield result
    finally:
        crew.dismiss()
