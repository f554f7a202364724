"""Check that nothing a model will be tested on is in its training: by content, not by id."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from prbench.errors import DataError
from prbench.types import Pair

_WORDS = re.compile(r"\w+")


_RUN = 8
"""Words in a row that no text of one's own shares with another by chance."""
HELD_OUT = ("validation", "test")
NEW_QUESTIONS = "seen-users"
"""The split of the training's own users: their posts are known, its questions and answers are not."""


def check_splits(
    train: Sequence[Pair], everything: Iterable[Pair], validation: str, *, extra: Iterable[str] = ()
) -> None:
    """Check a training against all splits that a model may be tested on.

    Args:
        train: Pairs that are learned from.
        everything: All pairs at hand, with the tag `split`.
        validation: What early stopping looks at.
        extra: Other texts that are learned from.
    """
    extra = tuple(extra)  # looked through once for each split
    splits: dict[str, list[Pair]] = {}
    for pair in everything:
        splits.setdefault(pair.tags.get("split", ""), []).append(pair)
    for name in dict.fromkeys((validation, *HELD_OUT)):
        check_apart(train, splits.get(name, ()), what=name, extra=extra)
    check_apart(train, splits.get(NEW_QUESTIONS, ()), what=NEW_QUESTIONS, users=False, extra=extra)


def check_apart(
    train: Sequence[Pair], held_out: Sequence[Pair], *, what: str, users: bool = True, extra: Iterable[str] = ()
) -> None:
    """Refuse to train if a question, an answer or a post of the held-out pairs is among the training texts.

    Case, punctuation and spacing do not matter. Without `users` only questions and answers must be apart: a split of
    the training's own users with new questions.

    Example:
        >>> pair = Pair(id="1", user="a", question="Tea?", chosen="Green.", rejected="Black.")
        >>> check_apart([pair], [pair.model_copy(update={"chosen": "White.", "question": "Now?"})], what="test")
        Traceback (most recent call last):
        prbench.errors.DataError: 1 text of the test split is in the training split too; first: 'Black.'
        ...
    """
    extra = tuple(extra)
    seen = {_plain(text) for text in (*texts(train), *extra)}
    if shared := sorted({text for text in texts(held_out, posts=users) if _plain(text) in seen}):
        count = f"{len(shared)} text" + (" of" if len(shared) == 1 else "s of")
        verb = "is" if len(shared) == 1 else "are"
        raise DataError(
            f"{count} the {what} split {verb} in the training split too; first: {shared[0][:80]!r}",
            hint="hold out whole users and whole questions: no text of a held-out pair may be trained on",
        )
    held = {run for text in texts(held_out, posts=users) for run in _word_runs(text)} if extra else set()
    if taken := next((text for text in extra if held.intersection(_word_runs(text))), None):
        raise DataError(
            f"a text beside the training split shares {_RUN} words in a row with the {what} split: {taken[:80]!r}",
            hint="write it anew without reading what models are tested on",
        )


def is_telling(text: str) -> bool:
    """Whether a text is long enough to give something away: "Yes." stands in many texts by chance.

    Example:
        >>> is_telling("Yes."), is_telling("Boil the milk, then let it cool for a day.")
        (False, True)
    """
    return bool(_word_runs(text))


def texts(pairs: Iterable[Pair], *, posts: bool = True) -> set[str]:
    """Every question and answer of some pairs, and every post."""
    found: set[str] = set()
    for pair in pairs:
        found |= {pair.question, pair.chosen, pair.rejected}
        if posts:
            found.update(post.text for post in pair.profile)
    return found


def _plain(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_WORDS.findall(plain)) or plain.strip()  # a thumb up is no word, and not a thumb down


def _word_runs(text: str) -> set[tuple[str, ...]]:
    found = _WORDS.findall(text.lower())
    return {tuple(found[start : start + _RUN]) for start in range(len(found) - _RUN + 1)}
