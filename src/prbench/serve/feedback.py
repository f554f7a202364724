"""Judgments of users, kept in one append-only file: every judgment is on disk before it is confirmed.

A torn last line, the trace of a process killed while it wrote, is cut off at the next start. Forgetting a user rewrites
the file without them: nothing of theirs stays behind. One server writes to a file at a time.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from prbench import files
from prbench.errors import ConfigError, DataError
from prbench.types import Judgment, Text


class UserJudgment(Judgment):
    """One line of the file."""

    user: Text


class FeedbackFile:
    """Judgments by user, in memory and on disk; use it in a `with` block.

    Args:
        path: Where; made when the first judgment comes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, FeedbackFile(Path(folder) / "judged.jsonl") as file:
        ...     file.add("ann", Judgment(question="Tea?", chosen="Green.", rejected="Black."))
        ...     len(file.of("ann")), len(file.of("bob"))
        True
        (1, 0)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open = ExitStack()
        self._judged: dict[str, list[Judgment]] = {}

    def __enter__(self) -> Self:
        busy = ConfigError(
            f"another server keeps its judgments in {str(self.path)!r}", hint="give this one a --state of its own"
        )
        with ExitStack() as opened:
            opened.enter_context(files.locked(self.path.with_name(f"{self.path.name}.lock"), busy))
            files.cut_torn_line(self.path)
            self._load()
            self._open = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def users(self) -> Mapping[str, Sequence[Judgment]]:
        """Users who have judged something, with their judgments."""
        return self._judged

    def of(self, user: str) -> tuple[Judgment, ...]:
        """Return the judgments of a user, oldest first."""
        return tuple(self._judged.get(user, ()))

    def add(self, user: str, judgment: Judgment) -> bool:
        """Keep a judgment, on disk when this returns; False if it is there already, as after a client's retry."""
        if judgment in self.of(user):
            return False
        line = UserJudgment(user=user, **judgment.model_dump()).model_dump_json()
        files.append_line(self.path, line)
        self._judged.setdefault(user, []).append(judgment)
        return True

    def forget(self, user: str) -> int:
        """Remove all that a user has judged, from the disk as well; returns how many judgments that were."""
        if user not in self._judged:
            return 0
        left = {name: judged for name, judged in self._judged.items() if name != user}
        lines = [
            UserJudgment(user=name, **judgment.model_dump()).model_dump_json()
            for name, judged in left.items()
            for judgment in judged
        ]
        files.write_whole(self.path, "".join(line + "\n" for line in lines))
        return len(self._judged.pop(user))

    def _load(self) -> None:
        hint = "mend or remove the line, or choose another --state"
        for judged in files.read_models(self.path, UserJudgment, raises=DataError, hint=hint):
            judgment = Judgment.model_validate(judged.model_dump(exclude={"user"}))
            self._judged.setdefault(judged.user, []).append(judgment)
