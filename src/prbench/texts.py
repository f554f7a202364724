"""Measures of a text that need no understanding of it: words, sentences, shared runs of words, near-duplicates.

Texts are compared by their words alone: case, punctuation and layout do not count.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint32]
Hashes = NDArray[np.uint64]

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese are written without spaces: there, each character is a word."""
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963\u0966-\u0df3\u200c\u200d"
)
"""Characters that continue a word but are no letters to `\\w`: accents, vowel signs (with letters of Indic scripts),
joiners."""
_PART = rf"[^\W_{_UNSPACED}]+(?:[{_MARKS}]+[^\W_{_UNSPACED}]*)*"
_WORD = re.compile(rf"[{_UNSPACED}]|{_PART}(?:['’]{_PART})*")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|(?<=[。！？])|\n+")
_LIST_MARKER = re.compile(r"^[ \t]*(?:\d{1,2}[.)]|[-*•–])[ \t]+", re.MULTILINE)
_VOWELS = re.compile(r"[aeiouy]+")

_FEWEST_WORDS = 4
_FEWEST_LETTERS = 0.6
_LONGEST_WORD = 40
_LONG_ENOUGH = 20
_FEWEST_RUNS = 0.6
"""Share of a text's runs of three words that must differ from each other."""

MOST_COMPARED = 100
"""A text that is close to more others than this is known for it without being compared with all of them."""
_ROUNDING = 1e-9
"""Tolerance of a product in floats: 0.14 × 50 is 7, but in floats a little more."""


def words(text: str) -> list[str]:
    """The words of a text, in lower case.

    Example:
        >>> words("Don't boil GREEN tea: 80 °C!")
        ["don't", 'boil', 'green', 'tea', '80', 'c']
        >>> words("緑茶 in Kyoto")
        ['緑', '茶', 'in', 'kyoto']
        >>> words("हिन्दी में")
        ['हिन्दी', 'में']
    """
    return _WORD.findall(unicodedata.normalize("NFC", text.lower()).replace("’", "'"))


_FILLERS = dict.fromkeys([0x0640, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0])
"""Letters by their class that show nothing or a line: fillers of Hangul and Khmer, and the stretch of Arabic."""


def is_degenerate(text: str) -> bool:
    r"""Whether a text says nothing: empty, white space, punctuation or letters that only fill a place.

    Example:
        >>> is_degenerate(" ... "), is_degenerate("\u3164"), is_degenerate("42")
        (True, True, False)
    """
    return _WORD.search(text.lower().translate(_FILLERS)) is None


def nonsense(text: str) -> str | None:
    """Return why a text is no answer by rule, or None: too few words, hardly any letters, no words, or repetition.

    Example:
        >>> nonsense("asdf") , nonsense("go on " * 20)
        ('fewer than 4 words', 'it repeats itself')
        >>> nonsense("Never boil green tea: it turns bitter.") is None
        True
    """
    found = words(text)
    if len(found) < _FEWEST_WORDS:
        return f"fewer than {_FEWEST_WORDS} words"
    marks = [mark for mark in text if not mark.isspace()]
    if sum(mark.isalnum() for mark in marks) < _FEWEST_LETTERS * len(marks):
        return "hardly any letters"
    if max(map(len, found)) > _LONGEST_WORD:
        return f"a word of more than {_LONGEST_WORD} letters"
    runs = [tuple(found[place : place + 3]) for place in range(len(found) - 2)]
    if len(found) >= _LONG_ENOUGH and len(set(runs)) < _FEWEST_RUNS * len(runs):
        return "it repeats itself"
    return None


def sentences(text: str) -> list[str]:
    r"""The sentences of a text; a line ends one, and the number or bullet of a list item is none.

    Example:
        >>> sentences("1. Boil it. Wait!\n2. Pour")
        ['Boil it.', 'Wait!', 'Pour']
    """
    parts = (part.strip() for part in _SENTENCE_END.split(without_list_markers(text)))
    return [part for part in parts if _WORD.search(part)]


