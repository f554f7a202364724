"""Design of a study: which pairs, shown to whom, in which order.

Drawn once, when the study is made, and kept.

A study whose file is there already is continued, if the suite and the options are the same.
"""

import hashlib
import json
import random
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from prbench._version import __version__
from prbench.annotate.people import invite, now
from prbench.annotate.store import Store
from prbench.config import Config
from prbench.data import DatasetRecord, Suite
from prbench.errors import ConfigError
from prbench.files import check_model, disk_errors
from prbench.types import Frozen, Pair

Mode = Literal["pairs", "self"]
_RESTORE = "restore the file from a copy"


class AnnotationConfig(Config):
    """Settings of the organiser."""

    mode: Mode = "pairs"
    names: tuple[str, ...] = ("annotator-1", "annotator-2", "annotator-3")
    pairs: int | None = 50
    """Largest number of pairs; None takes all."""
    overlap: int | None = None
    """Number of annotators who see each pair; None: all of them."""
    seed: int = 0


class AnnotationStudy(Frozen):
    """The record of a study, kept in its file."""

    id: str
    mode: Mode
    pairs: int
    overlap: int
    seed: int
    dataset: DatasetRecord
    """Record of the pairs that are shown, not of the whole suite."""
    created_at: str
    version: str
    """Version of prbench that made the study."""


class Invitation(NamedTuple):
    """A secret for one person."""

    name: str
    token: str


class Opened(NamedTuple):
    """A study that is ready to be served."""

    store: Store
    study: AnnotationStudy
    invitations: tuple[Invitation, ...]
    """Links for the annotators, only of a new study: of an old one the file knows no more than hashes."""


def open_study(path: Path, suite: Suite, options: AnnotationConfig) -> Opened:
    """Continue the study in a file, or make it there.

    Raises:
        ConfigError: If the file holds a study of other pairs or options, or if nothing could be judged.
    """
    study, shown = _plan(suite, options)
    if path.exists():
        store = Store.existing(path)
        there = read_study(store)
        _refuse_other(there, study, path)
        _refuse_others(store, options.names)
        return Opened(store, there, ())
    _refuse_left_log(path)
    unfinished = path.with_name(f"{path.name}.part")
    try:
        with disk_errors(path, "write"):
            _remove(unfinished)
            store = Store.create(unfinished)
            with store.writing() as connection:
                connection.execute("INSERT INTO study VALUES (1, ?)", (study.model_dump_json(),))
                _write_pairs(connection, shown)
                invitations = _write_people(connection, options, study.overlap, [pair.id for pair in shown])
            store.settle()
            unfinished.replace(path)  # a study that was interrupted while it was made is not there at all
    finally:
        with suppress(OSError):
            _remove(unfinished)
    return Opened(Store.existing(path), study, invitations)


def _remove(path: Path) -> None:
    for left in ("", "-wal", "-shm"):
        path.with_name(path.name + left).unlink(missing_ok=True)


def read_study(store: Store) -> AnnotationStudy:
    """The record of the study in a file."""
    with store.reading() as connection:
        row = connection.execute("SELECT record FROM study").fetchone()
    if row is None:
        raise ConfigError(f"{str(store.path)!r} holds no study", hint="remove it, and make the study again")
    return check_model(
        row["record"], AnnotationStudy, f"the study in {str(store.path)!r}", raises=ConfigError, hint=_RESTORE
    )


def renew_invitations(store: Store) -> tuple[Invitation, ...]:
    """Make new links for all annotators who have not deleted their data; the old links stop, sessions go on."""
    with store.writing() as connection:
        people = connection.execute("SELECT id, name FROM annotator WHERE deleted_at IS NULL ORDER BY id").fetchall()
        return tuple(Invitation(row["name"], invite(connection, row["id"])) for row in people)


def assign(pairs: int, annotators: int, overlap: int, seed: int) -> list[tuple[int, ...]]:
    """Choose the annotators of each pair: those with least to do so far, chance deciding between equals.

    Example:
        >>> assign(4, 2, 1, seed=0)
        [(1,), (0,), (0,), (1,)]
    """
    chance = random.Random(f"assign {seed}")  # noqa: S311  (a design that can be drawn again, not a secret)
    load = [0] * annotators
    found = []
    for _ in range(pairs):
        luck = [chance.random() for _ in range(annotators)]
        seen_by = sorted(range(annotators), key=lambda one: (load[one], luck[one]))[:overlap]
        for one in seen_by:
            load[one] += 1
        found.append(tuple(sorted(seen_by)))
    return found


def shows_chosen_first(seed: int, annotator: int, pair: str) -> bool:
    """The order of the two answers, by annotator and pair."""
    return bool(hashlib.sha256(f"{seed}\0{annotator}\0{pair}".encode()).digest()[0] & 1)


