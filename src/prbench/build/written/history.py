"""A history: users, what they wrote, and the questions to build a suite from.

A post that asks is the story behind its question: it is in no profile, nor is a copy of it, and what was written later
is not in the profile of that question. At most half of a user's posts become questions, the others are the profile. A
profile is bounded: of 50,000 posts those are kept that bear on the question.
"""

import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from prbench.build.card import SourceFile, describe_file
from prbench.build.written.cleaning import plain
from prbench.build.written.entries import EntryReader, WrittenEntry
from prbench.data import load_questions, read_rows, suffix_of
from prbench.errors import DataError
from prbench.rank import BM25, PostRanker
from prbench.types import Post, Question


class Bounds(NamedTuple):
    """Limits on how much of a history is used."""

    max_posts: int = 100
    """Largest number of posts in a profile; where there are more, ranking keeps those that bear on the question."""
    min_posts: int = 1
    max_per_user: int = 20
    """Largest number of questions of one user."""
    limit: int | None = None
    """Largest number of questions in all."""


class History(NamedTuple):
    """Questions read from a history, and what was left out."""

    questions: tuple[Question, ...]
    source: SourceFile
    users: int
    posts: int
    left_out: Mapping[str, int]
    notes: tuple[str, ...]


class _Profile:
    """Texts of one user besides the questions of the suite, in order of time where it is known.

    Args:
        entries: All that the user wrote.
        asked: Those of them that are questions of the suite.
    """

    def __init__(self, entries: Sequence[WrittenEntry], asked: Sequence[WrittenEntry]) -> None:
        questions = {entry.id for entry in asked}
        copies = [(plain(entry.narrative), plain(entry.question)) for entry in asked]
        others = [entry for entry in entries if entry.id not in questions and not _copies(plain(entry.text), copies)]
        dated = all(entry.time is not None for entry in others)
        self._entries = sorted(others, key=lambda entry: entry.time or 0.0) if dated else others
        self._posts = tuple(Post(id=entry.id, text=entry.text, category=entry.category) for entry in self._entries)

    def posts(self, asked: WrittenEntry, most: int, ranker: PostRanker) -> tuple[Post, ...]:
        """The posts that may be shown with a question, in their own order."""
        allowed = [post for post, entry in zip(self._posts, self._entries, strict=True) if not _later(entry, asked)]
        if len(allowed) <= most:
            return tuple(allowed)
        # One index of all posts serves every question of a user, so posts are ranked first and left out after.
        known = {post.id for post in allowed}
        ranked = (post.id for post in ranker.rank(asked.question, self._posts) if post.id in known)
        best = set(itertools.islice(ranked, most))
        return tuple(post for post in allowed if post.id in best)


def _copies(words: str, questions: Sequence[tuple[str, str]]) -> bool:
    """Whether a post tells the story of a question again, or asks it in the same words."""
    return any(story in words or words in (story, question) for story, question in questions)


def read_history(
    path: Path, columns: Mapping[str, str] | None = None, bounds: Bounds | None = None, ranker: PostRanker | None = None
) -> History:
    r"""Read users and their questions from JSONL, CSV or Parquet.

    Args:
        path: Posts (`user`, `text`, perhaps `id`, `title`, `category`, `time`), or posts and questions with a
            `narrative`, or questions with a `profile` as in the paper's data.
        columns: Field → column, where columns have other names.
        bounds: Limits on how much is used.
        ranker: Chooses posts where a profile is too large; BM25 unless given.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp(), "posts.csv")
        >>> _ = file.write_text("user,text\nann,I moved to a flat without a garden last spring.\n"
        ...     "ann,My balcony gets two hours of sun and I travel a lot. What can I grow in a pot?\n")
        >>> history = read_history(file)
        >>> history.questions[0].question, len(history.questions[0].profile)
        ('What can I grow in a pot?', 1)
    """
    if suffix_of(path) is not None and not path.is_file():
        raise DataError(f"{str(path)!r} does not exist", hint="a history is a JSONL, CSV or Parquet file of posts")
    bounds, left_out = bounds or Bounds(), Counter[str]()
    rows = read_rows(path)
    first = next(rows)
    if "profile" in first.values or "profile" in (columns or {}):
        return _nested(path, columns or {}, bounds, ranker or BM25())
    entries: dict[str, list[WrittenEntry]] = defaultdict(list)
    found = EntryReader(columns or {}, left_out).read(itertools.chain([first], rows))
    for entry in found:
        entries[entry.user].append(entry)
    questions = []
    ranker = ranker or BM25()
    for user, asked in _choose(entries, bounds, left_out).items():
        profile = _Profile(entries[user], asked)
        for entry in asked:
            posts = profile.posts(entry, bounds.max_posts, ranker)
            if len(posts) < bounds.min_posts:
                left_out[f"questions of users with fewer than {bounds.min_posts} posts besides"] += 1
            else:
                questions.append(_question(entry, posts))
    return _finished(path, questions, len(entries), len(found), left_out)


