"""Identity of an annotator: an invitation, a session, a form's token.

Only hashes of secrets are kept.

Secrets are 192 random bits, so a plain SHA-256 is enough to keep them: none can be guessed, with or without the hash.
"""

import hashlib
import hmac
import secrets
import sqlite3
from datetime import UTC, datetime
from typing import NamedTuple

_SECRET_BYTES = 24


class Annotator(NamedTuple):
    """A person as the server knows them."""

    id: int
    name: str
    started: bool
    """Mode self: whether the person has closed the posts and begun to judge."""


class AnnotatorSession(NamedTuple):
    """Session of an annotator who is signed in."""

    id: str
    annotator: Annotator
    form_token: str
    """Token that this session's forms carry; a form without it was not made for this session."""


def now() -> str:
    """Return the current time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def hash_secret(secret: str) -> bytes:
    """Return the hash that is kept of a secret."""
    return hashlib.sha256(secret.encode()).digest()


def same(one: str, other: str) -> bool:
    """Compare two secrets without telling by the time it takes how far they agree."""
    return hmac.compare_digest(hash_secret(one), hash_secret(other))


def invite(connection: sqlite3.Connection, annotator: int) -> str:
    """Give an annotator a new invitation token; an earlier one stops working."""
    token = secrets.token_urlsafe(_SECRET_BYTES)
    connection.execute("UPDATE annotator SET token_hash = ? WHERE id = ?", (hash_secret(token), annotator))
    return token


def find_invited(connection: sqlite3.Connection, token: str) -> Annotator | None:
    """Return the annotator of an invitation; every stored hash is compared, in constant time each."""
    wanted, found = hash_secret(token), None
    for row in connection.execute("SELECT * FROM annotator WHERE token_hash IS NOT NULL"):
        if hmac.compare_digest(wanted, row["token_hash"]):
            found = _annotator(row)
    return found


def open_session(connection: sqlite3.Connection, annotator: int) -> str:
    """Sign an annotator in, who has agreed to take part; returns what the cookie holds."""
    name, secret = secrets.token_urlsafe(9), secrets.token_urlsafe(_SECRET_BYTES)
    row = (name, annotator, hash_secret(secret), now())
    connection.execute("INSERT INTO session (id, annotator, secret_hash, opened_at) VALUES (?, ?, ?, ?)", row)
    connection.execute("UPDATE annotator SET consented_at = coalesce(consented_at, ?) WHERE id = ?", (now(), annotator))
    return f"{name}.{secret}"


def find_session(connection: sqlite3.Connection, cookie: str) -> AnnotatorSession | None:
    """Return the session of a cookie."""
    name, _, secret = cookie.partition(".")
    row = connection.execute(
        "SELECT annotator.*, session.secret_hash FROM session JOIN annotator ON annotator.id = session.annotator"
        " WHERE session.id = ?",
        (name,),
    ).fetchone()
    if row is None or not hmac.compare_digest(hash_secret(secret), row["secret_hash"]):
        return None
    form_token = hashlib.sha256(f"form\0{secret}".encode()).hexdigest()
    return AnnotatorSession(name, _annotator(row), form_token)


def close_session(connection: sqlite3.Connection, session: str) -> None:
    """Sign out on this device."""
    connection.execute("DELETE FROM session WHERE id = ?", (session,))


def forget(connection: sqlite3.Connection, annotator: int) -> None:
    """Delete everything a person gave: answers with their history, posts, sessions, the name, the invitation."""
    for table in ("task", "post", "session"):
        connection.execute(f"DELETE FROM {table} WHERE annotator = ?", (annotator,))  # noqa: S608  (names above)
    connection.execute(
        "UPDATE annotator SET name = 'deleted-' || id, token_hash = NULL, consented_at = NULL, started_at = NULL,"
        " deleted_at = ? WHERE id = ?",
        (now(), annotator),
    )


def _annotator(row: sqlite3.Row) -> Annotator:
    return Annotator(row["id"], row["name"], row["started_at"] is not None)