def _plan(suite: Suite, options: AnnotationConfig) -> tuple[AnnotationStudy, list[Pair]]:
    names = options.names
    if not names or len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise ConfigError(f"annotators {', '.join(map(repr, names))} need names that differ")
    overlap = len(names) if options.overlap is None else options.overlap
    if not 1 <= overlap <= len(names):
        raise ConfigError(f"--overlap {overlap} of {len(names)} annotators", hint=f"from 1 to {len(names)}")
    if options.mode == "pairs":
        suite = suite.filter(lambda pair: bool(pair.profile), "with a profile")
        if not len(suite):
            raise ConfigError(
                "no pair has a profile, so annotators cannot tell what its user prefers",
                hint="--mode self lets people judge for themselves",
            )
    else:
        suite = _distinct(suite)
    shown = suite if options.pairs is None else suite.limit(options.pairs, options.seed)
    study = AnnotationStudy(
        id=secrets.token_hex(4),
        mode=options.mode,
        pairs=len(shown),
        overlap=overlap,
        seed=options.seed,
        dataset=shown.record,
        created_at=now(),
        version=__version__,
    )
    return study, list(shown)


def _distinct(suite: Suite) -> Suite:
    """Each question with its two answers once: whose it was does not matter where people judge for themselves."""
    met: set[tuple[str, frozenset[str]]] = set()

    def is_new(pair: Pair) -> bool:
        key = (pair.question, frozenset((pair.chosen, pair.rejected)))
        new = key not in met
        met.add(key)
        return new

    return suite.filter(is_new, "each two answers once")


def _refuse_other(there: AnnotationStudy, asked: AnnotationStudy, path: Path) -> None:
    pairs = there.model_dump(include={"mode", "pairs", "overlap", "seed"})
    wanted = asked.model_dump(include={"mode", "pairs", "overlap", "seed"})
    differ = [f"{name} {pairs[name]} there, {wanted[name]} asked for" for name in pairs if pairs[name] != wanted[name]]
    if there.dataset.fingerprint != asked.dataset.fingerprint:
        differ.append("other pairs")
    if differ:
        raise ConfigError(
            f"{str(path)!r} holds another study: {'; '.join(differ)}",
            hint="give this study a file of its own with --db, or repeat the command that made that one",
        )


def _refuse_others(store: Store, names: Sequence[str]) -> None:
    """Links of people who are not in the study would never be printed; of who deleted their data no name is left."""
    with store.reading() as connection:
        rows = connection.execute("SELECT name, deleted_at FROM annotator ORDER BY id").fetchall()
    there = [None if row["deleted_at"] else row["name"] for row in rows]
    if len(there) != len(names) or any(name not in (None, asked) for name, asked in zip(there, names, strict=True)):
        known = ", ".join(name or "(deleted)" for name in there)
        raise ConfigError(
            f"{str(store.path)!r} holds a study with other annotators: {known}",
            hint="repeat the --names or --annotators that made it, or give this study a file of its own with --db",
        )


def _refuse_left_log(path: Path) -> None:
    """SQLite would play the log of a removed file back into the new one, over its people and their links."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists():
        raise ConfigError(
            f"{str(log)!r} belongs to a study whose file is not there",
            hint=f"bring {path.name} back to continue that study, or remove {log.name} to make a new one",
        )


def _write_pairs(connection: sqlite3.Connection, pairs: Sequence[Pair]) -> None:
    profiles: dict[str, int] = {}
    for number, pair in enumerate(pairs, start=1):
        posts = json.dumps([post.text for post in pair.profile], ensure_ascii=False)
        if posts not in profiles:
            profiles[posts] = len(profiles) + 1
            connection.execute("INSERT INTO profile VALUES (?, ?)", (profiles[posts], posts))
        row = (number, pair.id, pair.user, pair.question, pair.category, profiles[posts], pair.chosen, pair.rejected)
        connection.execute("INSERT INTO pair VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _write_people(
    connection: sqlite3.Connection, options: AnnotationConfig, overlap: int, pairs: Sequence[str]
) -> tuple[Invitation, ...]:
    seen_by = assign(len(pairs), len(options.names), overlap, options.seed)
    invitations = []
    for number, name in enumerate(options.names):
        connection.execute("INSERT INTO annotator (id, name) VALUES (?, ?)", (number + 1, name))
        invitations.append(Invitation(name, invite(connection, number + 1)))
        own = [pair for pair, people in enumerate(seen_by) if number in people]
        random.Random(f"order {options.seed} {number}").shuffle(own)  # noqa: S311  (a design, not a secret)
        rows = [
            (
                secrets.token_urlsafe(9),
                number + 1,
                pair + 1,
                position,
                shows_chosen_first(options.seed, number, pairs[pair]),
            )
            for position, pair in enumerate(own)
        ]
        connection.executemany(
            "INSERT INTO task (code, annotator, pair, position, chosen_first) VALUES (?, ?, ?, ?, ?)", rows
        )
    return tuple(invitations)
