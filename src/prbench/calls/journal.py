"""Journals: append-only files of answers by key, so that what was answered is not asked again.

Every line is one answer and is written as soon as it is there. A torn last line, the trace of a process that was
killed, is passed over, and cut off before the next one is written.
"""

from collections.abc import Callable, Hashable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from prbench.errors import PrbenchError, RunError
from prbench.files import Appender, locked, read_models
from prbench.types import Frozen

Key = TypeVar("Key", bound=Hashable)
Line = TypeVar("Line", bound=Frozen)


class Journal(Generic[Key, Line]):
    """The answers of one file, and a way to add to them. Use in a `with` block.

    Args:
        path: The file; made when the first answer is kept.
        line: Model of one line.
        key: By what an answer is found; a later line stands in the place of an earlier one.
        raises: The kind of error for a damaged file.
        hint: What to do with a damaged line.
        shared: Whether another process may write to the same file: then the first to write keeps the others out.
    """

    def __init__(
        self,
        path: Path,
        line: type[Line],
        key: Callable[[Line], Key],
        *,
        raises: type[PrbenchError] = RunError,
        hint: str = "remove the line; its request is sent again",
        shared: bool = False,
    ) -> None:
        self.path = path
        self._line, self._key, self._raises, self._hint, self._shared = line, key, raises, hint, shared
        self._open = ExitStack()
        self._appender: Appender | None = None
        self.answers: dict[Key, Line] = self._read()
        """All answers by key, in the order of the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def open(self) -> None:
        """Make ready to write, before anything is asked: what two processes ask is paid for twice."""
        if self._appender is not None:
            return
        if self._shared:
            busy = RunError(f"another process is writing to {str(self.path)!r}", hint="wait for it")
            self._open.enter_context(locked(self.path.with_name(f".{self.path.name}.lock"), busy))
            self.answers = self._read()  # another process may have written since it was first read
        self._appender = self._open.enter_context(Appender(self.path))

    def keep(self, line: Line) -> None:
        """Write an answer down."""
        self.open()
        assert self._appender is not None  # noqa: S101  (opened one line above)
        self._appender.append(line)
        self.answers[self._key(line)] = line

    def sync(self) -> None:
        """Make everything written so far survive a crash of the machine."""
        if self._appender is not None:
            self._appender.sync()

    def lines(self) -> list[str]:
        """All answers in the order of their keys: the same answers give the same lines, whenever they came."""
        ordered = sorted(self.answers.items(), key=lambda item: str(item[0]))
        return [line.model_dump_json(exclude_defaults=True) for _, line in ordered]

    def _read(self) -> dict[Key, Line]:
        lines = read_models(self.path, self._line, raises=self._raises, hint=self._hint)
        return {self._key(line): line for line in lines}
