"""A mirrored suite with nothing wrong in it, in made-up words, into which each test plants one fault."""

import random
from collections.abc import Iterator
from itertools import product

import pytest

from pair_factory import make_pair
from prbench.types import Aspect, Pair, Post

AXES = {"tempo": ("steady", "swift"), "reach": ("faraway", "nearby"), "manner": ("gentle", "severe")}
LEXICON = {
    pole: [f"{pole[:3]}{end}" for end in ("ando", "elim", "urra", "iston")] for axis in AXES.values() for pole in axis
}
SYLLABLES = [consonant + vowel for consonant, vowel in product("bdfgklmnprstvz", "aeiou")]
COUPLES = {"train": range(0, 4), "test": range(4, 8)}
QUESTIONS = {"train": range(0, 8), "test": range(8, 18)}


class Writer:
    """Writes text that nobody has written before."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)

    def word(self) -> str:
        return "".join(self.random.choices(SYLLABLES, k=2))

    def sentence(self, length: int = 8, *marked: str) -> str:
        words = [*marked, *(self.word() for _ in range(length - len(marked)))]
        self.random.shuffle(words)
        return " ".join(words).capitalize() + "."

    def text(self, sentences: int, *marked: str) -> str:
        return " ".join(self.sentence(8, *marked[number::sentences]) for number in range(sentences))


def axes_of(question: int) -> tuple[str, str]:
    """Train has tempo and reach; in test half of the questions have an axis that train has not."""
    return ("tempo", "manner") if question >= 8 and question % 2 else ("tempo", "reach")


def stances_of(couple: int, half: int) -> dict[str, str]:
    """Every combination equally often, the halves opposite."""
    bits = {"tempo": couple & 1, "reach": couple >> 1 & 1, "manner": (couple ^ couple >> 1) & 1}
    return {axis: AXES[axis][bit ^ half] for axis, bit in bits.items()}


class Maker:
    """Everything is written first, then the pairs are drawn up."""

    def __init__(self) -> None:
        writer = Writer()
        self.users = [f"u{couple}{half}" for couple in range(8) for half in "ab"]
        self.profiles = {
            user: tuple(Post(id=f"{user}-{number}", text=writer.text(6)) for number in range(12)) for user in self.users
        }
        numbers = [number for numbers in QUESTIONS.values() for number in numbers]
        self.questions = {number: writer.text(3) for number in numbers}
        self.answers, self.aspects = {}, {}
        for number in numbers:
            one, two = axes_of(number)
            for poles in product(AXES[one], AXES[two]):
                marked = [word for pole in poles for word in writer.random.sample(LEXICON[pole], 3)]
                self.answers[number, poles] = writer.text(10, *marked)
            for axis in (one, two):
                for pole in AXES[axis]:
                    self.aspects[number, pole] = (writer.sentence(6), writer.sentence(12), writer.text(3))

    def pairs(self) -> Iterator[Pair]:
        """All pairs of all splits."""
        for people, asked in (("train", "train"), ("test", "test"), ("train", "test")):
            split = asked if people == asked else "seen-users"
            for couple, number in product(COUPLES[people], QUESTIONS[asked]):
                one, two = axes_of(number)
                for axis, other in ((one, two), (two, one)):
                    for fixed, half in product(AXES[other], (0, 1)):
                        yield self.pair(couple, half, number, axis, fixed, split)

    def pair(self, couple: int, half: int, number: int, axis: str, fixed: str, split: str) -> Pair:
        """One half: the pole it wants on the axis, the other axis held fixed."""
        wanted = stances_of(couple, half)[axis]
        refused = next(pole for pole in AXES[axis] if pole != wanted)
        place = axes_of(number).index(axis)
        keys = [(pole, fixed) if place == 0 else (fixed, pole) for pole in (wanted, refused)]
        user = f"u{couple}{'ab'[half]}"
        title, reason, narrative = self.aspects[number, wanted]
        mirror = f"c{couple}:q{number}:{axis}:{fixed}:{split}"
        return make_pair(
            id=f"{user}:q{number}:{axis}:{fixed}",
            user=user,
            question=self.questions[number],
            profile=self.profiles[user],
            narrative=narrative,
            rubric_aspects=(Aspect(aspect=title, reason=reason, evidence=f"{user}-0, {user}-3"),),
            category="even" if number % 2 == 0 else "odd",
            chosen=self.answers[number, keys[0]],
            rejected=self.answers[number, keys[1]],
            tags={
                "split": split,
                "axis": axis,
                "pole": wanted,
                "mirror": mirror,
                "couple": f"c{couple}",
                "unseen": "yes" if axis == "manner" else "no",
            },
        )


@pytest.fixture(scope="session")
def _sound() -> tuple[Pair, ...]:
    return tuple(Maker().pairs())


@pytest.fixture
def sound(_sound: tuple[Pair, ...]) -> list[Pair]:
    """The suite, as a list that a test may change."""
    return list(_sound)
