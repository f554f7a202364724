"""Answers that nobody wants, made by rule from sound ones: soundness is learned on them beside flawed answers."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from prbench.models.personal.pieces import sentences
from prbench.types import Pair

_MARKS = ("", " ", ".", "...", "?", "-", "!!", "\n\n", "* * *", "—")


class Unsound(NamedTuple):
    """A sound answer beside one that was spoilt; `posts` where the user's own words were pasted."""

    question: str
    sound: str
    spoilt: str
    posts: tuple[str, ...] = ()


def unsound(pairs: Sequence[Pair], seed: int) -> Iterator[Unsound]:
    """For two answers of each question one spoilt answer of each kind."""
    draw = random.Random(f"unsound:{seed}")  # noqa: S311 (a reproducible draw)
    answers: dict[str, list[str]] = {}
    profiles: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        known = answers.setdefault(pair.question, [])
        known += [text for text in (pair.chosen, pair.rejected) if text not in known]
        profiles.setdefault(pair.user, tuple(post.text for post in pair.profile))
    shown = [posts for posts in profiles.values() if posts]
    for question, own in answers.items():
        others = [text for other, found in answers.items() if other != question for text in found]
        for sound in own[:2]:
            spoilt = draw.choice(own)
            yield from (Unsound(question, sound, rule(spoilt, draw)) for rule in _RULES)
            if others:
                yield Unsound(question, sound, draw.choice(others))
            yield Unsound(question, sound, question)
            if shown:
                posts = draw.choice(shown)
                yield Unsound(question, sound, draw.choice(posts), posts)


def _nothing(text: str, draw: random.Random) -> str:
    return draw.choice(_MARKS)


def _repeated_sentence(text: str, draw: random.Random) -> str:
    return " ".join([draw.choice(sentences(text))] * draw.randint(4, 9))


def _repeated_words(text: str, draw: random.Random) -> str:
    words = text.split()
    start = draw.randrange(max(len(words) - 3, 1))
    return " ".join(words[start : start + 3] * draw.randint(15, 30))


def _shuffled(text: str, draw: random.Random) -> str:
    words = text.split()
    draw.shuffle(words)
    return " ".join(words)


def _scrambled(text: str, draw: random.Random) -> str:
    return " ".join("".join(draw.sample(word, len(word))) for word in text.split())


def _cut(text: str, draw: random.Random) -> str:
    return " ".join(text.split()[: draw.randint(1, 8)])


_RULES: tuple[Callable[[str, random.Random], str], ...] = (
    _nothing,
    _repeated_sentence,
    _repeated_words,
    _shuffled,
    _scrambled,
    _cut,
)
