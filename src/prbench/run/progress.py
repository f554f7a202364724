"""Progress of a run for a person: a bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self, TextIO

from prbench.calls import Asker, ProgressLine, clock
from prbench.results import MadeRecord
from prbench.run.work import OpenWork
from prbench.types import Record

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
        self._credits: dict[str, tuple[float, int]] = {}  # by context: their sum and number
        self._context = ""
        self._spent_usd = 0.0
        self._started = time.monotonic()
        self._asked = 0
        self._first_asked = 0.0
        self._line = self._new_line("planning")
        self._asker: Asker | None = None

    def watch(self, asker: Asker) -> None:
        """Show what this asker's model computes as well, where it counts."""
        self._asker = asker

    def planning(self, done: int, total: int) -> None:
        """Report the prompts planned so far: a bar on a terminal, elsewhere a line where it takes long."""
        if self._quiet or (done % 64 and done < total):
            return
        self._line.show(done, total, lambda: "what fits, what is asked only once")

    def listening(self, work: OpenWork, there: int) -> "RecordProgress":
        """Start to count: so many records are open, so many are there already."""
        self._line.close()
        self._total = len(work.tasks) + len(work.unfit)
        self._started = time.monotonic()
        if self._quiet or not self._total:
            return self
        already = f", {there:,} records there already" if there else ""
        self._say(f"{self._total:,} records to make from {len(work.calls):,} distinct calls{already}")
        self._line = self._new_line("")
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
            total, judged = self._credits.get(record.context, (0.0, 0))
            self._credits[record.context] = total + credit, judged + 1
            self._context = record.context
        if not self._quiet:
            self._line.show(self._done, self._total, self.status)

    def status(self) -> str:
        """Rate, time left, running accuracy, records without a verdict, work of a local model, money."""
        elapsed = max(time.monotonic() - self._started, 1e-6)
        rate = self._done / elapsed
        parts = [f"{rate:.1f}/s"]
        if (left := self.seconds_left()) is not None:
            parts.append(f"{clock(left)} left")
        if self._context:
            credit, judged = self._credits[self._context]
            parts.append(f"{self._context} {100 * credit / judged:.1f} % so far")
        parts += [f"without verdict {self._bad:,}"] if self._bad else []
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

    def _new_line(self, what: str) -> ProgressLine:
        return ProgressLine(what, self._say, terminal=self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.close()
        if self._total and not self._quiet:
            self._say(f"{self._done:,}/{self._total:,} · {self.status()}")

    def _say(self, line: str) -> None:
        if not self._quiet:
            print(line, file=self._stream, flush=True)


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
