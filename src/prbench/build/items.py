"""The texts that a log speaks of: read once, kept in the order of their ids, each knowing which others say the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prbench.build.arrays import Indices
from prbench.build.columns import ITEM_FIELDS, Columns, cell
from prbench.data import Place, SourceRow, read_rows, suffix_of
from prbench.data.fields import read_identifier
from prbench.data.fields import read_text as text_of
from prbench.data.rows import parse_json
from prbench.errors import DataError
from prbench.files import read_text


@dataclass(frozen=True, eq=False)
class MirrorItems:
    """Texts in the order of their ids, so that the order of the file does not matter."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    groups: tuple[str, ...]
    """Subject of each text, such as its topic; empty where the file has none."""
    stances: tuple[str, ...]
    questions: tuple[str, ...]
    index: dict[str, int]
    same_text: Indices
    """The first item with the same text. Equal texts never stand on both sides of a line that keeps items apart."""
    group_codes: Indices
    """Equal for items of the same topic and stance."""

    def __len__(self) -> int:
        return len(self.ids)


def read_items(path: Path, columns: Columns) -> MirrorItems:
    """Read texts from JSONL, CSV or Parquet, or from a JSON list (of objects, or of texts whose ids count from 0)."""
    rows = _read_json_list(path) if path.name.lower().endswith(".json") else _read_table(path)
    found: dict[str, tuple[str, str, str, str]] = {}
    names: dict[str, str] | None = None
    for row in rows:
        if names is None:
            names = columns.find(row, ("id", "text"), ITEM_FIELDS[2:])
        name = read_identifier(cell(row, names, "id"), "id", row.place)
        text = text_of(cell(row, names, "text"), "text", row.place).strip()
        for field, value in (("id", name), ("text", text)):
            if not value:
                raise DataError(f"{row.place}: field {field!r} is empty", hint="complete the row or remove it")
        group, stance, question = (_label(row, names, field) for field in ITEM_FIELDS[2:])
        if name in found and found[name] != (text, group, stance, question):
            raise DataError(f"{row.place}: id {name!r} stands already for another text", hint="make ids unique")
        found[name] = (text, group, stance, question)
    return _arrange(found)


def _arrange(found: dict[str, tuple[str, str, str, str]]) -> MirrorItems:
    ids = tuple(sorted(found))
    texts, groups, stances, questions = zip(*(found[name] for name in ids), strict=True)
    first: dict[str, int] = {}
    codes: dict[tuple[str, str], int] = {}
    return MirrorItems(
        ids,
        texts,
        groups,
        stances,
        questions,
        index={name: number for number, name in enumerate(ids)},
        same_text=np.array([first.setdefault(text, number) for number, text in enumerate(texts)], dtype=np.int64),
        group_codes=np.array(
            [codes.setdefault(key, len(codes)) for key in zip(groups, stances, strict=True)], dtype=np.int64
        ),
    )


def _label(row: SourceRow, names: dict[str, str], field: str) -> str:
    return read_identifier(row.values.get(names[field]), field, row.place).strip() if field in names else ""


def _read_table(path: Path) -> Iterator[SourceRow]:
    if suffix_of(path) is not None and not path.is_file():
        raise DataError(f"{str(path)!r} does not exist", hint="--items names the file with the texts")
    return read_rows(path)


def _read_json_list(path: Path) -> Iterator[SourceRow]:
    values = parse_json(read_text(path, raises=DataError), str(path))
    if not isinstance(values, list) or not values:
        raise DataError(f"{path}: expected a list of texts or objects", hint='for example [{"id": "1", "text": "…"}]')
    for number, value in enumerate(values):
        place = Place(str(path), "row", number + 1)
        if not isinstance(value, str | dict):
            raise DataError(f"{place}: expected a text or an object with id and text")
        yield SourceRow({"id": number, "text": value} if isinstance(value, str) else value, place)
