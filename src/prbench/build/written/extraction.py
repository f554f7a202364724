"""Two ways to read aspects off a narrative: the whole story at once, or one sentence at a time.

A capable model is given the story and quotes its evidence, which is then checked. A small model can neither keep a
format nor quote; it is given one sentence of the story at a time and only names what that sentence asks of an answer,
and the evidence is the sentence itself. What that cannot do: see what only the whole story tells, and give reasons.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from prbench.build.written.replies import Rejection, WritingRequest
from prbench.prompts import Instruction
from prbench.prompts.aspects import FEWEST, MOST, parse_aspects
from prbench.prompts.writing import ASKED_WORDS, parse_aspect_title
from prbench.texts import sentences, words
from prbench.types import Aspect, Question

_LEAST_WORDS = 5
"""Fewest words of a sentence that is read: a shorter one rarely says what a user wants."""


class Extraction(Protocol):
    """Asks for aspects, and puts the replies together."""

    @property
    def prompt(self) -> Instruction:
        """The file that is filled."""
        ...

    @property
    def reply_tokens(self) -> int:
        """Typical of a reply, for an estimate."""
        ...

    def requests(self, question: Question) -> dict[str, WritingRequest[Any]]:
        """Return the requests about a question, by a name that begins with its id."""
        ...

    def collect(self, question: Question, replies: Mapping[str, Any]) -> tuple[Aspect, ...] | Rejection:
        """The aspects of a question, or why there are none."""
        ...


class WholeStory:
    """One request for each question; the reply quotes its evidence."""

    reply_tokens = 250

    def __init__(self) -> None:
        self.prompt = Instruction.builtin("aspects.jinja")

    def requests(self, question: Question) -> dict[str, WritingRequest[tuple[Aspect, ...]]]:
        """The story, with a request for aspects, evidence and reasons."""
        filled = self.prompt.fill(question=question.question, narrative=question.narrative, fewest=FEWEST, most=MOST)
        return {question.id: WritingRequest(filled, partial(parse_aspects, narrative=question.narrative))}

    def collect(self, question: Question, replies: Mapping[str, Any]) -> tuple[Aspect, ...] | Rejection:
        """The reply as it was read."""
        found: tuple[Aspect, ...] | Rejection = replies[question.id]
        return found


class SentenceBySentence:
    """One request for each sentence of the story; the reply is a title, the evidence is the sentence."""

    reply_tokens = 12

    def __init__(self) -> None:
        self.prompt = Instruction.builtin("aspect_title.jinja")

    def requests(self, question: Question) -> dict[str, WritingRequest[str]]:
        """The sentences that are long enough to say something, the first eight of them."""
        return {
            f"{question.id}/{number}": WritingRequest(self._fill(question, sentence), parse_aspect_title)
            for number, sentence in enumerate(_telling(question), start=1)
        }

    def collect(self, question: Question, replies: Mapping[str, Any]) -> tuple[Aspect, ...] | Rejection:
        """An aspect for each sentence with a readable title; titles that stand twice count once."""
        found: dict[str, Aspect] = {}
        lost: list[Rejection] = []
        for number, sentence in enumerate(_telling(question), start=1):
            title = replies[f"{question.id}/{number}"]
            if isinstance(title, Rejection):
                lost.append(title)
            else:
                found.setdefault(title.casefold(), Aspect(aspect=title, evidence=sentence))
        if len(found) < FEWEST:
            why = f"; {lost[0].reason}" if lost else ""
            return Rejection(f"{len(found)} aspects, expected {FEWEST} to {MOST}{why}", lost[0].raw if lost else "")
        return tuple(found.values())

    def _fill(self, question: Question, sentence: str) -> Any:
        return self.prompt.fill(question=question.question, sentence=sentence, words=ASKED_WORDS)


def _telling(question: Question) -> list[str]:
    asked = question.question.casefold()
    found = (sentence for sentence in sentences(question.narrative) if sentence.casefold() not in asked)
    return [sentence for sentence in found if len(words(sentence)) >= _LEAST_WORDS][:MOST]
