"""Fluency of an English text: how well its letters and words follow one another, and whether it ends.

A vocabulary tells a broken text from an answer only where the answer has the words of the training texts. Here a word
is one of a few hundred frequent ones, or stands for all words with its ending, and what is counted is how much more
often two such classes are neighbours, and neighbours but one, than by chance; and for letters, how usual each is after
the two before it. Words in a wrong order have no fluency, and letters in a wrong order none either, whatever the text
is about. Texts in other languages have little.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d[\d.,]*|\n+|[^\w\s]")
_CLASSES, _ENDINGS = 200, 40
"""Frequent words and marks that are classes of their own, and endings of two letters."""
_CHANCE = 5.0
"""Pairs by chance that are added to those that were counted: rare classes say little."""
_STEPS = 32.0
"""Steps of a unit of log-odds that tables are kept in, a byte each."""
_LETTERS = 28
"""The letters a to z, the edge of a word, and any other letter."""
_UNIFORM = float(np.log(_LETTERS))
_FIGURES, _NOTHING = 1.2, -4.0
"""Fluency of the letters of a text without any: as in other texts where it has figures, else below all texts."""
_ITEM = re.compile(r"\s*(?:[-*•+>|]|\d+[.)]|[A-Za-z][.)]\s)")
_SHORT_LINE = 8
"""Words of a last line that may stand without a stop below other lines: a title, a name, a line of verse."""
_OPEN = frozenset(",-–—([{/=&<")
"""Marks after which something is missing."""
_LEADING = frozenset({"a", "an", "the", "and", "or", "but", "of", "your", "my", "their", "its", "our"})
"""Words after which something is missing."""
_SPREAD = (2, 4)
"""Factors of letters and words, by which both have a spread like that of the other counts."""
KEPT = ("fluency_words", "fluency_letters", "fluency_near", "fluency_far")
"""Names of the arrays that a fluency is kept as."""


class Fluency:
    """Counts of what follows what.

    Args:
        arrays: What `arrays` gave.
    """

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        kept = bytes(arrays["fluency_words"]).decode().split("\0")
        self._classes = {name: place for place, name in enumerate(kept)}
        self._letters, self._near, self._far = (arrays[name].astype(np.float64) / _STEPS for name in KEPT[1:])
        tables = self._letters.shape, self._near.shape, self._far.shape
        if tables != ((_LETTERS,) * 3, (len(kept),) * 2, (len(kept),) * 2):
            raise ValueError(f"tables of fluency of shapes {tables} for {len(kept)} classes of words")

    def signs(self, text: str) -> Floats:
        """How fluent its letters and words are, 0 where they follow by chance, and whether it ends.

        Args:
            text: Any text.
        """
        found = tokens(text)
        places = np.array([_class_of(token, self._classes) for token in found], dtype=np.int64)
        spelt = [letters(token) for token in found if token[0].isalpha()]
        after = [self._letters[word[:-2], word[1:-1], word[2:]] for word in spelt]
        unspelt = _FIGURES if "0" in found else _NOTHING
        return np.array(
            [
                _SPREAD[0] * (float(np.concatenate(after).mean()) if after else unspelt),
                _SPREAD[1] * (_mean(self._near[places[:-1], places[1:]]) + _mean(self._far[places[:-2], places[2:]])),
                float(ended(text)),
            ]
        )


def counted(texts: Iterable[str]) -> dict[str, Any]:
    """Count over distinct texts what follows what; the arrays of a `Fluency`."""
    read = [tokens(text) for text in dict.fromkeys(texts)]
    frequent = Counter(token for found in read for token in found)
    named = [token for token, _ in sorted(frequent.items(), key=lambda item: (-item[1], item[0]))[:_CLASSES]]
    known = set(named)
    endings = Counter[str]()
    for token, count in frequent.items():
        if token not in known and token[0].isalpha():
            endings[_ending(token)] += count
    named += [ending for ending, _ in sorted(endings.items(), key=lambda item: (-item[1], item[0]))[:_ENDINGS]]
    classes = {name: place for place, name in enumerate(dict.fromkeys([*named, ""]))}
    near, far = (np.zeros((len(classes), len(classes))) for _ in range(2))
    spelt = np.zeros((_LETTERS, _LETTERS, _LETTERS))
    for found in read:
        places = np.array([_class_of(token, classes) for token in found], dtype=np.int64)
        np.add.at(near, (places[:-1], places[1:]), 1)
        np.add.at(far, (places[:-2], places[2:]), 1)
    for token, count in frequent.items():
        if token[0].isalpha():
            word = letters(token)
            np.add.at(spelt, (word[:-2], word[1:-1], word[2:]), count)
    return {
        "fluency_words": np.frombuffer("\0".join(classes).encode(), dtype=np.uint8),
        "fluency_letters": _in_bytes(_conditional(spelt) + _UNIFORM),
        "fluency_near": _in_bytes(_association(near)),
        "fluency_far": _in_bytes(_association(far)),
    }


def tokens(text: str) -> list[str]:
    r"""The words, numbers, marks and line breaks of a text, in lower case; every number is "0".

    Example:
        >>> tokens("- 2 cups\n\nStir.")
        ['-', '0', 'cups', '\n', 'stir', '.']
    """
    return ["0" if one[0].isdigit() else one[0] if one[0] == "\n" else one for one in _TOKEN.findall(text.lower())]


def letters(word: str) -> Any:
    """The letters of a word as numbers, with two edges before it and one behind."""
    found = [ord(sign) - 96 if "a" <= sign <= "z" else _LETTERS - 1 for sign in word if sign not in "'’"]
    return np.array([0, 0, *found, 0])


def ended(text: str) -> bool:
    r"""Whether a text ends as texts do: by a mark, in an item of a list, a row of a table, or a short last line.

    Example:
        >>> ended("Take the coach."), ended("Take the"), ended("Bring:\n- a torch\n- a map"), ended("")
        (True, False, True, False)
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    last = lines[-1].rstrip()
    if not last[-1].isalnum():
        return last[-1] not in _OPEN
    below = len(lines) > 1 and last.split()[-1].lower() not in _LEADING
    return below and (bool(_ITEM.match(last)) or len(last.split()) <= _SHORT_LINE)


def _class_of(token: str, classes: Mapping[str, int]) -> int:
    place = classes.get(token)
    if place is None and token[0].isalpha():
        place = classes.get(_ending(token))
    return classes[""] if place is None else place


def _ending(token: str) -> str:
    return f"-{token[-2:]}"


def _association(counts: Floats) -> Floats:
    """Log of how much more often than by chance."""
    total = max(counts.sum(), 1.0)
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / total
    return np.asarray(np.log((counts + _CHANCE) / (expected + _CHANCE)))


def _conditional(counts: Floats) -> Floats:
    """Log-probability of a letter after two others, which leans on that after one."""
    after_one = counts.sum(0)
    after_one = (after_one + 1) / (after_one + 1).sum(1, keepdims=True)
    return np.asarray(np.log((counts + _CHANCE * after_one) / (counts.sum(2, keepdims=True) + _CHANCE)))


def _in_bytes(table: Floats) -> Any:
    return np.clip(np.round(table * _STEPS), -127, 127).astype(np.int8)


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0
