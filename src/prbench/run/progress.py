"""Progress of a run for a person: a bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self, TextIO

from prbench.calls import Asker, clock
from prbench.results import MadeRecord
from prbench.run.work import OpenWork
from prbench.types import Record

PLAIN_SECONDS = 10.0

_TELLING = 30
_TELLING_SECONDS = 2.0
"""Records, and seconds since the first of them, after which the time left can be told."""


class RecordProgress:
    """Counts records as they come: rate, time left, running accuracy and records without a verdict.

    Use as a context manager; `listening` is handed to `execute`.
    """

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._total = self._done = self._bad = 0
        self._credit, self._judged = 0.0, 0
        self._spent_usd = 0.0
        self._started = self._printed = time.monotonic()
        self._asked = 0
        self._first_asked = 0.0
        self._bar: _Bar | None = None
        self._asker: Asker | None = None

    def watch(self, asker: Asker) -> None:
        """Show what this asker's model computes as well, where it counts."""
        self._asker = asker

    def planning(self, done: int, total: int) -> None:
        """Report the prompts planned so far: a bar on a terminal, elsewhere a line where it takes long."""
        if self._quiet or (done % 64 and done < total):
            return
        if self._stream.isatty():
            self._bar = self._bar or _Bar(self._stream, total)
            self._bar.update(done, "planning: what fits, what is asked only once")
        elif time.monotonic() - self._printed > PLAIN_SECONDS:
            self._printed = time.monotonic()
            self._say(f"planning {done:,}/{total:,}")

    def listening(self, work: OpenWork, there: int) -> "RecordProgress":
        """Start to count: so many records are open, so many are there already."""
        self._stop_bar()
        self._total = len(work.tasks) + len(work.unfit)
        self._started = self._printed = time.monotonic()
        if self._quiet or not self._total:
            return self
        already = f", {there:,} records there already" if there else ""
        self._say(f"{self._total:,} records to make from {len(work.calls):,} distinct calls{already}")
        if self._stream.isatty():
            self._bar = _Bar(self._stream, self._total)
        return self

    def __call__(self, record: Record | MadeRecord, spent_usd: float) -> None:
        """Count one more record."""
        self._done += 1
        self._spent_usd = spent_usd
        if record.asked:
            self._first_asked = self._first_asked or time.monotonic()
            self._asked += 1
        credit = record.credit
        if credit is None:
            self._bad += 1
        else:
            self._credit += credit
            self._judged += 1
        if self._bar is not None:
            self._bar.update(self._done, self.status())
        elif not self._quiet and time.monotonic() - self._printed > PLAIN_SECONDS:
            self._printed = time.monotonic()
            self._say(f"{self._done:,}/{self._total:,} {self.status()}")

    def status(self) -> str:
        """Rate, time left, running accuracy, records without a verdict, work of a local model, money."""
        elapsed = max(time.monotonic() - self._started, 1e-6)
        rate = self._done / elapsed
        parts = [f"{rate:.1f}/s"]
        if (left := self.seconds_left()) is not None:
            parts.append(f"{clock(left)} left")
        if self._judged:
            parts.append(f"accuracy so far {self._credit / self._judged:.1%}")
        parts.append(f"without verdict {self._bad}")
        parts += [] if self._asker is None else work_done(self._asker)
        if self._spent_usd:
            parts.append(f"${self._spent_usd:.4f}")
        return " · ".join(parts)

    def seconds_left(self) -> float | None:
        """Seconds left by the pace of records that were asked for; None at the end, and before there is a pace.

        Records from the cache come all at once, and the first one waits for the model to be loaded: neither counts.
        """
        since = time.monotonic() - self._first_asked
        if self._done >= self._total or self._asked < _TELLING or since < _TELLING_SECONDS:
            return None
        return (self._total - self._done) * since / (self._asked - 1)

    def _stop_bar(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_bar()
        if self._total and not self._quiet:
            self._say(f"{self._done:,}/{self._total:,} {self.status()}")

    def _say(self, line: str) -> None:
        if not self._quiet:
            print(line, file=self._stream, flush=True)


class _Bar:
    """A rich progress bar with our own status text."""

    def __init__(self, stream: TextIO, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._rich = RichProgress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            console=Console(file=stream),
            transient=True,
        )
        self._task = self._rich.add_task("run", total=total, status="")
        self._rich.start()

    def update(self, done: int, status: str) -> None:
        """Show the number done and the status."""
        self._rich.update(self._task, completed=done, status=status)

    def stop(self) -> None:
        """Leave the terminal as it was."""
        self._rich.stop()


def work_done(asker: Asker) -> list[str]:
    """Return what a local model computed so far, in a few words; empty where it is not counted."""
    effort = asker.effort
    if not effort.tokens_per_s:
        return []
    parts = [f"computes {effort.tokens_per_s:,.0f} tokens/s"]
    if (saved := 1 - effort.computed_tokens / effort.naive_tokens) >= 0.005:
        parts.append(f"{saved:.0%} of tokens saved")
    if effort.flops and (share := effort.share_of(asker.peak_flops)):
        parts.append(f"{share:.0%} of matmul peak")
    return parts
