"""A worker process: takes shards from a connection, sends outcomes back, ends with its parent.

Started as `python -c` and not by `multiprocessing`, which would run the user's own script again in every worker.
"""

import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Literal, NamedTuple

from prbench.errors import ModelError, PrbenchError
from prbench.run.asking import Tally
from prbench.run.desk import Desk, Place
from prbench.run.shards import Shard
from prbench.types import Outcome

SEND_SECONDS = 0.05
"""Free answers are sent in batches; a paid one at once."""
PARENT_SECONDS = 1.0

Kind = Literal["ready", "answers", "done", "refused", "broken", "given up"]


class Report(NamedTuple):
    """What a worker says."""

    kind: Kind
    """`ready` for a shard; `answers` to some calls; `done` with all; `refused`: the model raises at the first call;
    `broken`: it cannot be loaded, or has a bug; `given up`: not tried, because workers died of it."""
    answers: tuple[tuple[str, Outcome], ...] = ()
    tally: Tally = Tally()
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


def serve(connection: "Connection[Report, Place | Shard]") -> None:
    """Take the place, then shard after shard."""
    place = connection.recv()
    if not isinstance(place, Place):
        raise TypeError(f"expected a Place, got {type(place).__name__}")
    desk = Desk(place)
    while True:
        connection.send(Report("ready"))
        shard = connection.recv()
        if isinstance(shard, Shard):
            connection.send(work_on(desk, shard, connection.send))


def work_on(desk: Desk, shard: Shard, send: Callable[[Report], None]) -> Report:
    """Answer one shard, sending answers as they come; returns the last report about it."""
    try:
        _ = desk.model
    except Exception as error:  # handed to the parent, which raises it
        return Report("broken", error=_portable(error))
    try:
        _send_answers(desk, shard, send)
    except ModelError as error:
        return Report("refused", error=_portable(error))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # handed to the parent, which raises it
        return Report("broken", error=_portable(error))
    return Report("done", tally=desk.tally(final=True))


def _send_answers(desk: Desk, shard: Shard, send: Callable[[Report], None]) -> None:
    waiting: list[tuple[str, Outcome]] = []
    sent_at = 0.0  # the first one is sent at once, and shows that the model lives
    for key, outcome in desk.answer(shard.calls):
        waiting.append((key, outcome))
        if outcome.cost_usd or time.monotonic() - sent_at > SEND_SECONDS:
            send(Report("answers", tuple(waiting), desk.tally()))
            waiting, sent_at = [], time.monotonic()
    if waiting:
        send(Report("answers", tuple(waiting), desk.tally()))


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
