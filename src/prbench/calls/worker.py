"""Inside a worker: the model is opened by its address, and shards of calls are answered.

A worker process takes shards from a connection, sends outcomes back and ends with its parent. It is started as
`python -c` and not by `multiprocessing`, which would run the user's own script again in every worker. A worker that
would open another model than the run's (other weights in a folder of the same name, other code) is refused: its answers
would be kept under keys that are not theirs.
"""

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, NamedTuple, Self

from prbench.calls.ask import WorkerEffort, effort_of, reply
from prbench.calls.shards import Shard, View
from prbench.config import ModelOptions, digest
from prbench.errors import ModelError, PrbenchError
from prbench.models import Effort, Model, Noted, Paced, Preparable, load_model
from prbench.types import Outcome

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class ModelOrigin(NamedTuple):
    """Facts that a worker needs to open the model as this process did."""

    address: str
    options: ModelOptions
    identity: str
    """Hash over the identity of the model's card, which the worker's own model must have as well."""
    folder: str
    """Folder where relative paths start."""
    path: tuple[str, ...]
    """Folders where modules are looked for."""
    threads: int

    @classmethod
    def here(cls, model: Model, address: str, options: ModelOptions, threads: int) -> Self:
        """Describe the model as it is open in this process."""
        if options.template is not None:
            options = options.model_copy(update={"template": options.template.resolve()})
        folder = str(Path.cwd())
        path = tuple(entry or folder for entry in sys.path)
        return cls(address, options, digest(model.card.identity), folder, path, threads)


class WorkerModel:
    """The run's model in a worker, opened on first use, which answers calls."""

    def __init__(self, origin: ModelOrigin) -> None:
        self._origin = origin
        self._answered = False
        self._told = Effort()

    @cached_property
    def model(self) -> Model:
        """Opened and loaded on first use."""
        origin = self._origin
        _settle(origin)
        model = load_model(origin.address, origin.options)
        if digest(model.card.identity) != origin.identity:
            raise ModelError(
                f"{origin.address}: a worker in {origin.folder!r} opened another model than the run's: "
                f"revision {model.card.revision!r}, parameters {dict(model.card.parameters)}",
                hint="every worker needs the same files and code under the same address; --workers 1 needs none",
            )
        if isinstance(model, Preparable):
            model.prepare()
        _limit_torch(origin.threads)
        return model

    def answer(self, calls: Sequence[tuple[str, View]]) -> Generator[tuple[str, Outcome]]:
        """Answer calls as the model would in one process.

        A model may raise where the very first call that it sees is one that it cannot answer, and yield a failure where
        a later one is. What comes first here is chance, so all others are asked before the error is believed.
        """
        try:
            yield from self._ask(calls)
        except ModelError:
            first = None if self._answered else self._first_answer(calls)
            if first is None:
                raise
            yield first
            yield from self._ask([call for call in calls if call[0] != first[0]])

    def tally(self, *, final: bool = False) -> WorkerEffort:
        """Return the effort since the last call; `final` measures what the machine could have done as well."""
        now = effort_of(self.model) + Effort()  # a copy, for it goes on
        since, self._told = now - self._told, now
        peak = self.model.peak_flops if final and isinstance(self.model, Paced) else None
        return WorkerEffort(since, peak, self.model.note if isinstance(self.model, Noted) else None)

    def _ask(self, calls: Sequence[tuple[str, View]]) -> Generator[tuple[str, Outcome]]:
        with closing(reply(self.model, [view for _, view in calls])) as replies:
            for index, outcome in replies:
                self._answered = True
                yield calls[index][0], outcome

    def _first_answer(self, calls: Sequence[tuple[str, View]]) -> tuple[str, Outcome] | None:
        for call in calls:
            try:
                return next(self._ask([call]), None)
            except ModelError:
                continue
        return None


def _settle(origin: ModelOrigin) -> None:
    """Set the folder, module path and thread limits as in the run's own process."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(origin.threads)
    if Path(origin.folder).is_dir():
        os.chdir(origin.folder)
    sys.path += [entry for entry in origin.path if entry not in sys.path and Path(entry).exists()]


def _limit_torch(threads: int) -> None:
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)


SEND_SECONDS = 0.05
"""Free answers are sent in batches; a paid one at once."""
PARENT_SECONDS = 1.0

Kind = Literal["ready", "answers", "done", "refused", "broken", "given up"]


class WorkerReport(NamedTuple):
    """A message from a worker to the run."""

    kind: Kind
    """`ready` for a shard; `answers` to some calls; `done` with all; `refused`: the model raises at the first call;
    `broken`: it cannot be loaded, or has a bug; `given up`: not tried, because workers died of it."""
    answers: tuple[tuple[str, Outcome], ...] = ()
    tally: WorkerEffort = WorkerEffort()
    error: BaseException | None = None


def main(descriptor: int) -> None:
    """Serve until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with Connection(descriptor) as connection:
        try:
            serve(connection)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return  # the parent is done, or gone


def serve(connection: "Connection[WorkerReport, ModelOrigin | Shard]") -> None:
    """Take the model's origin, then shard after shard."""
    origin = connection.recv()
    if not isinstance(origin, ModelOrigin):
        raise TypeError(f"expected a ModelOrigin, got {type(origin).__name__}")
    opened = WorkerModel(origin)
    while True:
        connection.send(WorkerReport("ready"))
        shard = connection.recv()
        if isinstance(shard, Shard):
            connection.send(work_on(opened, shard, connection.send))


def work_on(opened: WorkerModel, shard: Shard, send: Callable[[WorkerReport], None]) -> WorkerReport:
    """Answer one shard, sending answers as they come; returns the last report about it."""
    try:
        _ = opened.model
    except Exception as error:  # handed to the parent, which raises it
        return WorkerReport("broken", error=_portable(error))
    try:
        _send_answers(opened, shard, send)
    except ModelError as error:
        return WorkerReport("refused", error=_portable(error))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # handed to the parent, which raises it
        return WorkerReport("broken", error=_portable(error))
    return WorkerReport("done", tally=opened.tally(final=True))


def _send_answers(opened: WorkerModel, shard: Shard, send: Callable[[WorkerReport], None]) -> None:
    waiting: list[tuple[str, Outcome]] = []
    sent_at = 0.0  # the first one is sent at once, and shows that the model lives
    for key, outcome in opened.answer(shard.calls):
        waiting.append((key, outcome))
        if outcome.cost_usd or time.monotonic() - sent_at > SEND_SECONDS:
            send(WorkerReport("answers", tuple(waiting), opened.tally()))
            waiting, sent_at = [], time.monotonic()
    if waiting:
        send(WorkerReport("answers", tuple(waiting), opened.tally()))


def _portable(error: Exception) -> BaseException:
    """The error with its traceback as a note; as plain text where it cannot be sent."""
    text = "".join(traceback.format_exception(error))
    try:
        sent: BaseException = pickle.loads(pickle.dumps(error))  # noqa: S301 - made one line above
    except Exception:  # whatever a foreign exception does when it is copied
        sent = (
            ModelError(error.message, hint=error.hint)
            if isinstance(error, PrbenchError)
            else RuntimeError(f"{type(error).__name__}: {error}")
        )
    sent.add_note(f"in a worker process:\n{text}")
    return sent


def _end_with(parent: int) -> None:
    """A worker in the middle of a long forward pass would outlive a parent that was killed."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)
