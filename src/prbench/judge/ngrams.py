"""TF-IDF of words and pairs of words: an encoder of our own, which no reward model shares.

Numbers are one token, marks that shape a text (question marks, colons, line breaks …) are tokens too. Rows have length
1, so a long answer does not weigh more than a short one.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d[\d.,]*|[?!:;()—\n]")
_RARE = 2
"""A term that fewer texts have says nothing about other texts."""


def terms(text: str) -> set[str]:
    """The distinct words, marks and pairs of neighbours of a text.

    Example:
        >>> sorted(terms("2 cups, 3 cups"))
        ['0', '0 cups', 'cups', 'cups 0']
    """
    tokens = ["0" if token[0].isdigit() else token for token in _TOKEN.findall(text.lower())]
    return {*tokens, *(f"{one} {two}" for one, two in pairwise(tokens))}


class NGrams:
    """Maps texts to sparse rows over the terms of the texts that it was made of.

    Example:
        >>> grams = NGrams(["red tea", "red hat", "blue tea"])
        >>> grams.vocabulary
        ('red', 'tea')
        >>> grams.rows(["red tea", "nothing known"]).toarray().round(3).tolist()
        [[0.707, 0.707], [0.0, 0.0]]
    """

    def __init__(self, texts: Iterable[str]) -> None:
        known = list(dict.fromkeys(texts))
        counts = Counter(term for text in known for term in terms(text))
        self.vocabulary = tuple(sorted(term for term, count in counts.items() if count >= _RARE))
        self._index = {term: column for column, term in enumerate(self.vocabulary)}
        self._weights = np.array([1 + np.log((1 + len(known)) / (1 + counts[term])) for term in self.vocabulary])

    name = "tfidf"

    @property
    def revision(self) -> str:
        """Content hash of vocabulary and weights."""
        digest = hashlib.sha256("\n".join(self.vocabulary).encode())
        digest.update(self._weights.round(9).tobytes())
        return digest.hexdigest()

    def rows(self, texts: Sequence[str]) -> Any:
        """One row per text, of length 1, or all zero where no term is known."""
        from scipy.sparse import csr_array

        found = [sorted(self._index[term] for term in terms(text) if term in self._index) for text in texts]
        values = [self._weights[columns] for columns in found]
        scaled = [row / max(float(np.linalg.norm(row)), 1e-12) for row in values]
        places = np.cumsum([0, *map(len, found)])
        flat = np.concatenate([np.array(columns, dtype=np.int64) for columns in found]) if found else np.zeros(0, int)
        data = np.concatenate(scaled) if scaled else np.zeros(0)
        return csr_array((data, flat, places), shape=(len(texts), len(self.vocabulary)))

    def size(self, text: str) -> int:
        """How much of a model's reading a text costs: nothing, there is no model."""
        return 0
