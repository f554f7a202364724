"""Content-blind baselines: what a score is worth without reading for meaning, and without knowing the user.

They stand above the models in every table. One that beats chance says that the suite can be guessed.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from prbench.errors import AddressError
from prbench.models.protocols import ModelCard
from prbench.models.registry import ModelOptions
from prbench.types import AnswerView, Message, Outcome, Prompt

_WORD = re.compile(r"\w+")
_BETWEEN = {code: " " for code in range(128) if not _WORD.match(chr(code))}
"""Characters of ASCII that are in no word."""


class Baseline:
    """A Rater that is a plain function of question and answer."""

    instant = True

    def __init__(self, name: str, score: Callable[[str, str], float], **parameters: Any) -> None:
        self.score = score
        """Scores an answer to a question."""
        self.card = ModelCard(address=name, revision="1", parameters=parameters)

    def render(self, view: AnswerView) -> Prompt:
        """Show the question and the answer; posts and plan are not read."""
        return Prompt((Message("user", view.question), Message("assistant", view.answer)))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each answer by its text alone."""
        for index, view in enumerate(views):
            yield index, Outcome.scored(self.score(view.question, view.answer))


def random(rest: str, options: ModelOptions) -> Baseline:
    """Score by a hash of (seed, question, answer): chance, yet the same in every run."""
    _no_rest("random", rest)

    def score(question: str, answer: str) -> float:
        digest = hashlib.sha256("\x00".join((str(options.seed), question, answer)).encode()).digest()
        return int.from_bytes(digest[:7], "big") / 2**56

    return Baseline("random", score, seed=options.seed)


def longer(rest: str, options: ModelOptions) -> Baseline:
    """Prefer the answer with more words."""
    _no_rest("longer", rest)
    return Baseline("longer", lambda question, answer: float(len(answer.split())))


def shorter(rest: str, options: ModelOptions) -> Baseline:
    """Prefer the answer with fewer words."""
    _no_rest("shorter", rest)
    return Baseline("shorter", lambda question, answer: -float(len(answer.split())))


def overlap(rest: str, options: ModelOptions) -> Baseline:
    """Prefer the answer that repeats more of the question's distinct words."""
    _no_rest("overlap", rest)
    return Baseline("overlap", _overlap)


def _overlap(question: str, answer: str) -> float:
    asked = _asked(question)
    return len(asked.intersection(_words(answer))) / max(len(asked), 1)


@lru_cache(maxsize=8)
def _asked(question: str) -> frozenset[str]:
    return frozenset(_words(question))  # one question has several answers


def _words(text: str) -> list[str]:
    if text.isascii():  # several times as fast, with the same words
        return text.lower().translate(_BETWEEN).split()
    return _WORD.findall(text.lower())


def _no_rest(name: str, rest: str) -> None:
    if rest:
        raise AddressError(f"baseline {name!r} takes nothing after a colon, got {rest!r}", hint=f"use {name!r}")
