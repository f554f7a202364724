"""A suite seen as texts: each answer, post and question once, however many pairs they stand in.

An answer's pole on an axis follows from the pairs' tags: the chosen answer has the pole that the user wants, the
rejected one the other. The checks work on these, so their cost grows with what was written, not with pairs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from prbench.audit.result import CheckVerdict
from prbench.texts import Shingles
from prbench.types import Pair


class CorpusAnswer(NamedTuple):
    """An answer to a question."""

    id: str
    """The first pair that has it, and the side it stands on there."""
    question: str
    text: str


class CorpusPost(NamedTuple):
    """A post: its text, and who has it under which id."""

    text: str
    ids: tuple[str, ...]
    users: frozenset[str]


class AnswerContrast(NamedTuple):
    """Two answers that some pair sets against each other, with what tells them apart."""

    id: str
    """The first pair that shows it."""
    question: str
    axes: tuple[str, ...]
    first: int
    """Position of the answer that holds the first pole of the first axis; without axes, either one."""
    second: int


@dataclass(frozen=True)
class Corpus:
    """Everything the checks look at.

    Example:
        >>> corpus = Corpus([Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")])
        >>> [answer.id for answer in corpus.answers], corpus.mirrored
        (['1#chosen', '1#rejected'], False)
    """

    pairs: Sequence[Pair]

    @cached_property
    def shingles(self) -> Shingles:
        """The runs of words of all texts, comparable with each other."""
        return Shingles()

    @cached_property
    def mirrored(self) -> bool:
        """Whether the suite claims to be mirrored."""
        return any(pair.tags.get("mirror") for pair in self.pairs)

    @cached_property
    def from_items(self) -> bool:
        """Whether the pairs were made of people's own items (tag `item_pair`): texts recur, and one question may do."""
        return all("item_pair" in pair.tags for pair in self.pairs)

    @cached_property
    def written(self) -> CheckVerdict:
        """Verdict on repetition: texts written for a suite must not repeat, items of a log may."""
        return CheckVerdict.WARN if self.from_items else CheckVerdict.FAIL

    @cached_property
    def answers(self) -> tuple[CorpusAnswer, ...]:
        """The distinct answers of each question."""
        found: dict[tuple[str, str], CorpusAnswer] = {}
        for pair in self.pairs:
            for side, text in (("chosen", pair.chosen), ("rejected", pair.rejected)):
                if (pair.question, text) not in found:
                    found[pair.question, text] = CorpusAnswer(f"{pair.id}#{side}", pair.question, text)
        return tuple(found.values())

    @cached_property
    def sides(self) -> tuple[tuple[int, int], ...]:
        """Positions of each pair's chosen and rejected answer."""
        at = {(answer.question, answer.text): position for position, answer in enumerate(self.answers)}
        return tuple((at[pair.question, pair.chosen], at[pair.question, pair.rejected]) for pair in self.pairs)

    @cached_property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """The poles of each axis, in alphabetical order."""
        poles: dict[str, set[str]] = {}
        for pair in self.pairs:
            for axis, pole in pair.stances.items():
                poles.setdefault(axis, set()).add(pole)
        return {axis: tuple(sorted(poles[axis])) for axis in sorted(poles)}

    @cached_property
    def two_sided(self) -> tuple[str, ...]:
        """The axes with two poles, as an axis should have."""
        return tuple(axis for axis, poles in self.axes.items() if len(poles) == 2)

    @property
    def contrasts(self) -> tuple[AnswerContrast, ...]:
        """The distinct couples of answers that meet in a pair."""
        return self._met[0]

    @property
    def shown(self) -> tuple[tuple[int, bool], ...]:
        """Position of each pair's contrast, and whether the chosen answer is the contrast's first."""
        return self._met[1]

    @cached_property
    def _met(self) -> tuple[tuple[AnswerContrast, ...], tuple[tuple[int, bool], ...]]:
        contrasts: list[AnswerContrast] = []
        known: dict[tuple[tuple[str, ...], int, int], int] = {}
        places = []
        for pair, (chosen, rejected) in zip(self.pairs, self.sides, strict=True):
            wants = pair.stances
            axes = tuple(wants)
            forward = wants[axes[0]] == self.axes[axes[0]][0] if axes else chosen < rejected
            first, second = (chosen, rejected) if forward else (rejected, chosen)
            if (axes, first, second) not in known:
                known[axes, first, second] = len(contrasts)
                contrasts.append(AnswerContrast(pair.id, pair.question, axes, first, second))
            places.append((known[axes, first, second], forward))
        return tuple(contrasts), tuple(places)

    @cached_property
    def by_axis(self) -> Mapping[str, tuple[int, ...]]:
        """Per axis the positions of the contrasts in which nothing but this axis differs."""
        found: dict[str, list[int]] = {axis: [] for axis in self.two_sided}
        for index, contrast in enumerate(self.contrasts):
            if len(contrast.axes) == 1 and contrast.axes[0] in found:
                found[contrast.axes[0]].append(index)
        return {axis: tuple(indices) for axis, indices in found.items() if indices}

    @cached_property
    def profiles(self) -> Mapping[str, Mapping[str, str]]:
        """Each user's posts, id to text."""
        found: dict[str, dict[str, str]] = {}
        for pair in self.pairs:
            found.setdefault(pair.user, {}).update((post.id, post.text) for post in pair.profile)
        return found

    @cached_property
    def posts(self) -> tuple[CorpusPost, ...]:
        """The distinct texts among all posts."""
        ids: dict[str, list[str]] = {}
        users: dict[str, set[str]] = {}
        for user, posts in self.profiles.items():
            for name, text in posts.items():
                ids.setdefault(text, []).append(name)
                users.setdefault(text, set()).add(user)
        return tuple(CorpusPost(text, tuple(ids[text]), frozenset(users[text])) for text in ids)

    @cached_property
    def questions(self) -> Mapping[str, str]:
        """Each question's text, with the first pair that asks it."""
        found: dict[str, str] = {}
        for pair in self.pairs:
            found.setdefault(pair.question, pair.id)
        return found

    @cached_property
    def stances(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """Poles that each user wants, by axis; more than one pole on an axis is a contradiction."""
        found: dict[str, dict[str, set[str]]] = {}
        for pair in self.pairs:
            for axis, pole in pair.stances.items():
                found.setdefault(pair.user, {}).setdefault(axis, set()).add(pole)
        return {user: {axis: frozenset(poles) for axis, poles in held.items()} for user, held in found.items()}

    def splits_of(self, keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the splits of each key, one key per pair, each with its first pair; an empty key is left out."""
        found: dict[str, dict[str, str]] = {}
        for key, pair in zip(keys, self.pairs, strict=True):
            if key:
                found.setdefault(key, {}).setdefault(pair.tags.get("split", ""), pair.id)
        return found
