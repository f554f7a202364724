"""The one progress line: a bar on a terminal, elsewhere a plain line now and then, with the time that is left."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TextIO

SAY_SECONDS = 10.0
_BAR = 20
"""Width of the bar on a terminal."""
_TELLING = 20
"""Number of steps after which the time left can be told: the first ones wait for the model to be opened."""


class ProgressLine:
    """Says how far a stage is: now and then in words, or all the time where it has a terminal.

    With a terminal, use it as a context manager or `close` it, so that the terminal is left as it was.

    Args:
        what: The stage; empty where the lines speak for themselves.
        say: Hears each line.
        total: How much there is to do, where that is known from the start.
        every_s: Least number of seconds between two lines.
        terminal: Where a bar is drawn in place of the lines; anything but a terminal is not drawn on.
    """

    def __init__(
        self,
        what: str,
        say: Callable[[str], None],
        total: int = 0,
        *,
        every_s: float = SAY_SECONDS,
        terminal: TextIO | None = None,
    ) -> None:
        self._what, self._say, self._total, self._every_s = what, say, total, every_s
        self._terminal = terminal if terminal is not None and terminal.isatty() else None
        self._bar: _Bar | None = None
        self._done = 0
        self._began = self._said = time.monotonic()

    def one_more(self) -> None:
        """Count one more as done."""
        self.at(self._done + 1, self._total)

    def at(self, done: int, total: int, more: str = "") -> None:
        """Report that so many of so many are done; `more` is said as well."""
        self._done = done
        self.show(done, total, lambda: " · ".join(part for part in (self._left(done, total), more) if part))

    def show(self, done: int, total: int, status: Callable[[], str]) -> None:
        """Show how far the stage is with a status, which is asked for only where it is shown."""
        named = f"{self._what}: " if self._what else ""
        if self._terminal is not None:
            self._bar = self._bar or _Bar(self._terminal)
            self._bar.update(done, total, named + status())
        elif (now := time.monotonic()) - self._said >= self._every_s:
            self._said = now
            self._say(" · ".join(part for part in (f"{named}{done:,}/{total:,}", status()) if part))

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _left(self, done: int, total: int) -> str:
        left = max(total - done, 0) * (time.monotonic() - self._began) / max(done, 1)
        return f"{clock(left)} left" if done >= _TELLING else ""


class _Bar:
    """A rich progress bar with our own status text."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._console = Console(file=stream)
        self._rich = RichProgress(
            BarColumn(bar_width=_BAR),
            TextColumn("{task.fields[status]}"),
            console=self._console,
            transient=True,
        )
        self._task = self._rich.add_task("run", total=None, status="")
        self._rich.start()

    def update(self, done: int, total: int, status: str) -> None:
        """Show the number done, and of the status what the terminal has room for."""
        shown = fitting(f"{done:,}/{total:,}", status.split(" · "), self._console.width - _BAR - 2)
        self._rich.update(self._task, completed=done, total=total, status=shown)

    def stop(self) -> None:
        """Leave the terminal as it was."""
        self._rich.stop()


def fitting(first: str, parts: Sequence[str], room: int) -> str:
    """Join the parts that fit into a line, in their order; the first one stays, and none is cut.

    Example:
        >>> fitting("7/40", ["2.5/s", "13 s left", "accuracy so far 50.1 %"], 25)
        '7/40 · 2.5/s · 13 s left'
    """
    line = first
    for part in filter(None, parts):
        if len(line) + len(" · ") + len(part) > room:
            break
        line += f" · {part}"
    return line


def clock(seconds: float) -> str:
    """A duration as a person says it.

    Example:
        >>> clock(42), clock(250), clock(7300)
        ('42 s', '4 min 10 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
