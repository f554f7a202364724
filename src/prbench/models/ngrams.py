"""TF-IDF of words and pairs of words, as the stance probe and the `contrast` reward model read texts.

Numbers are one token, marks that shape a text (question marks, colons, line breaks …) are tokens too. Rows have length
1, so a long answer does not weigh more than a short one.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d[\d.,]*|[?!:;()—\n]")
_RARE = 2
"""A term that fewer texts have says nothing about other texts; some readers ask for more."""


def words(text: str) -> list[str]:
    """The words and marks of a text in their order; every number is "0".

    Example:
        >>> words("2 cups, 3 cups!")
        ['0', 'cups', '0', 'cups', '!']
    """
    return ["0" if token[0].isdigit() else token for token in _TOKEN.findall(text.lower())]


def terms(text: str) -> set[str]:
    """The distinct words, marks and pairs of neighbours of a text.

    Example:
        >>> sorted(terms("2 cups, 3 cups"))
        ['0', '0 cups', 'cups', 'cups 0']
    """
    tokens = words(text)
    return {*tokens, *(f"{one} {two}" for one, two in pairwise(tokens))}


class SparseRow(NamedTuple):
    """A sparse row: its columns in order, and their values."""

    columns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class NGrams:
    """Maps texts to sparse rows over the terms of the texts that it was made of.

    Args:
        texts: Texts whose terms are known.
        rare: A term that fewer of them have is not.

    Example:
        >>> grams = NGrams(["red tea", "red hat", "blue tea"])
        >>> grams.vocabulary
        ('red', 'tea')
        >>> grams.rows(["red tea", "nothing known"]).toarray().round(3).tolist()
        [[0.707, 0.707], [0.0, 0.0]]
    """

    def __init__(self, texts: Iterable[str], rare: int = _RARE) -> None:
        known = list(dict.fromkeys(texts))
        counts = Counter(term for text in known for term in terms(text))
        vocabulary = sorted(term for term, count in counts.items() if count >= rare)
        self._set(vocabulary, np.array([1 + np.log((1 + len(known)) / (1 + counts[term])) for term in vocabulary]))

    @classmethod
    def kept(cls, vocabulary: Sequence[str], weights: npt.NDArray[np.float64]) -> "NGrams":
        """The terms of an earlier one, with their weights."""
        found = cls.__new__(cls)
        found._set(vocabulary, weights)
        return found

    def _set(self, vocabulary: Sequence[str], weights: npt.NDArray[np.float64]) -> None:
        self.vocabulary = tuple(vocabulary)
        self.weights = weights
        self._index = {term: column for column, term in enumerate(self.vocabulary)}

    name = "tfidf"

    @property
    def revision(self) -> str:
        """Content hash of vocabulary and weights."""
        digest = hashlib.sha256("\n".join(self.vocabulary).encode())
        digest.update(self.weights.round(9).tobytes())
        return digest.hexdigest()

    def row(self, text: str) -> SparseRow:
        """The known terms of one text; of length 1, or without any."""
        columns = np.array(sorted(self._index[term] for term in terms(text) if term in self._index), dtype=np.int64)
        values = self.weights[columns]
        return SparseRow(columns, values / max(float(np.linalg.norm(values)), 1e-12))

    def knows(self, term: str) -> bool:
        """Whether a term is in the vocabulary."""
        return term in self._index

    def rows(self, texts: Sequence[str]) -> Any:
        """One row per text, of length 1, or all zero where no term is known."""
        from scipy.sparse import csr_array

        rows = [self.row(text) for text in texts]
        places = np.cumsum([0, *(len(row.columns) for row in rows)])
        flat = np.concatenate([row.columns for row in rows]) if rows else np.zeros(0, int)
        data = np.concatenate([row.values for row in rows]) if rows else np.zeros(0)
        return csr_array((data, flat, places), shape=(len(texts), len(self.vocabulary)))

    def size(self, text: str) -> int:
        """Return the size of a text in a model's reading: zero, there is no model."""
        return 0
