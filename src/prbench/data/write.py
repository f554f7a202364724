"""Pairs to a file, in the paper's layout with `user` and `tags` added.

The file appears whole or not at all: it is written beside its place and moved there at the end. Tags are an object in
JSONL and JSON text in Parquet and CSV, where an object of free keys has no column type.
"""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from prbench import files
from prbench.data.rows import SUFFIXES, suffix_of
from prbench.errors import DataError
from prbench.types import Pair

_TEXTS_BEFORE = ("id", "user", "question")
_TEXTS_AFTER = ("narrative", "category", "chosen", "rejected")
_BATCH_ROWS = 1024


def write_pairs(pairs: Iterable[Pair], path: str | Path) -> Path:
    """Write pairs as JSONL, Parquet or CSV, by the file's suffix; `load_pairs` gives the same pairs back.

    Args:
        pairs: What to write; at least one.
        path: Where to; missing folders are made, an existing file is replaced.

    Returns:
        The path.

    Example:
        >>> import tempfile
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.", tags={"split": "test"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(write_pairs([pair], Path(folder, "tea.csv")).read_text().splitlines()[1])
        "1","ann","Tea?","[]","[]","","","Green.","Black.","{""split"": ""test""}"
    """
    path = Path(path)
    suffix = suffix_of(path)
    if suffix is None:
        raise DataError(f"{str(path)!r} has an unsupported extension", hint=f"supported: {', '.join(SUFFIXES)}")
    kept = list(pairs)
    if not kept:
        raise DataError(f"there is no pair to write to {str(path)!r}")
    with files.replacing(path) as partial, partial.open("wb") as file:
        if suffix == ".parquet":
            _write_parquet(kept, file)
        else:
            _write_text(kept, file, _write_csv if suffix.startswith(".csv") else _write_jsonl, suffix.endswith(".gz"))
    return path


def _write_text(
    pairs: Sequence[Pair], file: IO[bytes], write: Callable[[Sequence[Pair], IO[str]], None], zipped: bool
) -> None:
    # No name and no time in the gzip header: the same pairs give the same bytes.
    binary = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) if zipped else file
    text = io.TextIOWrapper(binary, encoding="utf-8", newline="")
    write(pairs, text)
    text.flush()
    text.detach()
    if zipped:
        binary.close()


def _write_jsonl(pairs: Sequence[Pair], file: IO[str]) -> None:
    for pair in pairs:
        file.write(json.dumps(_to_row(pair, turns=bool(pair.turns)), ensure_ascii=False) + "\n")


def _write_csv(pairs: Sequence[Pair], file: IO[str]) -> None:
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")  # a bare CR in an unquoted field ends the row
    turns = any(pair.turns for pair in pairs)
    writer.writerow(_to_row(pairs[0], turns=turns))
    for pair in pairs:
        row = _to_row(pair, turns=turns)
        writer.writerow(value if isinstance(value, str) else _to_json(value) for value in row.values())


def _write_parquet(pairs: Sequence[Pair], file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    turns = any(pair.turns for pair in pairs)
    schema = _arrow_schema(turns=turns)
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, len(pairs), _BATCH_ROWS):
            rows = [_to_row(pair, turns=turns) for pair in pairs[start : start + _BATCH_ROWS]]
            table = pa.Table.from_pylist([{**row, "tags": _to_json(row["tags"])} for row in rows], schema=schema)
            writer.write_table(table)


def _arrow_schema(*, turns: bool) -> Any:
    import pyarrow as pa

    def records(*names: str) -> Any:
        return pa.list_(pa.struct([(name, pa.string()) for name in names]))

    return pa.schema(
        [
            *((name, pa.string()) for name in _TEXTS_BEFORE),
            ("profile", records("id", "category", "text")),
            ("rubric_aspects", records("aspect", "evidence", "reason")),
            *((name, pa.string()) for name in _TEXTS_AFTER),
            ("tags", pa.string()),
            *([("turns", records("role", "content"))] if turns else []),
        ]
    )


def _to_row(pair: Pair, *, turns: bool) -> dict[str, Any]:
    """A pair as columns; `turns` is one of them only where a conversation is to be written."""
    return {
        **{name: getattr(pair, name) for name in _TEXTS_BEFORE},
        "profile": [{"id": post.id, "category": post.category, "text": post.text} for post in pair.profile],
        "rubric_aspects": [aspect.model_dump() for aspect in pair.rubric_aspects],
        **{name: getattr(pair, name) for name in _TEXTS_AFTER},
        "tags": dict(sorted(pair.tags.items())),
        **({"turns": [turn._asdict() for turn in pair.turns]} if turns else {}),
    }


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