def _nested(path: Path, columns: Mapping[str, str], bounds: Bounds, ranker: PostRanker) -> History:
    """Questions that bring their profiles: the paper's layout."""
    found = load_questions(path, columns=columns)
    left_out = Counter[str]()
    kept = []
    for question in found[: bounds.limit]:
        if not question.narrative.strip() and not question.rubric_aspects:
            left_out["questions without a narrative"] += 1
        elif len(question.profile) < bounds.min_posts:
            left_out[f"questions of users with fewer than {bounds.min_posts} posts besides"] += 1
        else:
            best = set(ranker.rank(question.question, question.profile)[: bounds.max_posts])
            kept.append(question.model_copy(update={"profile": tuple(p for p in question.profile if p in best)}))
    if len(found) > len(found[: bounds.limit]):
        left_out["questions beyond --limit"] = len(found) - len(found[: bounds.limit])
    posts = len({post.id for question in found for post in question.profile})
    return _finished(path, kept, len({question.user for question in found}), posts, left_out)


def _finished(path: Path, questions: list[Question], users: int, posts: int, left_out: Counter[str]) -> History:
    if not questions:
        lost = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise DataError(
            f"{str(path)!r} has {posts:,} posts of {users:,} users, but no question to build on"
            + (f" ({lost})" if lost else ""),
            hint="a question is a post that asks something and tells why, or a row with 'question' and 'narrative'; "
            "map columns with --column FIELD=COLUMN",
        )
    notes = []
    if users == 1:
        notes.append(
            "one user: the context 'other' and mirrored couples of two real users need a second one; "
            "--mirror with written opposites works"
        )
    return History(tuple(questions), describe_file(path, posts), users, posts, dict(+left_out), tuple(notes))


def _choose(
    entries: Mapping[str, Sequence[WrittenEntry]], bounds: Bounds, left_out: Counter[str]
) -> dict[str, list[WrittenEntry]]:
    """Choose each user's questions: the first of all users before the second of any, the same ones every time."""
    turns: list[tuple[int, str, WrittenEntry]] = []
    for held in entries.values():
        asking = sorted((entry for entry in held if entry.question), key=lambda entry: _luck(entry.id))
        half = asking[: max(1, len(held) // 2)]
        left_out["posts that ask, kept as posts of the profile"] += len(asking) - len(half)
        left_out["questions beyond --max-per-user"] += max(0, len(half) - bounds.max_per_user)
        turns += [(turn, _luck(entry.id), entry) for turn, entry in enumerate(half[: bounds.max_per_user])]
    turns.sort(key=lambda item: item[:2])
    kept = turns[: bounds.limit]
    left_out["questions beyond --limit"] += len(turns) - len(kept)
    chosen: dict[str, list[WrittenEntry]] = defaultdict(list)
    for entry in sorted((entry for _, _, entry in kept), key=lambda entry: (entry.user, entry.id)):
        chosen[entry.user].append(entry)
    return chosen


def _luck(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _later(entry: WrittenEntry, asked: WrittenEntry) -> bool:
    return entry.time is not None and asked.time is not None and entry.time > asked.time


def _question(entry: WrittenEntry, profile: tuple[Post, ...]) -> Question:
    question = Question(
        id=entry.id,
        user=entry.user,
        question=entry.question,
        narrative=entry.narrative,
        rubric_aspects=entry.aspects,
        category=entry.category,
    )
    return question.model_copy(update={"profile": profile})
