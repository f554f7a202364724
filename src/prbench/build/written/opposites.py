"""Users who want the opposite: another who asked nearly the same question, or a person whom a model imagines.

With both halves of a couple meeting the same two answers, a model that ignores the user is right exactly half of the
time.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from prbench.build.written.replies import Rejection, WritingRequest
from prbench.prompts import Instruction, UnreadableReply
from prbench.prompts.writing import Opposite, parse_opposites
from prbench.texts import words
from prbench.types import Aspect, Post, Question

OPPOSITE = "~opposite"
"""Ends the id of an imagined user and of the pairs of one."""
_SAME_ASPECT = 0.5
_MOST_CANDIDATES = 500
"""Questions of one rare word that are compared; more than that ask the same thing, and enough couples are found."""


class Found(NamedTuple):
    """Couples among the questions of real users."""

    couples: list[tuple[Question, Question]]
    agreeing: int
    """Nearly identical questions of two users who want the same, so that there is nothing to mirror."""


def find_couples(questions: Sequence[Question], least: float) -> Found:
    """Match questions that two users asked in nearly the same words but with other expectations, each at most once.

    Args:
        questions: With their aspects.
        least: Shared part of the words (Jaccard) from which two questions are nearly identical.

    Example:
        >>> aspects = {name: (Aspect(aspect=name),) for name in ("cheap", "grand")}
        >>> ann = Question(id="1", user="ann", question="Which hotel in Rome?", rubric_aspects=aspects["cheap"])
        >>> bob = ann.model_copy(update={"id": "2", "user": "bob", "rubric_aspects": aspects["grand"]})
        >>> [(one.id, two.id) for one, two in find_couples([ann, bob], 0.8).couples]
        [('1', '2')]
    """
    taken: set[str] = set()
    couples, agreeing = [], 0
    for _, one, two in sorted(_near(questions, least)):
        if {one, two} & taken:
            continue
        halves = (questions[int(one)], questions[int(two)])
        if agree(halves[0].rubric_aspects, halves[1].rubric_aspects):
            agreeing += 1
            continue
        taken |= {one, two}
        couples.append(halves)
    return Found(couples, agreeing)


def agree(one: Sequence[Aspect], other: Sequence[Aspect]) -> bool:
    """Whether two rubrics have an aspect in common, judged by its words."""
    return any(
        _jaccard(frozenset(words(mine.aspect)), frozenset(words(theirs.aspect))) >= _SAME_ASPECT
        for mine in one
        for theirs in other
    )


def _near(questions: Sequence[Question], least: float) -> list[tuple[float, str, str]]:
    """Candidates share one of their rarest words: enough of each set that similar sets cannot miss each other."""
    sets = [frozenset(words(question.question)) for question in questions]
    frequency = Counter(word for found in sets for word in found)
    index: dict[str, list[int]] = defaultdict(list)
    width = len(str(len(questions)))
    near = []
    for place, found in enumerate(sets):
        rarest = sorted(found, key=lambda word: (frequency[word], word))
        prefix = rarest[: len(found) - math.ceil(least * len(found)) + 1]
        for other in sorted({there for word in prefix for there in index[word]}):
            similarity = _jaccard(found, sets[other])
            if similarity >= least and _may_couple(questions[place], questions[other]):
                near.append((-similarity, f"{other:0{width}}", f"{place:0{width}}"))
        for word in prefix:
            if len(index[word]) < _MOST_CANDIDATES:
                index[word].append(place)
    return near


def _may_couple(one: Question, other: Question) -> bool:
    return one.user != other.user and one.tags.get("split") == other.tags.get("split")


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def opposite_request(prompt: Instruction, question: Question) -> WritingRequest[tuple[Opposite, ...]]:
    """Ask for a person who wants the opposite of every aspect."""
    aspects = question.rubric_aspects

    def read(reply: str) -> tuple[Opposite, ...] | UnreadableReply:
        found = parse_opposites(reply, len(aspects))
        if not isinstance(found, UnreadableReply) and agree(aspects, [Aspect(aspect=item.aspect) for item in found]):
            return UnreadableReply("an opposite that says the same as an aspect")
        return found

    return WritingRequest(prompt.fill(question=question.question, aspects=aspects), read)


def imagine(
    questions: Mapping[str, Question], opposites: Mapping[str, tuple[Opposite, ...] | Rejection]
) -> dict[str, Question]:
    """The other halves: for each question the same one, asked by the imagined opposite of its user.

    One user has one opposite, whose profile holds what was written for all of the user's questions.
    """
    posts: dict[str, list[Post]] = defaultdict(list)
    halves: dict[str, Question] = {}
    for name, question in questions.items():
        written = opposites[name]
        if isinstance(written, Rejection):
            continue
        user = question.user + OPPOSITE
        posts[user] += [
            Post(id=f"{name}{OPPOSITE}/{number}", text=item.post) for number, item in enumerate(written, start=1)
        ]
        halves[name] = question.model_copy(
            update={
                "id": name + OPPOSITE,
                "user": user,
                "narrative": "",
                "rubric_aspects": tuple(
                    Aspect(aspect=item.aspect, evidence=item.post, reason=item.reason) for item in written
                ),
            }
        )
    profiles = {user: tuple(held) for user, held in posts.items()}
    return {name: half.model_copy(update={"profile": profiles[half.user]}) for name, half in halves.items()}


def stand_in(question: Question) -> Question:
    """An opposite that is not written yet, for an estimate: aspects of the same number and about the same length."""
    aspects = (Aspect(aspect=f"not: {one.aspect}", reason=one.reason) for one in question.rubric_aspects)
    return question.model_copy(update={"id": question.id + OPPOSITE, "rubric_aspects": tuple(aspects)})
