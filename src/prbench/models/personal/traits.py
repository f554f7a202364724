"""Traits of an answer that `contrast` sees: its terms, a few counts, and its vector.

The counts say how a text is made (length, lists, figures, marks, address) and whether it can be an answer at all: an
empty, repeated or scrambled text, one on another subject, or a copy of what the user wrote stands out in them.
"""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prbench.models.ngrams import NGrams, SparseRow, words
from prbench.models.personal.fluency import Fluency
from prbench.rank import TextEncoder

Floats = npt.NDArray[np.float64]
Run = tuple[str, ...]

TERMS_SCALE, COUNTS_SCALE, VECTOR_SCALE = 1.0, 0.3, 0.5
"""Scales of the three parts against each other under one penalty; chosen on validation."""
_NUMBERED = re.compile(r"^\s*\d+[.)]", re.MULTILINE)
_SENTENCE = re.compile(r"[.!?]+")
_OWN, _YOURS = frozenset({"i", "my", "me", "we", "our"}), frozenset({"you", "your"})
_LONG_WORD = 7
_RUN = 5
"""Words in a run that is looked for in question and posts."""
COUNTS, TELLING = 22, 8
"""Number of counts, and of those, the last ones, that tell whether a text is an answer at all."""
_ENDS = (".", "!", "?", "…", ":", ")", '"', "”", "'", "’", "`", "*")
_USUAL = (0.54, 0.26)
"""Mean nearness to the question and share of its words in the training split's answers, for an answer whose question is
not known."""
_MIDDLE_LENGTH = 3.5
"""Logarithm of 33 words: between a sentence (10 in the training split's answers) and a whole answer (107)."""
_KNOWN, _ENDING = 16, 21
"""Places of the count of known words, before that of known neighbours, and of how a text ends."""
_BY_FLUENCY = [1 + place - (COUNTS - TELLING) for place in (_KNOWN, _KNOWN + 1, _ENDING)]
"""The same places among the signs of a text that is no answer, the first of which is the length."""
_PASTED = COUNTS - 2
"""Place of the count that says how much of an answer stands in the question or in the posts."""
_KEPT = 4096
"""Answers whose traits are kept, whoever asks."""
_ANYTHING = "width"
_NOTHING: Floats = np.zeros(0)


class Traits(NamedTuple):
    """Traits of one answer."""

    terms: SparseRow
    dense: Floats
    """Counts, then the vector, scaled."""
    tuned: Floats = _NOTHING
    """Vector by an encoder that was tuned to read answers; empty where there is none."""
    fluency: Floats = _NOTHING
    """Signs of fluency; empty where they are not looked for."""

    @property
    def vector(self) -> Floats:
        """The vector alone, of length 1."""
        return self.dense[COUNTS:] / VECTOR_SCALE


