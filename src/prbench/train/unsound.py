"""Unsound answers, made by rule from sound ones: soundness is learned on them beside flawed answers."""

import random
import re
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


def shortened(answer: str) -> str:
    """Return the first sentence of an answer: sound as well, if it says less.

    Example:
        >>> shortened("Take the coach. It is cheap.")
        'Take the coach.'
    """
    return sentences(answer)[0]


def unsound(pairs: Sequence[Pair], seed: int, forms: Sequence[tuple[str, str]] = ()) -> Iterator[Unsound]:
    """Yield one spoilt answer of each kind for two answers of each question, whole ones and first sentences.

    A text that no rule has changed, such as a single word in another order, is left out.

    Args:
        pairs: Pairs of sound answers.
        seed: Seed of the draws.
        forms: Questions and sound answers of other kinds: each is spoilt by three rules, and put to another question.
    """
    sound: dict[str, set[str]] = {}
    answered = [(pair.question, text) for pair in pairs for text in (pair.chosen, pair.rejected)]
    for question, answer in (*answered, *forms):
        sound.setdefault(question, set()).update((answer, shortened(answer)))
    yield from (one for one in _spoilt(pairs, seed, forms) if one.spoilt not in sound[one.question])


def _spoilt(pairs: Sequence[Pair], seed: int, forms: Sequence[tuple[str, str]]) -> Iterator[Unsound]:
    draw = random.Random(f"unsound:{seed}")  # noqa: S311 (a reproducible draw)
    answers: dict[str, list[str]] = {}
    profiles: dict[str, tuple[str, ...]] = {}
    category = {pair.question: pair.category for pair in pairs}
    for pair in pairs:
        known = answers.setdefault(pair.question, [])
        known += [text for text in (pair.chosen, pair.rejected) if text not in known]
        profiles.setdefault(pair.user, tuple(post.text for post in pair.profile))
    shown = [posts for posts in profiles.values() if posts]
    for question, own in answers.items():
        others = [text for other, found in answers.items() if other != question for text in found]
        near = [text for other in answers if other != question and category[other] == category[question]
                for text in answers[other]]  # fmt: skip
        for sound in own[:2]:
            for spoilt in (draw.choice(own), shortened(draw.choice(own))):
                yield from (Unsound(question, sound, rule(spoilt, draw)) for rule in _RULES)
            for texts in (others, others, near):
                if texts:
                    found = draw.choice(texts)
                    yield from (Unsound(question, sound, text) for text in dict.fromkeys((found, shortened(found))))
            yield from (Unsound(question, sound, text) for text in dict.fromkeys((question, sentences(question)[-1])))
            if shown:
                posts = draw.choice(shown)
                post = draw.choice(posts)
                yield from (Unsound(question, sound, text, posts) for text in dict.fromkeys((post, shortened(post))))
    for question, answer in forms:
        yield from (Unsound(question, answer, rule(answer, draw)) for rule in draw.sample(_RULES, 3))
        if others := [other for asked, other in forms if asked != question]:
            yield Unsound(question, answer, draw.choice(others))


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
    return _in_place(text, words)


def _scrambled(text: str, draw: random.Random) -> str:
    return _in_place(text, ["".join(draw.sample(word, len(word))) for word in text.split()])


def _cut(text: str, draw: random.Random) -> str:
    most = draw.randint(1, 8)
    return re.match(rf"\s*(?:\S+\s*){{0,{most}}}", text)[0].rstrip()  # type: ignore[index]


def _jumbled(text: str, draw: random.Random) -> str:
    """Words in another order within runs of a few."""
    words, size = text.split(), draw.randint(3, 6)
    runs = [words[start : start + size] for start in range(0, len(words), size)]
    return _in_place(text, [word for run in runs for word in draw.sample(run, len(run))])


def _misspelt(text: str, draw: random.Random) -> str:
    """Letters replaced by others here and there."""
    share = draw.uniform(0.1, 0.4)
    return "".join(draw.choice(_LETTERS) if sign.isalpha() and draw.random() < share else sign for sign in text)


def _thinned(text: str, draw: random.Random) -> str:
    """Words left out at random."""
    share = draw.uniform(0.35, 0.6)
    return re.sub(r"\S+\s*", lambda found: found[0] if draw.random() > share else "", text).strip()


def _in_place(text: str, words: Sequence[str]) -> str:
    """Other words in the places of a text's own, with its line breaks."""
    left = iter(words)
    return re.sub(r"\S+", lambda _: next(left), text)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RULES: tuple[Callable[[str, random.Random], str], ...] = (
    _nothing,
    _repeated_sentence,
    _repeated_words,
    _shuffled,
    _scrambled,
    _cut,
    _jumbled,
    _misspelt,
    _thinned,
)
