"""Texts with the stances they show: what an encoder is tuned on.

Three sources: the passages that ship with the package; the answers of the training split, whose poles follow from the
pairs' `axis` and `pole` tags; and the posts that its rubric aspects name as evidence, of which only some piece shows
the stance, and it is not known which.
"""

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from prbench.contexts.builder import aspect_line
from prbench.data.passages import Passage
from prbench.errors import DataError
from prbench.models.personal.pieces import pieces
from prbench.types import Aspect, Pair

_WINDOW = 3
_SHORT_WORDS = 60
"""Most words of a passage that is joined with others: three of them are as long as a post."""


class Stance(NamedTuple):
    """A side of an axis: −1 or +1."""

    axis: str
    side: int


class Labelled(NamedTuple):
    """A text in pieces, and the stances that at least one of them is known to show."""

    pieces: tuple[str, ...]
    stances: tuple[Stance, ...]


class Difference(NamedTuple):
    """Two answers and what they differ in: axes with the side of the first."""

    question: str
    """Question or situation of both."""
    one: str
    two: str
    stances: tuple[Stance, ...]


class Axes:
    """The axes of a split and the two poles of each, in a fixed order.

    Example:
        >>> Axes({"spend": {"time", "money"}}).stance("spend", "time")
        Stance(axis='spend', side=1)
    """

    def __init__(self, poles: Mapping[str, Iterable[str]]) -> None:
        self.poles = {axis: tuple(sorted(found)) for axis, found in sorted(poles.items())}
        if odd := [axis for axis, found in self.poles.items() if len(found) != 2]:
            raise DataError(
                f"axis {odd[0]!r} has the poles {', '.join(self.poles[odd[0]])}: an encoder is tuned on two",
                hint="both poles of every axis must occur in the training split",
            )

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "Axes":
        """The axes that some pairs are decided on."""
        poles: dict[str, set[str]] = {}
        for pair in pairs:
            for axis, pole in pair.stances.items():
                poles.setdefault(axis, set()).add(pole)
        if not poles:
            raise DataError(
                "no pair says what decides it", hint="tuning needs the tags `axis` and `pole`, as the mirror suite has"
            )
        return cls(poles)

    def stance(self, axis: str, pole: str) -> Stance:
        """Return the side of the axis that a pole is."""
        return Stance(axis, 1 if self.poles[axis][1] == pole else -1)


def labelled(
    pairs: Sequence[Pair],
    passages: Sequence[Passage],
    axes: Axes,
    *,
    posts: str = "pieces",
    answers: bool = True,
    wishes: bool = False,
    join: int | None = None,
) -> list[Labelled]:
    """All texts that show a stance on one of the axes; every piece of an answer does, of a post in pieces one piece.

    Args:
        pairs: Pairs of the training split.
        passages: Texts that were written to show a stance.
        axes: The axes that count.
        posts: How the users' posts are shown: `none`, `pieces` or `whole`.
        answers: Whether answers are shown, and passages that were written as answers.
        wishes: Whether wishes are shown, and the lines of rubrics.
        join: Seed by which passages are joined to texts as long as a post; None leaves each alone.
    """
    known = [passage for passage in passages if passage.axis in axes.poles]
    kinds = {"post", *(["answer"] if answers else [])}
    written = passage_stances([passage for passage in known if passage.kind in kinds], axes)
    shown = [Labelled((text,), stances) for text, stances in written.items()]
    found = shown if join is None else joined(shown, join)
    if wishes:
        asked = passage_stances([passage for passage in known if passage.kind == "wish"], axes)
        found += [Labelled((text,), stances) for text, stances in asked.items()]
        lines = {aspect_line(aspect): stance for pair in pairs for stance, aspect in stated(pair, axes)}
        found += [Labelled((line,), (stance,)) for line, stance in lines.items()]
    if answers:
        for text, stances in answer_stances(pairs, axes).items():
            found += [Labelled((piece,), stances) for piece in pieces(text, _WINDOW)]
    if posts == "pieces":
        found += [Labelled(tuple(pieces(text, _WINDOW)), told) for text, told in post_stances(pairs, axes).items()]
    elif posts == "whole":
        found += [Labelled((text,), told) for text, told in people_stances(pairs, axes).items()]
    return found


