"""Mode self: the posts that a person writes or pastes, editable until the person begins to judge."""

import hashlib
import re
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from prbench.annotate.answer import clean
from prbench.annotate.people import now

LEAST = 3
MOST = 100
LONGEST = 10_000
"""Largest number of characters of one post."""


class OwnPosts(NamedTuple):
    """Posts that a person has written so far."""

    texts: tuple[str, ...]

    @property
    def mark(self) -> str:
        """Changes with the posts: a form that carries another mark was made before the last change."""
        return hashlib.sha256("\0".join(self.texts).encode()).hexdigest()[:16]


def read_posts(texts: Sequence[str], pasted: str = "") -> tuple[str, ...]:
    r"""The posts of a form: one a field, and pasted ones divided by a line of dashes.

    Example:
        >>> read_posts([" I like tea. ", ""], "One.\n---\nTwo.")
        ('I like tea.', 'One.', 'Two.')
    """
    every = [*texts, *re.split(r"^[ \t]*-{3,}[ \t]*$", clean(pasted), flags=re.MULTILINE)]
    return tuple(text for text in map(clean, every) if text)


def complain(texts: Sequence[str]) -> str:
    """Return why posts cannot be kept; empty if they can."""
    if len(texts) > MOST:
        return f"These are {len(texts)} posts; at most {MOST} are kept. Please take some out."
    longest = max(map(len, texts), default=0)
    if longest > LONGEST:
        return f"A post has {longest:,} characters; at most {LONGEST:,} are kept. Please shorten it."
    return ""


def load_posts(connection: sqlite3.Connection, annotator: int) -> OwnPosts:
    """Return the posts that a person has written, in order."""
    rows = connection.execute("SELECT text FROM post WHERE annotator = ? ORDER BY position", (annotator,))
    return OwnPosts(tuple(row["text"] for row in rows))


def keep_posts(connection: sqlite3.Connection, annotator: int, texts: Sequence[str], *, start: bool) -> None:
    """Replace a person's posts; with `start` they stand from now on."""
    connection.execute("DELETE FROM post WHERE annotator = ?", (annotator,))
    rows = [(annotator, position, text) for position, text in enumerate(texts)]
    connection.executemany("INSERT INTO post VALUES (?, ?, ?)", rows)
    if start:
        connection.execute("UPDATE annotator SET started_at = ? WHERE id = ?", (now(), annotator))
