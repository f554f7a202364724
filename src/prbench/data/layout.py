"""Layouts that turn rows into pairs and questions: which column is which field, and what a missing one becomes.

The paper's layout (`id, question, profile, rubric_aspects, narrative, category, chosen, rejected`) and TRL's
(`prompt, chosen, rejected`) are understood as they are, also with lists of chosen and rejected answers in a row;
anything else by a column mapping. A missing id or user is derived from content, so that it is the same on every
machine. Unknown columns are ignored and listed, never guessed at.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import eq
from typing import Any, Literal, NamedTuple, cast

from prbench.columns import ModelColumns
from prbench.data.conversation import conversation, read_exchange, read_messages, read_turns
from prbench.data.fields import (
    ProfileReader,
    Rubrics,
    content_id,
    derive_user,
    read_identifier,
    read_plain_tags,
    read_tags,
    read_text,
)
from prbench.data.rows import Place, RowBatch, SourceRow, missing_field
from prbench.data.suite import pair_columns
from prbench.errors import DataError, did_you_mean
from prbench.types import CHOSEN_ANSWER, ITEM, REJECTED_ANSWER, Aspect, Pair, Post, Question, written_out

FIELDS = (*Pair.model_fields, "split")
"""Every field that a column can be mapped to; `split` becomes a tag."""

_ROW_BITS = 48
_ALIASES = {"question": "prompt", "user": "user_id"}


class _Common(NamedTuple):
    """Fields that a pair and a question have in common."""

    narrative: str
    category: str
    tags: dict[str, str]
    profile: tuple[Post, ...]
    rubric_aspects: tuple[Aspect, ...]


_ORDER = ("id", "user", "question", "chosen", "rejected", *_Common._fields, "turns")
"""Fields of a pair, as they are read."""


class RowReader:
    """Turns rows into pairs or questions and remembers what it had to do.

    Args:
        columns: Field → column, where a column is named otherwise than its field.
    """

    def __init__(self, columns: Mapping[str, str] | None = None) -> None:
        self.left_out: Counter[str] = Counter()
        self.derived_users = False
        self.columns = dict(columns or {})
        self._asked = frozenset(self.columns)
        self._checked = not self.columns
        self._ignored: dict[str, None] = {}
        self._profiles = ProfileReader(self.left_out)
        self._rubrics = Rubrics()
        self._texts: dict[str, str] = {}
        """Questions and answers: both halves of a couple have the same ones, which are kept once."""
        self._columns_of: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        self._files: dict[tuple[str, str], int] = {}
        self._places: dict[str, int] = {}
        """File and row where each id stands, in one number."""
        for field in self.columns:
            if field not in FIELDS:
                raise DataError(f"columns maps an unknown field {field!r}", hint=did_you_mean(field, FIELDS))

    def read_pairs(self, batches: Iterable[RowBatch]) -> ModelColumns[Pair]:
        """Read every row as a pair, or as several where it has lists of answers; ids must be unique."""
        pairs = pair_columns(())
        for batch in batches:
            columns = self._read_plain(batch)
            if columns is None:
                found = [pair for row in batch.rows() for pair in self._read_row(row)]
                columns = {name: [pair[place] for pair in found] for place, name in enumerate(_ORDER)}
            pairs.add_columns(columns)
        return pairs

    def read_questions(self, rows: Iterable[SourceRow]) -> list[Question]:
        """Read every row as a question; answers, where there are any, are ignored."""
        return [self._read_question(row) for row in rows]

    def where(self, item: Question) -> str:
        """A pair or question by its id and the place where it was read, for messages."""
        return f"{self._place(item.id)}, {item.id!r}" if item.id in self._places else repr(item.id)

    def notes(self) -> list[str]:
        """Return notes on what was left out and ignored, for the dataset's record."""
        notes = [f"{count} {reason} left out" for reason, count in sorted(self.left_out.items())]
        if self._ignored:
            notes.append(f"columns ignored: {', '.join(sorted(self._ignored))}")
        return notes

    def _read_plain(self, rows: RowBatch) -> dict[str, Sequence[Any]] | None:
        """Read rows by column, where all of them are plain: nothing to derive, to unfold or to complain of.

        Whatever is not plain is left to `_read_row`, which knows what is wrong with which row.
        """
        if (cells := self._plain_cells(rows)) is None:
            return None
        ids = cells["id"]
        tags = [read_plain_tags(cell) for cell in cells["tags"]]
        if None in tags or len(set(ids)) < len(ids) or not self._places.keys().isdisjoint(ids):
            return None
        here = Place(rows.file, rows.unit, rows.numbers[0])
        try:
            profiles = [self._profiles.read(cell, here) for cell in cells["profile"]]
            rubrics = [self._rubrics.read(cell, here) for cell in cells["rubric_aspects"]]
        except DataError:
            return None
        file = self._files.setdefault((rows.file, rows.unit), len(self._files)) << _ROW_BITS
        self._places.update(zip(ids, (file | number for number in rows.numbers), strict=True))
        one, split = self._texts.setdefault, rows.split
        return {
            **cells,
            **{name: list(map(one, cells[name], cells[name])) for name in ("user", "question", "chosen", "rejected")},
            **{name: [text or "" for text in cells[name]] for name in ("narrative", "category")},
            "tags": [{name: one(value, value) for name, value in _with_split(tag, split).items()} for tag in tags],
            "profile": profiles,
            "rubric_aspects": rubrics,
            "turns": [()] * len(ids),
        }

    def _plain_cells(self, rows: RowBatch) -> dict[str, list[Any]] | None:
        """The rows by field, where all have plain texts."""
        self._cells(next(rows.rows()))
        nothing = [None] * len(rows.numbers)
        cells = {field: rows.columns.get(column, nothing) for field, column in self._columns_of[tuple(rows.columns)]}
        if any(cells["turns"]) or any(cells["split"]) or any(map(eq, cells["chosen"], cells["rejected"])):
            return None
        for field in ("id", "user", "question", "chosen", "rejected"):
            if set(map(type, cells[field])) != {str} or not all(map(str.strip, cells[field])):
                return None
        optional = {str, type(None)}
        return cells if all(set(map(type, cells[name])) <= optional for name in ("narrative", "category")) else None

    def _read_row(self, row: SourceRow) -> list[tuple[Any, ...]]:
        """The pairs of a row: each chosen answer against each rejected one."""
        cells, place = self._cells(row), row.place
        for field in ("chosen", "rejected"):
            if cells.get(field) is None:
                raise missing_field(field, row.values, place)
        if not (_are_texts(cells["chosen"]) or _are_texts(cells["rejected"])):
            return [self._read_pair(cells, row)]
        chosen, rejected = (cell if _are_texts(cell) else [cell] for cell in (cells["chosen"], cells["rejected"]))
        item = read_identifier(cells.get("id"), "id", place) or content_id("item", str(cells.get("question")), *chosen)
        tags = read_tags(cells.get("tags"), place)
        found = []
        for (i, good), (j, bad) in itertools.product(enumerate(chosen), enumerate(rejected)):
            own = {**tags, ITEM: item, CHOSEN_ANSWER: str(i), REJECTED_ANSWER: str(j)}
            one = {**cells, "id": f"{item}/{i}/{j}", "chosen": good, "rejected": bad, "tags": own}
            found.append(self._read_pair(one, row))
        return found

    def _read_pair(self, cells: Mapping[str, Any], row: SourceRow) -> tuple[Any, ...]:
        """All fields of a pair, checked, in the order of `_ORDER`."""
        place = row.place
        exchange = read_exchange(cells.get("question"), cells["chosen"], cells["rejected"], place)
        if cells.get("turns"):
            exchange = exchange._replace(turns=read_turns(cells["turns"], exchange.question, place))
        question, chosen, rejected, turns = exchange
        if not question and cells.get("question") is None:
            raise missing_field("question", row.values, place)
        for field, text in (("question", question), ("chosen", chosen), ("rejected", rejected)):
            if not text or text.isspace():
                raise DataError(f"{place}: field {field!r} is empty", hint="complete the row or remove it")
        if chosen == rejected:
            raise DataError(f"{place}: fields 'chosen' and 'rejected' are the same text", hint="remove the row")
        common = self._read_common(cells, row)
        user = self._read_user(cells, common, question, place)
        name = read_identifier(cells.get("id"), "id", place) or content_id("pair", user, question, chosen, rejected)
        self._claim(name, place)
        one = self._texts.setdefault
        texts = (one(question, question), one(chosen, chosen), one(rejected, rejected))
        return (name, user, *texts, *common, turns)

    def _read_question(self, row: SourceRow) -> Question:
        cells, place = self._cells(row), row.place
        asked = cells.get("question")
        if asked is None:
            raise missing_field("question", row.values, place)
        messages = () if isinstance(asked, str) else read_messages(asked, "question", place)
        question = asked if isinstance(asked, str) else written_out(messages)
        turns = read_turns(cells["turns"], question, place) if cells.get("turns") else conversation(messages)
        if not question.strip():
            raise DataError(f"{place}: field 'question' is empty", hint="complete the row or remove it")
        common = self._read_common(cells, row)
        user = self._read_user(cells, common, question, place)
        name = read_identifier(cells.get("id"), "id", place) or content_id("question", user, question)
        self._claim(name, place)
        plain = {"narrative": common.narrative, "category": common.category, "tags": common.tags}
        shared = {"profile": common.profile, "rubric_aspects": common.rubric_aspects, "turns": turns}
        return Question(id=name, user=user, question=question, **plain).model_copy(update=shared)

    def _read_common(self, cells: Mapping[str, Any], row: SourceRow) -> _Common:
        place = row.place
        tags = read_tags(cells.get("tags"), place)
        split = tags.get("split") or read_text(cells.get("split"), "split", place) or row.split
        return _Common(
            read_text(cells.get("narrative"), "narrative", place),
            read_text(cells.get("category"), "category", place),
            _with_split(tags, split),
            self._profiles.read(cells.get("profile"), place),
            self._rubrics.read(cells.get("rubric_aspects"), place),
        )

    def _read_user(self, cells: Mapping[str, Any], common: _Common, question: str, place: Place) -> str:
        if user := read_identifier(cells.get("user"), "user", place):
            return user
        self.derived_users = True
        return derive_user(common.profile, question)

    def _cells(self, row: SourceRow) -> dict[str, Any]:
        """The row by field instead of by column."""
        if not self._checked:
            self._check_mapping(row)
        values, names = row.values, tuple(row.values)
        if names not in self._columns_of:
            for field, alias in _ALIASES.items():
                if field not in self.columns and field not in values and alias in values:
                    self.columns[field] = alias
            self._columns_of[names] = columns = [(field, self._column(field, row)) for field in FIELDS]
            used = {column for _, column in columns}
            self._ignored.update(dict.fromkeys(column for column in names if column not in used))
        return {field: values.get(column) for field, column in self._columns_of[names]}

    def _column(self, field: str, row: SourceRow) -> str:
        if field in self._asked or (field in self.columns and field not in row.values):
            return self.columns[field]
        return field

    def _check_mapping(self, row: SourceRow) -> None:
        for field, column in self.columns.items():
            if column not in row.values:
                present = ", ".join(row.values)
                raise DataError(
                    f"{row.place}: no column {column!r}, which is mapped to {field!r}",
                    hint=f"{did_you_mean(column, row.values)} (columns: {present})",
                )
        self._checked = True

    def _claim(self, name: str, place: Place) -> None:
        if name in self._places:
            raise DataError(
                f"{place}: id {name!r} stands already in {self._place(name)}",
                hint="ids must be unique; remove or rename one of the two",
            )
        file = self._files.setdefault((place.file, place.unit), len(self._files))
        self._places[name] = file << _ROW_BITS | place.number

    def _place(self, name: str) -> Place:
        number = self._places[name]
        file, unit = list(self._files)[number >> _ROW_BITS]
        return Place(file, cast(Literal["line", "row"], unit), number & (1 << _ROW_BITS) - 1)


def _with_split(tags: dict[str, str] | None, split: str) -> dict[str, str]:
    """Tags with the split of the file where the row has none."""
    own = tags or {}
    return own if own.get("split") or not split else {**own, "split": split}


def _are_texts(cell: Any) -> bool:
    """Whether a cell holds several answers, and not the messages of one."""
    return isinstance(cell, list) and bool(cell) and all(isinstance(one, str) for one in cell)