class TraitReader:
    """Reader of the traits of answers.

    Args:
        grams: The terms that are known.
        encoder: Maps texts to vectors of length 1.
        tuned: An encoder that was tuned to read answers.
        fluency: How well words and letters follow one another.
    """

    def __init__(
        self, grams: NGrams, encoder: TextEncoder, tuned: TextEncoder | None = None, fluency: Fluency | None = None
    ) -> None:
        self.grams = grams
        self._encoder = encoder
        self._tuned = tuned
        self._fluency = fluency
        self._kept: dict[tuple[str, str], Traits] = {}
        self._posts: tuple[tuple[str, ...], frozenset[Run]] = ((), frozenset())
        """The posts that were read last, and the runs of words in them."""

    def read(self, question: str, answers: Sequence[str], posts: Sequence[str] = ()) -> list[Traits]:
        """The traits of answers to one question for a user with these posts."""
        found = {answer: self._kept[question, answer] for answer in answers if (question, answer) in self._kept}
        if new := [answer for answer in dict.fromkeys(answers) if answer not in found]:
            found.update(zip(new, self._read(question, new), strict=True))
        shown, runs = self._posts
        if shown != tuple(posts):
            runs = frozenset(run for text in posts for run in _runs(words(text)))
            self._posts = (tuple(posts), runs)
        runs |= frozenset(_runs(words(question)))
        return [_beside(found[answer], answer, runs) for answer in answers]

    def forget(self) -> None:
        """Drop what was read of answers and posts."""
        self._kept.clear()
        self._posts = ((), frozenset())

    def _read(self, question: str, answers: Sequence[str]) -> list[Traits]:
        """Read what answers are like, whoever asks."""
        vectors = _vectors(self._encoder, [question, *answers])
        tuned = np.zeros((len(answers), 0)) if self._tuned is None else _vectors(self._tuned, answers)
        if len(self._kept) + len(answers) > _KEPT:
            self._kept.clear()
        found = []
        for answer, vector, own in zip(answers, vectors[1:], tuned, strict=True):
            counts = self._counts(question, answer, float(vector @ vectors[0]))
            dense = np.concatenate([COUNTS_SCALE * counts, VECTOR_SCALE * vector])
            fluent = _NOTHING if self._fluency is None else COUNTS_SCALE * self._fluency.signs(answer)
            found.append(Traits(self.grams.row(answer), dense, own * math.sqrt(max(len(own), 1)), fluent))
            self._kept[question, answer] = found[-1]
        return found

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed everything that will be asked for in one go."""
        self._encoder.encode(list(dict.fromkeys(text for text in texts if words(text))))

    def _counts(self, question: str, answer: str, nearness: float) -> Floats:
        found, asked = words(answer), set(words(question))
        shared = _share([word in asked for word in found])
        if not asked:
            nearness, shared = _USUAL
        count, spoken = max(len(found), 1), max(len(_SENTENCE.findall(answer)), 1)
        neighbours = list(pairwise(found))
        return np.array(
            [
                math.log(count),
                math.log(count / spoken),
                float(bool(_NUMBERED.search(answer))),
                min(answer.count("\n"), 20) / 5,
                min(answer.count("?") / spoken, 3),
                min(answer.count("!") / spoken, 3),
                10 * _share([word == "0" for word in found]),
                5 * _share([len(word) > _LONG_WORD for word in found]),
                sum(map(len, found)) / count / 3,
                float('"' in answer or "“" in answer),
                10 * _share([word in _OWN for word in found]),
                10 * _share([word in _YOURS for word in found]),
                float("%" in answer),
                min((answer.count(";") + answer.count(":")) / spoken, 3),
                4 * nearness,
                3 * shared,
                5 * _share([self.grams.knows(word) for word in found]),
                5 * _share([self.grams.knows(f"{pair[0]} {pair[1]}") for pair in neighbours]),
                3 * len(set(found)) / count,
                5 * len(set(neighbours)) / max(len(neighbours), 1),
                0.0,  # what is pasted depends on who asks
                float(answer.rstrip().endswith(_ENDS)),
            ]
        )


def telling(dense: Floats, fluency: Floats) -> Floats:
    """Signs of a text that is no answer: its length, the counts that tell, and how they change with the length.

    The nearness to the question and the share of its words stand in second and third place. What is odd in a long text
    (a word twice, a question's words nowhere) is usual in a short one. Signs of fluency take the place of how many
    words and neighbours are known, and of how a text ends, where they were looked for.

    Args:
        dense: The dense traits of texts, (…, COUNTS or more).
        fluency: Signs of their fluency, (…, 3), or (…, 0).
    """
    length = dense[..., :1]
    found = np.concatenate([length, dense[..., COUNTS - TELLING : COUNTS]], axis=-1)
    if fluency.shape[-1]:
        found[..., _BY_FLUENCY] = fluency
    return np.concatenate([found, found * (length / COUNTS_SCALE - _MIDDLE_LENGTH)], axis=-1)


def _vectors(encoder: TextEncoder, texts: Sequence[str]) -> Floats:
    """The vector of each text; zeros for a text without words."""
    told = [text for text in texts if words(text)]
    vectors = encoder.encode(told or [_ANYTHING]).astype(np.float64)
    found = np.zeros((len(texts), vectors.shape[1]))
    found[[place for place, text in enumerate(texts) if words(text)]] = vectors[: len(told)]
    return found


def _beside(traits: Traits, answer: str, runs: frozenset[Run]) -> Traits:
    """The traits of an answer beside the question and the posts that it may have been pasted from."""
    pasted = _share([run in runs for run in _runs(words(answer))])
    if not pasted:
        return traits
    dense = traits.dense.copy()
    dense[_PASTED] = COUNTS_SCALE * 5 * pasted
    return traits._replace(dense=dense)


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def _runs(found: Sequence[str]) -> list[Run]:
    return [tuple(found[start : start + _RUN]) for start in range(len(found) - _RUN + 1)]
