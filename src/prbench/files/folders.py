"""Folders: made, locked against a second writer, and replaced as one."""

import errno
import re
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from prbench.errors import FileError, PrbenchError
from prbench.files.trouble import disk_errors
from prbench.files.write import sync_name


def slug(text: str, *, mark: str = "_", keep: str = ".") -> str:
    """Turn a name or an address into what any file system takes as part of a name.

    Args:
        text: The name; its letters and digits of ASCII stay.
        mark: Stands for every run of other characters, except at either end.
        keep: Further characters that stay.

    Example:
        >>> slug("hf:org/my-rm"), slug("profile+plan", mark="-")
        ('hf_org_my_rm', 'profile-plan')
    """
    return re.sub(f"[^A-Za-z0-9{re.escape(keep)}]+", mark, text).strip(f"{mark}.")


def make_folder(path: Path, *, raises: type[PrbenchError] = FileError, hint: str = "") -> Path:
    """Make a folder and those above it, unless they are there."""
    with disk_errors(path, "write", raises=raises, hint=hint):
        path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def locked(path: Path, busy: PrbenchError | None = None) -> Iterator[None]:
    """Hold a lock file while the block runs.

    Args:
        path: The lock file; its folder is made where it is missing.
        busy: Raised where another process holds the lock; None waits for it.
    """
    make_folder(path.parent)
    lock = FileLock(path, blocking=busy is None)
    with disk_errors(path, "write"):
        try:
            lock.acquire()
        except Timeout:
            assert busy is not None  # noqa: S101  (a lock that waits does not time out)
            raise busy from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def replacing_folder(folder: Path, *, ours: Collection[str] | None = None) -> Iterator[Path]:
    """Give an empty folder to fill, and let it take the place of `folder` when the block ends well.

    When the block fails, an earlier folder stays as it was and nothing is left beside it.

    Args:
        folder: Where it comes to lie.
        ours: Names in the earlier folder that the new one replaces; others are moved into it. Default: all are
            replaced.

    Example:
        >>> with tempfile.TemporaryDirectory() as place:
        ...     for text in ("old", "new"):
        ...         with replacing_folder(Path(place, "suite")) as made:
        ...             _ = (made / "a.txt").write_text(text)
        ...     Path(place, "suite", "a.txt").read_text(), [path.name for path in Path(place).iterdir()]
        ('new', ['suite'])
    """
    with disk_errors(folder, "write"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory")
        with tempfile.TemporaryDirectory(
            prefix=f".{folder.name}.", suffix=".part", dir=folder.parent, ignore_cleanup_errors=True
        ) as place:
            made, earlier = Path(place, "made"), Path(place, "earlier")
            made.mkdir()
            yield made
            if folder.exists():  # it waits beside the new one, and is removed with that place
                folder.replace(earlier)
            try:
                made.replace(folder)
            except BaseException:
                if earlier.exists():
                    earlier.replace(folder)
                raise
            if ours is not None and earlier.is_dir():
                for path in earlier.iterdir():
                    if path.name not in ours:
                        path.replace(folder / path.name)
        sync_name(folder)