def list_markers(text: str) -> int:
    r"""Return the number of lines that open with a number or a bullet.

    Example:
        >>> list_markers("Do this:\n1. Boil.\n2. Pour.\n- Drink.")
        3
    """
    return len(_LIST_MARKER.findall(text))


def without_list_markers(text: str) -> str:
    """The text without the numbers and bullets of its lists."""
    return _LIST_MARKER.sub("", text)


def reading_ease(text: str) -> float:
    """Flesch reading ease: about 60 to 70 for plain English, lower is harder. Syllables are counted by rule of thumb.

    Example:
        >>> round(reading_ease("The cat sat on the mat."))
        116
    """
    found = words(text)
    if not found:
        return 0.0
    syllables = sum(map(_syllables, found))
    return 206.835 - 1.015 * len(found) / max(len(sentences(text)), 1) - 84.6 * syllables / len(found)


def _syllables(word: str) -> int:
    groups = len(_VOWELS.findall(word))
    silent = word.endswith("e") and not word.endswith(("le", "ee", "ye")) and groups > 1
    return max(groups - silent, 1)


class Shingles:
    """Runs of `n` words as numbers; equal runs have equal numbers within one instance.

    Example:
        >>> shingles = Shingles()
        >>> one, two = shingles.of("Never boil green tea.", 3), shingles.of("never BOIL green coffee", 3)
        >>> int(one[0]) == int(two[0]), int(one[1]) == int(two[1])
        (True, False)
    """

    def __init__(self) -> None:
        self._vocabulary: dict[str, int] = {}
        self._codes: dict[str, Codes] = {}
        self._factors = np.random.default_rng(0).integers(1, 2**63, size=64, dtype=np.uint64) | np.uint64(1)

    def of(self, text: str, n: int) -> Hashes:
        """One number for each run, in the order of the text; none where the text has fewer words."""
        codes = self._encode(text)
        count = max(len(codes) - n + 1, 0)
        runs = np.zeros(count, dtype=np.uint64)
        for place, factor in enumerate(self._factors[:n] if count else ()):
            runs += codes[place : place + count] * factor
        return runs

    def length(self, text: str) -> int:
        """Return the number of words in the text."""
        return len(self._encode(text))

    def _encode(self, text: str) -> Codes:
        """One number for each word; kept, since many checks read the same text."""
        if text not in self._codes:
            known = self._vocabulary
            codes = [known.setdefault(word, len(known) + 1) for word in words(text)]
            self._codes[text] = np.array(codes, dtype=np.uint32)
        return self._codes[text]


class Near(NamedTuple):
    """Two texts, by position, and how much of their word 5-grams they share."""

    first: int
    second: int
    similarity: float


def near_duplicates(texts: Sequence[str], threshold: float, shingles: Shingles, n: int = 5) -> list[Near]:
    """All pairs of texts whose word n-grams have a Jaccard similarity of at least `threshold`, most similar first.

    A pair that reaches the threshold must share one of the rarest n-grams of both (prefix filtering), so only texts
    that do are compared: exact, unless more than `MOST_COMPARED` texts hold even the rarest n-gram that two of them
    share. Texts with fewer than n words are compared as a whole.

    Example:
        >>> tea = "never boil green tea because it turns bitter and dull"
        >>> near_duplicates([tea, "something else altogether in these words", tea + " indeed"], 0.5, Shingles())
        [Near(first=0, second=2, similarity=0.857...)]
    """
    known: dict[bytes, Hashes] = {}  # equal sets are one object, so that a heap of equal texts costs nothing
    sets = [known.setdefault(one.tobytes(), one) for one in (_runs_of(text, shingles, n) for text in texts)]
    found = []
    for first, second in _candidates(sets, threshold):
        near = Near(first, second, _jaccard(sets[first], sets[second]))
        if near.similarity >= threshold:
            found.append(near)
    return sorted(found, key=lambda near: (-near.similarity, near.first, near.second))


def similarity(one: str, other: str, shingles: Shingles, n: int = 5) -> float:
    """The Jaccard similarity of the word n-grams of two texts; 0 where one of them has no words.

    Example:
        >>> round(similarity("never boil green tea at home", "never boil green tea at work", Shingles(), 2), 2)
        0.67
    """
    return _jaccard(_runs_of(one, shingles, n), _runs_of(other, shingles, n))


