"""Stance passages: short texts that show where a person, or an answer, stands on one axis of taste or value.

Training material only: they tune an encoder to tell stances apart, are no suite, and no number is measured on them.
Each situation comes in texts at both poles of the axis, posts or answers, or in two posts at opposite poles of up to
three axes; each question in answers at both poles of one axis or at all four of two: the topic says nothing. A wish is
what a person asks for outright, plain or negated.
Beside them stand sound answers of forms that the suite's answers do not have, which show no stance, and questions with
sound and flawed answers, and sentences in which somebody says what is wanted, or nothing of the kind.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, model_validator

from prbench import files
from prbench.errors import DataError
from prbench.types import Frozen, Text

_FILE = Path(__file__).parent / "embedded" / "training" / "passages.parquet"
_FORMS = _FILE.with_name("forms.parquet")
_FLAWS = _FILE.with_name("flaws.parquet")
_SAYINGS = _FILE.with_name("sayings.parquet")
_COLUMNS = ("axis", "pole", "kind", "situation", "text")


class Passage(Frozen):
    """One text and the stance it shows."""

    axis: Text
    pole: Text
    kind: Literal["post", "answer", "wish"]
    situation: Text
    """Subject that both poles write about; of a wish, the phrase it is made of."""
    text: Text
    denied: bool = False
    """Whether a wish that is made of a phrase says that the phrase is not wanted."""

    @property
    def framed(self) -> bool:
        """Whether this is a wish that is made of a phrase, so that it is known to want it or not."""
        return self.kind == "wish" and self.situation != self.text


class WrittenAnswer(Frozen):
    """A question with a sound answer of a form that the suite's answers do not have."""

    question: Text
    answer: Text
    form: Text
    """A few words for people: a list, a verse, one word."""


class SoundAndFlawed(Frozen):
    """Answers to one question: sound ones that differ in taste, and flawed ones that are as well written."""

    question: Text
    sound: tuple[Text, ...] = Field(min_length=2)
    flawed: tuple[Text, ...] = Field(min_length=1)
    flaws: tuple[Text, ...] = ()
    """What is wrong with each flawed answer, for people; it does not ship."""

    @model_validator(mode="after")
    def _apart(self) -> "SoundAndFlawed":
        if shared := set(self.sound) & set(self.flawed):
            raise ValueError(f"{sorted(shared)[0]!r} is sound and flawed")
        if self.flaws and len(self.flaws) != len(self.flawed):
            raise ValueError(f"{len(self.flawed)} flawed answers have {len(self.flaws)} notes")
        return self


class Saying(Frozen):
    """A sentence as people write it."""

    text: Text
    wants: bool | None
    """Whether the writer says that what it names is wanted, or is not; None where it says neither."""


_Row = TypeVar("_Row", WrittenAnswer, SoundAndFlawed, Saying)


@cache
def load_passages() -> tuple[Passage, ...]:
    """The passages that ship with the package.

    Example:
        >>> sorted({passage.pole for passage in load_passages() if passage.axis == "spend"})
        ['money', 'time']
    """
    return tuple(Passage.model_construct(**row) for row in files.parquet_rows(_FILE, hint="install the package again"))


@cache
def load_forms() -> tuple[tuple[str, str], ...]:
    """Questions and sound answers of many forms, that ship with the package: lists, code, tables, verse, a word.

    Example:
        >>> "Adverb" in dict(load_forms()).values()
        True
    """
    rows = files.parquet_rows(_FORMS, hint="install the package again")
    return tuple((row["question"], row["answer"]) for row in rows)


@cache
def load_flaws() -> tuple[SoundAndFlawed, ...]:
    """Questions with sound and flawed answers that ship with the package, beside those of the suite `generic`.

    Example:
        >>> min(len(one.flawed) for one in load_flaws())
        2
    """
    rows = files.parquet_rows(_FLAWS, hint="install the package again")
    return tuple(
        SoundAndFlawed.model_construct(question=row["question"], sound=(*row["sound"],), flawed=(*row["flawed"],))
        for row in rows
    )


