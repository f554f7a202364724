"""Facts of each pair that the statistics need: labels and lengths, no text; one line of a run's `pairs.jsonl` each."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from prbench.columns import ModelColumns
from prbench.data import Suite
from prbench.data.fingerprint import hash_text
from prbench.stats.arrays import Codes
from prbench.stats.clusters import encode
from prbench.types import Count, Frozen, Pair, read_stances

Content = tuple[str, str, str, str]
"""Content by which a pair is the same pair in two runs: two suites may use the same ids."""


class PairRow(Frozen):
    """Facts of a pair that the statistics need: labels and lengths, no text. One line of a run's `pairs.jsonl`."""

    id: str
    user: str
    question: str
    """Hash of the question's text."""
    answers: str = ""
    """Content hash of chosen and rejected answer."""
    category: str = ""
    tags: Mapping[str, str] = {}
    chosen_words: Count
    rejected_words: Count

    @classmethod
    def of(cls, pair: Pair) -> "PairRow":
        """Reduce a pair to its row."""
        return cls(
            id=pair.id,
            user=pair.user,
            question=hash_text(pair.question)[:16],
            answers=hash_text(f"{pair.chosen}\x00{pair.rejected}")[:16],
            category=pair.category,
            tags=dict(pair.tags),
            chosen_words=len(pair.chosen.split()),
            rejected_words=len(pair.rejected.split()),
        )

    @property
    def content(self) -> Content:
        """Content by which a pair is the same pair in two runs."""
        return (self.id, self.user, self.question, self.answers)

    @property
    def item(self) -> str:
        """Item that is asked: the pair of items where a suite says so (all may share a question), else the question."""
        return self.tags.get("item_pair", self.question)

    @property
    def stances(self) -> dict[str, str]:
        """Axes that decide the pair, each with the pole that its user wants there."""
        return read_stances(self.tags)

    @property
    def unit(self) -> str:
        """Unit that is independent of the others: the couple where users come in couples, else the user."""
        return self.tags.get("couple", self.user)


class PairRows(ModelColumns[PairRow]):
    """The rows of all pairs of a run, by column; labels are numbered in their own order, once.

    Example:
        >>> rows = PairRows([PairRow(id="1", user="ann", question="q", chosen_words=3, rejected_words=4)])
        >>> rows.units.tolist(), rows.place["1"]
        ([0], 0)
    """

    def __init__(self, rows: Iterable[PairRow] = ()) -> None:
        super().__init__(PairRow)
        self.extend(rows)

    @classmethod
    def of(cls, rows: Iterable[PairRow]) -> "PairRows":
        """The same rows as columns; those that are columns already as they are."""
        return rows if isinstance(rows, PairRows) else cls(rows)

    @classmethod
    def of_suite(cls, suite: Suite) -> "PairRows":
        """The rows of all pairs of a suite, made by column."""
        rows = cls()
        asked, chosen, rejected = (suite.column(name) for name in ("question", "chosen", "rejected"))
        hashes = {question: hash_text(question)[:16] for question in set(asked)}
        words = {text: len(text.split()) for text in {*chosen, *rejected}}
        rows.add_columns(
            {
                **{name: suite.column(name) for name in ("id", "user", "category", "tags")},
                "question": map(hashes.__getitem__, asked),
                "answers": (hash_text(f"{one}\x00{two}")[:16] for one, two in zip(chosen, rejected, strict=True)),
                "chosen_words": map(words.__getitem__, chosen),
                "rejected_words": map(words.__getitem__, rejected),
            },
            packed=("tags",),
        )
        return rows

    @cached_property
    def place(self) -> dict[str, int]:
        """The place of each pair, by its id."""
        return {id: place for place, id in enumerate(self.column("id"))}

    @cached_property
    def contents(self) -> list[Content]:
        """Content of each pair, by which it is the same pair in two runs."""
        return list(zip(*map(self.column, ("id", "user", "question", "answers")), strict=True))

    @cached_property
    def content_place(self) -> dict[Content, int]:
        """The place of each pair, by its content."""
        return {content: place for place, content in enumerate(self.contents)}

    @cached_property
    def in_order(self) -> Codes:
        """Places in the order of the ids."""
        ids = self.column("id")
        return np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)

    def tag(self, name: str) -> list[str | None]:
        """Return the value of each pair under a tag."""
        if name not in self._tags:
            self._tags[name] = self.entries("tags", name)
        return self._tags[name]

    @cached_property
    def _tags(self) -> dict[str, list[str | None]]:
        return {}

    @cached_property
    def units(self) -> Codes:
        """Numbers of the independent units: couples where users come in couples, else users."""
        users = self.column("user")
        return _codes(
            user if couple is None else couple for couple, user in zip(self.tag("couple"), users, strict=True)
        )

    @cached_property
    def items(self) -> Codes:
        """Numbers of the items that are asked: the pair of items where a suite says so, else the question."""
        asked = self.column("question")
        return _codes(one if pair is None else pair for pair, one in zip(self.tag("item_pair"), asked, strict=True))

    @cached_property
    def users(self) -> Codes:
        """Numbers of the users."""
        return _codes(self.column("user"))

    @cached_property
    def mirrors(self) -> Codes:
        """Mirrors, numbered; −1 where a pair is in none."""
        found = self.tag("mirror")
        there = np.array([bool(mirror) for mirror in found], dtype=np.bool_)
        codes = np.full(len(found), -1, dtype=np.int64)
        codes[there] = _codes(mirror for mirror in found if mirror)
        return codes

    @cached_property
    def chosen_words(self) -> Codes:
        """Lengths of the chosen answers."""
        return self.numbers("chosen_words")

    @cached_property
    def rejected_words(self) -> Codes:
        """Lengths of the rejected answers."""
        return self.numbers("rejected_words")

    @cached_property
    def stances(self) -> list[Mapping[str, str]]:
        """Axes that decide each pair, with the pole that its user wants there; equal ones are one object."""
        known: dict[Any, Mapping[str, str]] = {}
        found = []
        for key in zip(self.tag("axis"), self.tag("pole"), strict=True):
            if key not in known:
                axis, pole = key
                known[key] = read_stances({"axis": axis or "", "pole": pole or ""})
            found.append(known[key])
        return found


def _codes(labels: Iterable[str]) -> Codes:
    return encode(labels)[0]
