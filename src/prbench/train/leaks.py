"""Nothing that a model will be tested on may be in its training: checked by content, not by id."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from prbench.errors import DataError
from prbench.types import Pair

_WORDS = re.compile(r"\w+")


def check_apart(train: Sequence[Pair], held_out: Sequence[Pair], *, what: str) -> None:
    """Refuse to train if a question, an answer or a post of the held-out pairs is among the training texts.

    Case, punctuation and spacing do not matter.

    Example:
        >>> pair = Pair(id="1", user="a", question="Tea?", chosen="Green.", rejected="Black.")
        >>> check_apart([pair], [pair.model_copy(update={"chosen": "White.", "question": "Now?"})], what="test")
        Traceback (most recent call last):
        prbench.errors.DataError: 1 text of the test split is in the training split too; first: 'Black.'
        ...
    """
    seen = {_plain(text) for text in texts(train)}
    if shared := sorted({text for text in texts(held_out) if _plain(text) in seen}):
        count = f"{len(shared)} text" + (" of" if len(shared) == 1 else "s of")
        verb = "is" if len(shared) == 1 else "are"
        raise DataError(
            f"{count} the {what} split {verb} in the training split too; first: {shared[0][:80]!r}",
            hint="hold out whole users and whole questions: no text of a held-out pair may be trained on",
        )


def texts(pairs: Iterable[Pair]) -> set[str]:
    """Every question, answer and post of some pairs."""
    found: set[str] = set()
    for pair in pairs:
        found |= {pair.question, pair.chosen, pair.rejected, *(post.text for post in pair.profile)}
    return found


def _plain(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_WORDS.findall(plain)) or plain.strip()  # a thumb up is no word, and not a thumb down
