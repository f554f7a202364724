"""The SQLite file of a study: who opens it, and how it is written.

Write-ahead logging, so that readers and one writer never wait for each other; full synchronisation, so that what was
confirmed is on disk; foreign keys; freed pages are overwritten, so that deleted data are gone and not only hidden. Each
request has its own connection, and every change is one transaction.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path

from prbench.errors import ConfigError, FileError
from prbench.files import damaged, database_errors, disk_errors, exists, make_folder, open_database

BUSY_S = 10.0
_APPLICATION = 0x50524142  # "PRAB", so that another program's database is not taken for a study
_PRAGMAS = ("foreign_keys = ON", "synchronous = FULL", "secure_delete = ON", "trusted_schema = OFF")


class Store:
    """File of a study.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = Store.create(Path(folder.name, "annotations.sqlite"))
        >>> with store.reading() as connection:
        ...     connection.execute("SELECT count(*) FROM answer").fetchone()[0]
        0
        >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> "Store":
        """Make an empty study file, readable by its owner only: it will hold what people wrote."""
        make_folder(path.parent)
        with disk_errors(path, "write"):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        store = cls(path)
        with store._connected() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(files("prbench.annotate").joinpath("schema.sql").read_text(encoding="utf-8"))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        return store

    @classmethod
    def existing(cls, path: Path) -> "Store":
        """Open a study that must be there already."""
        if not exists(path, raises=ConfigError):
            raise ConfigError(f"{str(path)!r} does not exist", hint="`prbench annotate SUITE --db FILE` makes a study")
        store = cls(path)
        try:
            with store.reading() as connection:
                (found,) = connection.execute("PRAGMA application_id").fetchone()
                (sound,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except FileError as error:
            raise ConfigError(f"{str(path)!r} cannot be read as a study: {error.message}", hint=error.hint) from error
        if found != _APPLICATION:
            raise ConfigError(f"{str(path)!r} is no study of `prbench annotate`", hint="name another file with --db")
        if sound != "ok":
            raise damaged(path, sound, raises=ConfigError, hint="restore the file from a copy")
        return store

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the file."""
        with self._connected() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on disk when the block ends, or none of it."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:  # a full disk, for one, has ended it already
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def settle(self) -> None:
        """Move the log into the file and empty it, so that nothing deleted is left in it."""
        with self._connected() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with (
            database_errors(self.path),
            closing(open_database(self.path, timeout_s=BUSY_S)) as connection,
        ):
            connection.row_factory = sqlite3.Row
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            yield connection