def passage_stances(passages: Iterable[Passage], axes: Axes) -> dict[str, tuple[Stance, ...]]:
    """The stances that passages were written to show; one that shows several is there once for each."""
    found: dict[str, set[Stance]] = {}
    for passage in passages:
        if passage.axis in axes.poles:
            found.setdefault(passage.text, set()).add(axes.stance(passage.axis, passage.pole))
    return {text: tuple(sorted(stances)) for text, stances in found.items()}


def joined(texts: Sequence[Labelled], seed: int) -> list[Labelled]:
    """One to three texts as one, in a random order; such as contradict each other, and long ones, stay apart."""
    draw = random.Random(f"joined:{seed}")  # noqa: S311 (a reproducible draw)
    found = [one for one in texts if _is_long(one)]
    left = [one for one in texts if not _is_long(one)]
    draw.shuffle(left)
    while left:
        count = draw.randint(1, 3)
        together, left = left[:count], left[count:]
        stances = tuple(sorted({stance for one in together for stance in one.stances}))
        if len({stance.axis for stance in stances}) < len(stances):
            found += together
        else:
            found.append(Labelled((" ".join(piece for one in together for piece in one.pieces),), stances))
    return found


def _is_long(text: Labelled) -> bool:
    return sum(len(piece.split()) for piece in text.pieces) > _SHORT_WORDS


def people_stances(pairs: Sequence[Pair], axes: Axes) -> dict[str, tuple[Stance, ...]]:
    """All posts of the users, with what the aspects say that each shows; many show nothing."""
    told = post_stances(pairs, axes)
    return {post.text: told.get(post.text, ()) for pair in pairs for post in pair.profile}


def stated(pair: Pair, axes: Axes) -> list[tuple[Stance, Aspect]]:
    """Return the stance that each aspect of a pair states, if known: where every aspect is of an axis that decides.

    The aspects of a pair may also say what its user wants and both answers have. Then nothing tells which is which, and
    another pair of the same question, whose answers differ in both, does.
    """
    deciding = list(pair.stances.items())
    if len(deciding) != len(pair.rubric_aspects):
        return []
    told = zip(deciding, pair.rubric_aspects, strict=True)
    return [(axes.stance(axis, pole), aspect) for (axis, pole), aspect in told if axis in axes.poles]


def post_stances(pairs: Iterable[Pair], axes: Axes) -> dict[str, tuple[Stance, ...]]:
    """The stances that posts are evidence of: an aspect names posts by their ids."""
    found: dict[str, set[Stance]] = {}
    for pair in pairs:
        texts = {post.id: post.text for post in pair.profile}
        for stance, aspect in stated(pair, axes):
            for name in aspect.evidence.split(","):
                if name.strip() in texts:
                    found.setdefault(texts[name.strip()], set()).add(stance)
    return {text: tuple(sorted(stances)) for text, stances in found.items()}


def answer_stances(pairs: Iterable[Pair], axes: Axes) -> dict[str, tuple[Stance, ...]]:
    """The stances of each answer: the chosen one shows the user's poles, the rejected one their opposites."""
    found: dict[str, set[Stance]] = {}
    for pair in pairs:
        for axis, pole in pair.stances.items():
            if axis in axes.poles:
                stance = axes.stance(axis, pole)
                found.setdefault(pair.chosen, set()).add(stance)
                found.setdefault(pair.rejected, set()).add(stance._replace(side=-stance.side))
    return {text: tuple(sorted(stances)) for text, stances in found.items()}


def differences(pairs: Sequence[Pair], passages: Sequence[Passage], axes: Axes) -> list[Difference]:
    """All pairs of sound answers whose difference is known: of a question of the split, or of one situation."""
    answers = [passage for passage in passages if passage.kind == "answer"]
    told, asked = answer_stances(pairs, axes) | passage_stances(answers, axes), dict[str, dict[str, None]]()
    for pair in sorted(pairs, key=lambda pair: pair.question):
        asked.setdefault(pair.question, {}).update(dict.fromkeys((pair.chosen, pair.rejected)))
    for passage in answers:
        asked.setdefault(passage.situation, {})[passage.text] = None
    found = []
    for question, texts in asked.items():
        for one, two in itertools.combinations(sorted(texts), 2):
            opposite = {stance._replace(side=-stance.side) for stance in told.get(two, ())}
            if apart := tuple(sorted(opposite.intersection(told.get(one, ())))):
                found.append(Difference(question, one, two, apart))
    return found
