"""Rows of a history file as entries: what each user wrote, and which of it asks something.

Three layouts, told apart by their columns: posts (`user`, `text`, perhaps a title) of which those that ask are the
questions; posts and questions with a `narrative`; and questions that bring their `profile`, which is the paper's own
layout and read elsewhere. Nothing is guessed beyond that; what cannot be used is counted with its reason.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from prbench.build.written.cleaning import clean, has_unseen
from prbench.data import Place, SourceRow
from prbench.data.fields import content_id, read_aspects, read_identifier, read_text
from prbench.data.rows import missing_field
from prbench.errors import DataError, did_you_mean
from prbench.prompts.writing import count_words
from prbench.types import Aspect

FIELDS = ("user", "text", "id", "question", "narrative", "category", "time", "rubric_aspects")
_OTHER_NAMES = {
    "user": ("user_id", "userId", "author"),
    "text": ("body", "content", "post"),
    "id": ("post_id",),
    "question": ("title",),
    "time": ("created", "created_at", "timestamp", "date"),
    "rubric_aspects": ("aspects",),
}
_LEAST_QUESTION_WORDS, _MOST_QUESTION_WORDS = 4, 60
_LEAST_STORY_WORDS = 8
_ASKS = re.compile(r"[?？؟][\"'”’)]*$")
_SENTENCE_END = re.compile(r"(?<=[.!?？؟。])[\"'”’]*\s+|(?<=[？。])|\n+")


class WrittenEntry(NamedTuple):
    """One thing that a user wrote: a post, and a question where it asks something."""

    id: str
    user: str
    text: str
    """Text of the entry as a post of the profile."""
    category: str
    time: float | None
    question: str = ""
    """Question of the entry; empty where nothing is asked that a suite could ask again."""
    narrative: str = ""
    told: bool = False
    """Whether the narrative came as such, and is not just the post itself."""
    aspects: tuple[Aspect, ...] = ()


class EntryReader:
    """Turns rows into entries; rows of one file may have different columns, as JSONL allows.

    Args:
        columns: Field → column, as the user gave it.
        left_out: Counts what was not used, by reason.
    """

    def __init__(self, columns: Mapping[str, str], left_out: Counter[str]) -> None:
        for field in columns:
            if field not in FIELDS:
                raise DataError(f"--column maps an unknown field {field!r}", hint=did_you_mean(field, FIELDS))
        self._mapped = columns
        self._left_out = left_out
        self._columns: dict[str, None] = {}
        self._seen: dict[str, tuple[WrittenEntry, Place]] = {}
        self._posts: set[tuple[str, str]] = set()

    def read(self, rows: Iterator[SourceRow]) -> list[WrittenEntry]:
        """Read all rows; an id that stands for two different entries is an error, a repeated entry is counted.

        Where any row has a narrative, those are the questions and posts that ask are posts.
        """
        for row in rows:
            self._columns.update(dict.fromkeys(row.values))
            if entry := self._entry(row):
                self._claim(entry, row.place)
        self._check_mapping()
        entries = [entry for entry, _ in self._seen.values()]
        if any(entry.told for entry in entries):
            return [entry if entry.told else entry._replace(question="", narrative="") for entry in entries]
        return entries

    def _claim(self, entry: WrittenEntry, place: Place) -> None:
        there, where = self._seen.get(entry.id, (None, place))
        if there == entry:
            self._left_out["rows that stand twice"] += 1
        elif not entry.told and (entry.user, entry.text) in self._posts:
            self._left_out["posts that the same user wrote before"] += 1
        elif there is not None:
            raise DataError(
                f"{place}: id {entry.id!r} stands already in {where}, with other content",
                hint="give each row its own id, or map no id to have ids made from the content",
            )
        else:
            self._seen[entry.id] = (entry, place)
            self._posts.add((entry.user, entry.text))

    def _check_mapping(self) -> None:
        for field, column in self._mapped.items():
            if column not in self._columns:
                raise DataError(
                    f"no row has a column {column!r}, which --column maps to {field!r}",
                    hint=f"{did_you_mean(column, self._columns)} (columns: {', '.join(self._columns)})",
                )
        if not any(name in self._columns for field in ("text", "narrative") for name in self._names(field)):
            raise DataError(
                "no row has a text",
                hint=f"map it with --column text=COLUMN (columns: {', '.join(self._columns)})",
            )

    def _entry(self, row: SourceRow) -> WrittenEntry | None:
        if not any(name in row.values for name in self._names("user")):
            raise missing_field("user", row.values, row.place)
        user = read_identifier(self._cell(row, "user"), "user", row.place)
        if not user:
            raise DataError(f"{row.place}: field 'user' is empty", hint="complete the row or remove it")
        text, title, narrative = (self._text(row, field) for field in ("text", "question", "narrative"))
        if not (text or narrative):
            self._left_out["rows without a text"] += 1
            return None
        question, story = self._asked(text, title, narrative, "question" in row.values)
        post = "\n".join(part for part in (title, text or narrative) if part)
        return WrittenEntry(
            id=read_identifier(self._cell(row, "id"), "id", row.place) or content_id("post", user, post),
            user=user,
            text=post,
            category=self._text(row, "category"),
            time=_time(self._cell(row, "time"), row.place),
            question=question,
            narrative=story,
            told=bool(question and narrative),
            aspects=read_aspects(self._cell(row, "rubric_aspects"), row.place) if question else (),
        )

    def _asked(self, text: str, title: str, narrative: str, named: bool) -> tuple[str, str]:
        """The question of a row and the story behind it; both empty for a post that asks nothing."""
        if narrative:
            if not title:
                self._left_out["narratives without a question"] += 1
            return (title, narrative) if title else ("", "")
        question = title if title and (named or _ASKS.search(title)) else "" if title else find_question(text)
        if question and count_words(text.replace(question, " ")) < _LEAST_STORY_WORDS:
            self._left_out["questions without a story behind them"] += 1
            return "", ""
        return (question, text) if question else ("", "")

    def _text(self, row: SourceRow, field: str) -> str:
        raw = read_text(self._cell(row, field), field, row.place)
        if has_unseen(raw):
            self._left_out["texts with control characters (cleaned)"] += 1
        return clean(raw)

    def _cell(self, row: SourceRow, field: str) -> Any:
        return next((row.values[name] for name in self._names(field) if name in row.values), None)

    def _names(self, field: str) -> tuple[str, ...]:
        """The columns that may hold a field: the one that it is mapped to, else its own and common other names."""
        return (self._mapped[field],) if field in self._mapped else (field, *_OTHER_NAMES.get(field, ()))


def find_question(text: str) -> str:
    """The sentence of a post that asks most: the longest one that ends in a question mark; empty if there is none.

    Example:
        >>> find_question("My tea is bitter. How long should green tea steep? Anyone?")
        'How long should green tea steep?'
        >>> find_question("Tea is fine.")
        ''
    """
    sentences = [part.strip() for part in _SENTENCE_END.split(text) if part]
    asking = [
        sentence
        for sentence in sentences
        if _ASKS.search(sentence) and _LEAST_QUESTION_WORDS <= count_words(sentence) <= _MOST_QUESTION_WORDS
    ]
    return max(asking, key=len, default="")


def _time(value: Any, place: Place) -> float | None:
    """Seconds since 1970, or whatever number a source counts in."""
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return _seconds(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        try:
            return _seconds(datetime.fromisoformat(str(value)))
        except ValueError as error:
            raise DataError(
                f"{place}: field 'time' is {value!r}, expected a number or a date",
                hint="write dates as 2026-01-31 or 2026-01-31T12:00:00, or map no time",
            ) from error
    if not math.isfinite(number):
        raise DataError(f"{place}: field 'time' is {value!r}, expected a number or a date")
    return number


def _seconds(when: datetime) -> float:
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
