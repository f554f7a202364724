"""Errors of disks and of content, said in words: which file, what is wrong, and what to do."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from prbench.errors import FileError, PrbenchError

FileOrLine = Path | str
"""A file, or a file with the line, as it is named in a message."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_FULL_WORDS = ("No space left", "Disk quota exceeded", "PytorchStreamWriter failed writing")
"""Words by which libraries that write files themselves report a full disk."""


@contextmanager
def disk_errors(
    path: FileOrLine, doing: Literal["read", "write"], *, raises: type[PrbenchError] = FileError, hint: str = ""
) -> Iterator[None]:
    """Turn what the operating system refuses into an error that names the file and a way out.

    Example:
        >>> with disk_errors("out/result.json", "write"):
        ...     raise OSError(errno.ENOSPC, "No space left on device")
        Traceback (most recent call last):
        prbench.errors.FileError: cannot write 'out/result.json': the disk is full
        <BLANKLINE>
        hint: free some space and run the same command again; files that were there are whole
    """
    try:
        yield
    except PrbenchError:
        raise
    except Exception as error:
        if not isinstance(error, OSError) and not _is_full(error):
            raise
        reason, way_out = _explain(error, doing)
        raise raises(f"cannot {doing} {str(path)!r}: {reason}", hint=hint or way_out) from error


@contextmanager
def database_errors(path: Path, *, raises: type[PrbenchError] = FileError, hint: str = "") -> Iterator[None]:
    """Turn what SQLite refuses (a damaged, locked or read-only file, a full disk) into an error that says so."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # a damaged name may stand in SQLite's own message
        reason, way_out = _explain_database(error)
        raise raises(f"the database {str(path)!r} cannot be used: {reason}", hint=hint or way_out) from error


def damaged(
    place: FileOrLine,
    reason: object,
    *,
    raises: type[PrbenchError] = FileError,
    hint: str = "restore or remove the file",
) -> PrbenchError:
    """The error for content that is not what it should be.

    Example:
        >>> damaged("plans.jsonl, line 3", "not JSON at column 1").message
        'plans.jsonl, line 3 is damaged: not JSON at column 1'
    """
    return raises(f"{place} is damaged: {describe(reason)}", hint=hint)


def describe(reason: object) -> str:
    """Say in one line what is wrong; of a pydantic error the first field that is.

    Example:
        >>> describe(RecursionError())
        'it is nested too deeply'
    """
    if isinstance(reason, ValidationError):
        first = reason.errors()[0]
        where = ".".join(map(str, first["loc"]))
        said = first["msg"].removeprefix("Value error, ")
        more = f" (and {reason.error_count() - 1} more)" if reason.error_count() > 1 else ""
        return (f"field {where!r}: {said}" if where else said) + more
    if isinstance(reason, RecursionError):
        return "it is nested too deeply"
    lines = str(reason).strip().splitlines()
    shown = lines[0] if lines else type(reason).__name__
    return shown if len(shown) <= 300 else f"{shown[:300]} …"


def _explain(error: Exception, doing: str) -> tuple[str, str]:
    code = error.errno if isinstance(error, OSError) else None
    if code in _FULL or _is_full(error):
        return "the disk is full", "free some space and run the same command again; files that were there are whole"
    if code in _REFUSED:
        reason = "the disk is read-only" if code == errno.EROFS else "permission denied"
        return reason, f"name a place that you may {doing}, or change its permissions"
    if code == errno.ENOENT:
        return "there is no such file or folder", "check the path"
    if code == errno.EISDIR:
        return "it is a folder, not a file", "name a file, or move that folder away"
    if code in (errno.ENOTDIR, errno.EEXIST):
        return "a part of its path is a file, not a folder", "name a place below a folder"
    if code == errno.ENAMETOOLONG:
        return "its name is too long", "choose a shorter name"
    return describe(getattr(error, "strerror", None) or error), "check the disk, and that the file can be reached"


def _is_full(error: Exception) -> bool:
    return any(words in str(error) for words in _FULL_WORDS)


def _explain_database(error: Exception) -> tuple[str, str]:
    said = describe(error)
    if "full" in said:
        return "the disk is full", "free some space and try again; what was saved before is there"
    if "locked" in said:
        return "another process holds it", "wait for that process, or end it"
    if "readonly" in said or "unable to open" in said:
        return said, "check the permissions of the file and of its folder"
    return said, "restore the file from a copy, or remove it and begin anew"
