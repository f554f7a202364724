"""Calls: equal rendered inputs are asked once, in a run and across runs.

A call's key is a content hash over who is asked (address, revision, parameters) and what (the rendered prompt). Answers
are kept in one SQLite file in the cache folder; failures are never kept.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic_core import to_json

from prbench import files
from prbench.config import CACHE_VARIABLE, cache_folder, written
from prbench.errors import FileError, RunError
from prbench.models import ModelCard
from prbench.types import Outcome, Prompt

_BATCH = 500
_HINT = f"set {CACHE_VARIABLE} to a folder that can be written, or run with --no-cache"


def call_key(card: ModelCard, prompt: Prompt, repeat: int = 0) -> str:
    """The key of one call; repeats differ only for models that sample."""
    return CallKeys(card).of(prompt, repeat)


class CallKeys:
    """Keys of many calls to one model; what they have in common is written out once.

    Example:
        >>> from prbench.config import digest
        >>> card, prompt = ModelCard(address="longer"), Prompt((("user", "Tea?"),))
        >>> CallKeys(card).of(prompt) == digest([list(card.identity.values()), prompt.messages])[:32]
        True
    """

    def __init__(self, card: ModelCard) -> None:
        self._begin = f"[{written(list(card.identity.values()))},".encode()
        self._samples = not card.deterministic

    def of(self, prompt: Prompt, repeat: int = 0) -> str:
        """The key of one call."""
        end = f",{repeat}]".encode() if self._samples and repeat else b"]"
        return hashlib.sha256(self._begin + to_json(prompt.messages) + end).hexdigest()[:32]


class CallCache:
    """Answers by call key, shared by all runs and processes of a machine."""

    def __init__(self, path: Path | None = None) -> None:
        path = path or cache_folder() / "calls.sqlite"
        self._path = path
        try:
            files.make_folder(path.parent)
        except FileError as error:
            raise RunError(f"the cache {str(path)!r} cannot be used: {error.message}", hint=_HINT) from error
        self._database = files.open_database(path, timeout_s=30, raises=RunError, hint=_HINT)
        with self._errors():
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, outcome TEXT) WITHOUT ROWID"
            )
        self._waiting: list[tuple[str, str]] = []

    def find(self, keys: Sequence[str]) -> dict[str, Outcome]:
        """The answers known for these keys."""
        return dict(self.look_up(keys))

    def look_up(self, keys: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
        """The answers known for these keys, a few hundred at a time."""
        self.flush()
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            marks = ",".join("?" * len(batch))
            query = f"SELECT key, outcome FROM calls WHERE key IN ({marks})"  # noqa: S608
            with self._errors():
                rows = self._database.execute(query, batch).fetchall()
            for key, text in rows:
                place = f"the answer {key} in {str(self._path)!r}"
                yield key, files.check_model(str(text), Outcome, place, raises=RunError, hint=_HINT)

    def keep(self, key: str, outcome: Outcome, *, at_once: bool = False) -> None:
        """Remember an answer; a paid one at once, free ones in batches. A failure is not an answer."""
        if outcome.status == "failed":
            return
        self._waiting.append((key, json.dumps(outcome.model_dump(exclude_defaults=True), ensure_ascii=False)))
        if at_once or len(self._waiting) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if self._waiting:
            self._put(self._waiting)
            self._waiting = []

    def close(self) -> None:
        """Write what is waiting and let go of the file."""
        self.flush()
        self._database.close()

    def _errors(self) -> AbstractContextManager[None]:
        return files.database_errors(self._path, raises=RunError, hint=_HINT)

    def _put(self, rows: Iterable[tuple[str, str]]) -> None:
        with self._errors(), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("INSERT OR REPLACE INTO calls VALUES (?, ?)", rows)