@cache
def load_sayings() -> tuple[Saying, ...]:
    """Sentences that ship with the package: what people want, what they do not want, and neither.

    Example:
        >>> sorted({str(saying.wants) for saying in load_sayings()})
        ['False', 'None', 'True']
    """
    rows = files.parquet_rows(_SAYINGS, hint="install the package again")
    return tuple(Saying.model_construct(**row) for row in rows)


def read_sources(paths: Iterable[Path]) -> list[Passage]:
    """Read the files that were written, one situation a line: a file for one axis, or lines that name their axes."""
    found = []
    for path in paths:
        for number, line in files.read_lines(path):
            row = files.parse_json(line, f"{path}, line {number}")
            told = _of_axes(row, f"{path}, line {number}") if "axes" in row else _of_situation(row, path.stem)
            found += [Passage.model_validate(dict(zip(_COLUMNS, values, strict=True))) for values in told]
    return found


def _of_situation(row: Mapping[str, Any], axis: str) -> Iterator[tuple[str, ...]]:
    for kind in ("post", "answer"):
        for pole, text in row.get(kind, {}).items():
            yield axis, pole, kind, row["situation"], text


def _of_axes(row: Mapping[str, Any], place: str) -> Iterator[tuple[str, ...]]:
    """A text that shows a pole of each of several axes is a passage of each: answers to a question, or posts."""
    kind, subject = ("answer", row["question"]) if "question" in row else ("post", row["situation"])
    for poles, text in row[f"{kind}s"].items():
        if len(poles.split("+")) != len(row["axes"]):
            raise DataError(f"{place}: {poles!r} does not name a pole of each of {row['axes']}", hint="join them by +")
        for axis, pole in zip(row["axes"], poles.split("+"), strict=True):
            yield axis, pole, kind, subject, text


def write_passages(passages: Iterable[Passage], path: Path) -> None:
    """Write passages as one Parquet file; the same passages give the same bytes."""
    _write([passage.model_dump() for passage in passages], (*_COLUMNS, "denied"), path)


def write_forms(sources: Iterable[Path], path: Path) -> None:
    """Write questions and answers that were written, one a line, as one Parquet file; no question stands twice."""
    found = _read(sources, WrittenAnswer, hint="give it question, answer and form")
    _write([one.model_dump() for one in _once(found, "question")], ("question", "answer"), path)


def write_flaws(sources: Iterable[Path], path: Path) -> None:
    """Write questions with sound and flawed answers, one a line, as one Parquet file; no question stands twice."""
    found = _read(sources, SoundAndFlawed, hint="give it question, sound, flawed and flaws")
    _write([one.model_dump() for one in _once(found, "question")], ("question", "sound", "flawed"), path)


def write_sayings(sources: Iterable[Path], path: Path) -> None:
    """Write sentences, one a line, as one Parquet file; none stands twice."""
    found = _read(sources, Saying, hint="give it text, and wants: true, false or null")
    _write([one.model_dump() for one in _once(found, "text")], ("text", "wants"), path)


def _read(sources: Iterable[Path], kind: type[_Row], *, hint: str) -> list[_Row]:
    rows = list[_Row]()
    for source in sources:
        for number, line in files.read_lines(source):
            place = f"{source}, line {number}"
            with files.checked(place, raises=DataError, hint=hint):
                rows.append(kind.model_validate(files.parse_json(line, place)))
    return rows


def _once(rows: list[_Row], name: str) -> list[_Row]:
    counts = Counter(getattr(row, name) for row in rows)
    if twice := next((value for value, count in counts.items() if count > 1), None):
        raise DataError(f"the {name} {twice!r} stands twice", hint="write another in place of one of them")
    return rows


def _write(rows: Iterable[Mapping[str, Any]], names: Iterable[str], path: Path) -> None:
    """Write columns of rows; the same rows give the same bytes."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    rows = list(rows)
    columns = {name: arrow.array([row[name] for row in rows]) for name in names}
    with files.replacing(path) as partial:
        parquet.write_table(arrow.table(columns), partial, compression="zstd", compression_level=19)
