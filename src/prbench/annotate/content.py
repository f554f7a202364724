"""Content of the study's file as judgments of chosen and rejected: the one place where places meet labels."""

import json
import sqlite3
from hashlib import sha256
from typing import Literal, NamedTuple

from prbench.annotate.answer import AnnotatorAnswer, Scores
from prbench.annotate.store import Store
from prbench.annotate.study import AnnotationStudy, read_study
from prbench.annotate.tasks import answer_of
from prbench.errors import ConfigError
from prbench.files import checked

Side = Literal["chosen", "rejected"]
Verdict = Literal["chosen", "rejected", "unsure"]


class AnnotatorJudgment(NamedTuple):
    """The latest answer of one annotator on one pair."""

    annotator: int
    pair: str
    """Id of the pair in the suite."""
    texts: str
    """Equal for pairs with the same question and the same two answers, such as the halves of a mirror couple."""
    chosen_first: bool
    chosen_is_a: bool
    """Whether the chosen answer is text `a`, by an order of the two texts that knows nothing of labels."""
    answer: AnnotatorAnswer
    version: int
    saved_at: str

    @property
    def verdict(self) -> Verdict:
        """Preferred answer, by label."""
        if self.answer.preference == "unsure":
            return "unsure"
        return "chosen" if (self.answer.preference == "first") == self.chosen_first else "rejected"

    @property
    def credit(self) -> float:
        """1 where the label is met, ½ where the annotator could not tell, 0 else."""
        return {"chosen": 1.0, "unsure": 0.5, "rejected": 0.0}[self.verdict]

    @property
    def wanted(self) -> str:
        """Preferred answer, by text: `a`, `b` or `unsure`.

        Agreement is counted on this. Counted on chosen and rejected, annotators who all follow the labels would seem to
        agree no better than chance.
        """
        if self.verdict == "unsure":
            return "unsure"
        return "a" if (self.verdict == "chosen") == self.chosen_is_a else "b"

    def scores(self, side: Side) -> Scores:
        """The ratings of the chosen or of the rejected answer."""
        found = self.answer.first if (side == "chosen") == self.chosen_first else self.answer.second
        if found is None:
            raise ValueError(f"pair {self.pair!r} was judged without ratings")
        return found


class AnnotatorSummary(NamedTuple):
    """Summary of one annotator's work."""

    id: int
    name: str
    assigned: int
    done: int
    deleted: bool


class PairTexts(NamedTuple):
    """A pair as the study keeps it."""

    id: str
    question: str
    category: str
    chosen: str
    rejected: str

    @property
    def key(self) -> str:
        """Equal for equal texts, whichever is chosen."""
        return json.dumps([self.question, *sorted((self.chosen, self.rejected))], ensure_ascii=False)

    @property
    def chosen_is_a(self) -> bool:
        """Whether the chosen text comes first in an order as good as random."""
        one, other = (sha256(f"{self.question}\0{text}".encode()).digest() for text in (self.chosen, self.rejected))
        return one < other


class StudyContent(NamedTuple):
    """All there is in a study."""

    study: AnnotationStudy
    people: tuple[AnnotatorSummary, ...]
    judgments: tuple[AnnotatorJudgment, ...]
    """Judgments by annotator, in the order in which pairs were shown."""
    pairs: dict[str, PairTexts]
    posts: dict[int, tuple[str, ...]]
    """Posts that people wrote, by annotator; mode self only."""


def read_content(store: Store) -> StudyContent:
    """Read a study as it stands, in one view of the file."""
    study = read_study(store)
    with checked(store.path, raises=ConfigError, hint="restore the file from a copy"), store.reading() as connection:
        pairs = {row["source"]: _texts(row) for row in connection.execute("SELECT * FROM pair ORDER BY id")}
        return StudyContent(study, _people(connection), _judgments(connection, pairs), pairs, _posts(connection))


def _texts(row: sqlite3.Row) -> PairTexts:
    return PairTexts(row["source"], row["question"], row["category"], row["chosen"], row["rejected"])


def _people(connection: sqlite3.Connection) -> tuple[AnnotatorSummary, ...]:
    rows = connection.execute(
        "SELECT annotator.id, name, deleted_at, count(task.id) AS assigned, count(latest.id) AS done FROM annotator"
        " LEFT JOIN task ON task.annotator = annotator.id LEFT JOIN latest ON latest.task = task.id"
        " GROUP BY annotator.id ORDER BY annotator.id"
    )
    return tuple(
        AnnotatorSummary(row["id"], row["name"], row["assigned"], row["done"], row["deleted_at"] is not None)
        for row in rows
    )


def _judgments(connection: sqlite3.Connection, pairs: dict[str, PairTexts]) -> tuple[AnnotatorJudgment, ...]:
    rows = connection.execute(
        "SELECT latest.*, task.annotator, task.chosen_first, pair.source FROM latest JOIN task ON task.id = latest.task"
        " JOIN pair ON pair.id = task.pair ORDER BY task.annotator, task.position"
    )
    return tuple(
        AnnotatorJudgment(
            row["annotator"],
            row["source"],
            pairs[row["source"]].key,
            bool(row["chosen_first"]),
            pairs[row["source"]].chosen_is_a,
            answer_of(row),
            row["version"],
            row["saved_at"],
        )
        for row in rows
    )


def _posts(connection: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    for row in connection.execute("SELECT annotator, text FROM post ORDER BY annotator, position"):
        found.setdefault(row["annotator"], []).append(row["text"])
    return {annotator: tuple(texts) for annotator, texts in found.items()}
