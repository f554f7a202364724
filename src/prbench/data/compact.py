"""The layout in which suites ship with the package: each distinct text once, so that many thousand pairs load at once.

Every column is a dictionary-encoded string; profile, aspects and tags are JSON. The 250 profiles behind thirty thousand
pairs are parsed 250 times, and their pairs share them. For data to hand on, `write_pairs` has the paper's own layout.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from prbench import files
from prbench.columns import ModelColumns
from prbench.data.suite import pair_columns
from prbench.types import Aspect, Pair, Post

_COLUMNS = (
    "id",
    "user",
    "question",
    "profile",
    "narrative",
    "rubric_aspects",
    "category",
    "tags",
    "chosen",
    "rejected",
)
_TITLE, *_OTHERS = Aspect.model_fields


def write_compact(pairs: Iterable[Pair], path: Path) -> None:
    """Write pairs as one Parquet file; the same pairs give the same bytes."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    rows = [_row(pair) for pair in pairs]
    columns = {name: arrow.array([row[name] for row in rows]).dictionary_encode() for name in _COLUMNS}
    with files.replacing(path) as partial:
        parquet.write_table(
            arrow.table(columns),
            partial,
            compression="zstd",
            compression_level=15,
            row_group_size=max(len(rows), 1),
            dictionary_pagesize_limit=2**28,
            store_schema=True,
        )


def read_compact(path: Path) -> ModelColumns[Pair]:
    """Read what `write_compact` wrote; equal texts, profiles, aspects and tags become one object."""
    import pyarrow.parquet as parquet

    table = parquet.ParquetFile(path, read_dictionary=list(_COLUMNS)).read().combine_chunks()
    decoders: dict[str, Callable[[Any], Any]] = {"profile": _posts, "rubric_aspects": _aspects, "tags": dict}
    columns = [_decoded(table.column(name), decoders.get(name)) for name in _COLUMNS]
    # The file was written from pairs that had been checked; checking again would also copy every profile.
    pairs = pair_columns(())
    values = {**dict(zip(_COLUMNS, columns, strict=True)), "turns": [()] * len(table)}
    pairs.add_columns(values, packed=("rubric_aspects",))
    return pairs


def _row(pair: Pair) -> dict[str, str]:
    row: dict[str, Any] = pair.model_dump(mode="json")
    for name in ("profile", "rubric_aspects", "tags"):
        row[name] = json.dumps(row[name], ensure_ascii=False, sort_keys=True)
    return row


def _decoded(column: Any, decode: Callable[[Any], Any] | None) -> Sequence[Any]:
    """The values of a column; those that are JSON are parsed all at once."""
    chunk = column.chunk(0)
    distinct = chunk.dictionary.to_pylist()
    if decode is not None:
        distinct = list(map(decode, json.loads(f"[{','.join(distinct)}]")))
    return [distinct[index] for index in chunk.indices.to_pylist()]


def _posts(posts: Sequence[dict[str, str]]) -> tuple[Post, ...]:
    return tuple(Post(**post) for post in posts)


def _aspects(aspects: Sequence[dict[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Aspects as columns keep them: the title, and all other fields."""
    return tuple([(aspect[_TITLE], tuple([aspect.get(name, "") for name in _OTHERS])) for aspect in aspects])
