"""Lines: of JSONL that the project appends to, and of text files, plain or gzipped, that users bring."""

import gzip
import zlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar, cast

from pydantic import BaseModel, TypeAdapter

from prbench.errors import FileError, PrbenchError
from prbench.files.read import check_model, exists
from prbench.files.trouble import damaged, disk_errors

M = TypeVar("M", bound=BaseModel)

MAX_LINE_BYTES = 64 * 2**20
"""Longest line that is read unless the caller says otherwise."""
MAX_BLANK_BYTES = 2**20
"""Blank lines that are passed over one after another; a compressed file may hold any number of them in a few bytes."""
_BLOCK = 512
"""Lines that are checked at once."""
_BOM = b"\xef\xbb\xbf"


def whole_lines(
    path: Path, *, raises: type[PrbenchError] = FileError, hint: str = "remove the line, or restore the file"
) -> Iterator[tuple[int, str]]:
    """Numbered lines of a file that is appended to; without the file none, and a torn last line is passed over."""
    if not exists(path, raises=raises):
        return
    with disk_errors(path, "read", raises=raises), path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            if line.endswith(b"\n") and line.strip():
                try:
                    yield number, line.decode("utf-8")
                except UnicodeDecodeError as error:
                    at = f"not UTF-8 at byte {error.start} of the line"
                    raise damaged(f"{path}, line {number}", at, raises=raises, hint=hint) from error


def read_models(
    path: Path,
    model: type[M],
    *,
    raises: type[PrbenchError] = FileError,
    hint: str = "remove the line, or restore the file",
) -> Iterator[M]:
    """Lines of JSONL as models, a torn last line passed over; a damaged line is named.

    Args:
        path: Append-only JSONL; without it there are no models.
        model: Model of each line.
        raises: The kind of error.
        hint: The way out, where a line is damaged.
    """
    lines = whole_lines(path, raises=raises, hint=hint)
    while block := list(islice(lines, _BLOCK)):
        models = _check_together(model, [line for _, line in block])
        if models is not None:
            yield from models
        else:  # some line is damaged; whatever stands before it is good
            for number, line in block:
                yield check_model(line, model, f"{path}, line {number}", raises=raises, hint=hint)


def _check_together(model: type[M], lines: list[str]) -> list[M] | None:
    """All lines as models, in half the time that it takes one by one; None where one is damaged."""
    try:
        models: list[M] = _list_of(model).validate_json(f"[{','.join(lines)}]")
    except (ValueError, RecursionError, PrbenchError):
        return None
    return models if len(models) == len(lines) else None


@lru_cache(maxsize=32)
def _list_of(model: type[M]) -> TypeAdapter[list[M]]:
    return TypeAdapter(list[model])  # type: ignore[valid-type]


def read_lines(
    path: Path, *, max_line_bytes: int = MAX_LINE_BYTES, raises: type[PrbenchError] = FileError
) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file with their line ends, split at LF only; a name in `.gz` is decompressed.

    A line past the limit, bad UTF-8, a damaged archive and an endless run of blank lines are refused.
    """
    offset = blank = 0
    for number, raw in enumerate(_raw_lines(path, max_line_bytes, raises), start=1):
        if len(raw) > max_line_bytes:
            raise raises(
                f"{path}, line {number}: longer than {max_line_bytes:,} bytes",
                hint="JSONL wants one object per line; raise max_line_bytes if it really is that long",
            )
        blank = 0 if raw.strip() else blank + len(raw)
        if blank > MAX_BLANK_BYTES:
            raise raises(
                f"{path}, line {number}: more than {MAX_BLANK_BYTES:,} bytes of blank lines",
                hint="is the file complete? remove the blank lines",
            )
        content = raw.removeprefix(_BOM) if number == 1 else raw
        try:
            yield number, content.decode()
        except UnicodeDecodeError as error:
            at = offset + len(raw) - len(content) + error.start
            raise raises(
                f"{path}, line {number}: not UTF-8 at byte {at} ({content[error.start]:#04x})",
                hint="save the file as UTF-8, for example with iconv -t UTF-8",
            ) from error
        offset += len(raw)


def _raw_lines(path: Path, max_line_bytes: int, raises: type[PrbenchError]) -> Iterator[bytes]:
    try:
        with _open(path) as file:
            while raw := file.readline(max_line_bytes + 1):
                yield raw
    except (OSError, EOFError, zlib.error) as error:
        raise raises(f"{str(path)!r} cannot be read: {error}") from error


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.name.lower().endswith(".gz") else path.open("rb")