def _runs_of(text: str, shingles: Shingles, n: int) -> Hashes:
    return np.unique(shingles.of(text, min(n, max(shingles.length(text), 1))))


def _jaccard(one: Hashes, other: Hashes) -> float:
    if one is other:
        return float(len(one) > 0)
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / max(len(one) + len(other) - shared, 1)


def _candidates(sets: Sequence[Hashes], threshold: float) -> list[tuple[int, int]]:
    """Pairs that share one of the n-grams that both hold among their rarest."""
    if not sets:
        return []
    runs = np.concatenate(sets)
    owners = np.repeat(np.arange(len(sets)), [len(one) for one in sets])
    _, inverse, counts = np.unique(runs, return_inverse=True, return_counts=True)
    by_rarity = np.lexsort((runs, counts[inverse], owners))
    starts = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
    kept = []
    for owner, one in enumerate(sets):
        prefix = len(one) - int(np.ceil(threshold * len(one) - _ROUNDING)) + 1
        kept.append(by_rarity[starts[owner] : starts[owner] + min(prefix, len(one))])
    rows = np.concatenate(kept)
    rows = rows[np.lexsort((owners[rows], runs[rows]))]
    keys, holders = runs[rows], owners[rows]
    pairs = [np.zeros(0, dtype=np.int64)]  # as one number each: a heap of equal texts names the same pair many times
    for step in range(1, min(MOST_COMPARED, len(keys) - 1) + 1):
        same = keys[step:] == keys[:-step]
        if not same.any():
            break
        pairs.append(np.unique(holders[:-step][same] * len(sets) + holders[step:][same]))
    first, second = np.divmod(np.unique(np.concatenate(pairs)), len(sets))
    return list(zip(first.tolist(), second.tolist(), strict=True))


class Copy(NamedTuple):
    """A run of words of a source that also stands in a target; texts by position."""

    source: int
    target: int
    words: str


def copies(sources: Sequence[str], targets: Sequence[str], shingles: Shingles, *, run: int, least: int) -> list[Copy]:
    """Find the runs of `run` words that targets share with sources, or a whole source that has fewer (but `least`).

    Each source and target is named together once, with the first run that they share.

    Example:
        >>> told = ["Mum says: warm the pot before you pour."]
        >>> copies(["Warm the pot before you pour"], told, Shingles(), run=8, least=4)
        [Copy(source=0, target=0, words='warm the pot before you pour')]
    """
    lengths = [min(shingles.length(source), run) for source in sources]
    found: dict[tuple[int, int], str] = {}
    for length in sorted({length for length in lengths if length >= least}):
        chosen = [index for index, own in enumerate(lengths) if own == length]
        known = [np.unique(shingles.of(sources[index], length)) for index in chosen]
        for source, target, place in _shared(known, [shingles.of(text, length) for text in targets]):
            key = (chosen[source], target)
            found.setdefault(key, " ".join(words(targets[target])[place : place + length]))
    return [Copy(source, target, text) for (source, target), text in sorted(found.items())]


def _shared(known: Sequence[Hashes], held: Sequence[Hashes]) -> Iterator[tuple[int, int, int]]:
    """Every (source, target, place in the target) of a shared run."""
    keys = np.concatenate(known)
    owners = np.repeat(np.arange(len(known)), [len(one) for one in known])
    order = np.argsort(keys, kind="stable")
    keys, owners = keys[order], owners[order]
    starts = np.cumsum([0, *(len(runs) for runs in held)])
    runs = np.concatenate([np.zeros(0, dtype=np.uint64), *held])
    low, high = np.searchsorted(keys, runs, "left"), np.searchsorted(keys, runs, "right")
    for row in np.flatnonzero(high > low).tolist():
        target = int(np.searchsorted(starts, row, "right")) - 1
        for owner in owners[low[row] : high[row]].tolist():
            yield owner, target, row - int(starts[target])
