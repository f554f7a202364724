"""Tasks of an annotator: the next pair to show, and the keeping of answers as new versions, never over an old one.

No name here carries a label: answers leave this module as first and second.
"""

import json
import sqlite3
from typing import Literal, NamedTuple

from prbench.annotate.answer import DIMENSIONS, PLACES, AnnotatorAnswer
from prbench.annotate.people import now

_SCORES = [f"{place}_{dimension}" for place in PLACES for dimension in DIMENSIONS]
_SAVE = (
    f"INSERT INTO answer (task, version, saved_at, preference, reason, {', '.join(_SCORES)})"  # noqa: S608
    f" VALUES (?, ?, ?, ?, ?, {', '.join('?' for _ in _SCORES)})"
)


class AnnotatorProgress(NamedTuple):
    """Progress of an annotator."""

    done: int
    total: int


class TaskPage(NamedTuple):
    """All that a page shows of one pair."""

    code: str
    number: int
    """Number of this pair among the annotator's, from 1."""
    question: str
    posts: tuple[str, ...]
    first: str
    second: str
    version: int
    """Number of versions of the answer; 0: not answered yet."""
    answer: AnnotatorAnswer | None
    previous: str | None
    """The code of the pair before, to go back to."""


Kept = Literal["saved", "again", "stale"]
"""`again`: the same form sent twice, which changes nothing. `stale`: the form is older than what is kept."""


def progress(connection: sqlite3.Connection, annotator: int) -> AnnotatorProgress:
    """Count answered and assigned pairs."""
    row = connection.execute(
        "SELECT count(*) AS total, count((SELECT 1 FROM answer WHERE answer.task = task.id LIMIT 1)) AS done"
        " FROM task WHERE annotator = ?",
        (annotator,),
    ).fetchone()
    return AnnotatorProgress(row["done"], row["total"])


def next_code(connection: sqlite3.Connection, annotator: int) -> str | None:
    """The first pair without an answer."""
    row = connection.execute(
        "SELECT code FROM task WHERE annotator = ? AND NOT EXISTS (SELECT 1 FROM answer WHERE task = task.id)"
        " ORDER BY position LIMIT 1",
        (annotator,),
    ).fetchone()
    return row["code"] if row else None


def last_code(connection: sqlite3.Connection, annotator: int) -> str | None:
    """The pair that was answered or changed last."""
    row = connection.execute(
        "SELECT code FROM task JOIN answer ON answer.task = task.id WHERE annotator = ?"
        " ORDER BY answer.id DESC LIMIT 1",
        (annotator,),
    ).fetchone()
    return row["code"] if row else None


def show(connection: sqlite3.Connection, annotator: int, code: str) -> TaskPage | None:
    """One of the annotator's own pairs; None for a code that is not theirs."""
    row = connection.execute(
        "SELECT task.id, code, position, question, posts,"
        " CASE chosen_first WHEN 1 THEN chosen ELSE rejected END AS first,"
        " CASE chosen_first WHEN 1 THEN rejected ELSE chosen END AS second,"
        " (SELECT other.code FROM task AS other WHERE other.annotator = task.annotator"
        "   AND other.position = task.position - 1) AS previous"
        " FROM task JOIN pair ON pair.id = task.pair JOIN profile ON profile.id = pair.profile"
        " WHERE annotator = ? AND code = ?",
        (annotator, code),
    ).fetchone()
    if row is None:
        return None
    kept = connection.execute("SELECT * FROM latest WHERE task = ?", (row["id"],)).fetchone()
    return TaskPage(
        row["code"],
        row["position"] + 1,
        row["question"],
        tuple(json.loads(row["posts"])),
        row["first"],
        row["second"],
        kept["version"] if kept else 0,
        answer_of(kept) if kept else None,
        row["previous"],
    )


def save(connection: sqlite3.Connection, shown: TaskPage, version: int, answer: AnnotatorAnswer) -> Kept:
    """Keep an answer given to a form that knew of `version` versions; call it inside one transaction with `show`."""
    if shown.version != version:
        return "again" if shown.version == version + 1 and shown.answer == answer else "stale"
    if shown.answer == answer:
        return "again"
    scores = [getattr(answer, place) for place in PLACES]
    values = [getattr(given, name) if given else None for given in scores for name in DIMENSIONS]
    (task,) = connection.execute("SELECT id FROM task WHERE code = ?", (shown.code,)).fetchone()
    connection.execute(_SAVE, (task, version + 1, now(), answer.preference, answer.reason, *values))
    return "saved"


def answer_of(row: sqlite3.Row) -> AnnotatorAnswer:
    """An answer from a row of the table."""
    scores = {
        place: {name: row[f"{place}_{name}"] for name in DIMENSIONS} if row[f"{place}_factuality"] else None
        for place in PLACES
    }
    return AnnotatorAnswer.model_validate({"preference": row["preference"], "reason": row["reason"], **scores})
