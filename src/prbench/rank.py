"""Ranking: which of a user's posts bear on a question, by words (BM25) or by embeddings.

A ranker returns the posts themselves, so that ids travel with their texts.
"""

import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from prbench.types import Post

_KEPT_POSTS = 8_192
"""Posts whose index is kept: a run goes through all users once for each context."""
_KEPT_RANKINGS = 20_000
_K1, _B = 1.5, 0.75
_KEPT_QUESTIONS = 1_000


class BM25:
    """Lexical ranking (Lucene's BM25, k1 = 1.5, b = 0.75), English stop words left out.

    Example:
        >>> posts = [Post(id="1", text="my bicycle squeaks"), Post(id="2", text="sourdough will not rise")]
        >>> [post.id for post in BM25().rank("why is my sourdough flat?", posts)]
        ['2', '1']
    """

    name = "bm25"

    def __init__(self) -> None:
        self._indexes: OrderedDict[tuple[str, ...], _Index] = OrderedDict()
        """Indexes by the texts that they are of."""
        self._indexed = 0
        """Posts of all of them."""
        self._words = lru_cache(_KEPT_QUESTIONS)(_words)
        self._ranked: OrderedDict[tuple[str, int], tuple[tuple[Post, ...], tuple[Post, ...]]] = OrderedDict()
        """Profiles and what was found for a question, by the identity of the profile, which is held here."""
        self._lock = threading.Lock()

    def rank(self, question: str, posts: Sequence[Post]) -> tuple[Post, ...]:
        """Order posts by their BM25 score for the question."""
        profile = tuple(posts)
        if len(profile) < 2:
            return profile
        key = (question, id(profile))  # a run asks the same for every pair of a question, and in several contexts
        known = self._ranked.get(key)
        if known is not None and known[0] is profile:
            return known[1]
        scores = self._scores(question, profile)
        order = np.argsort(-scores, kind="stable")
        ranked = tuple(profile[i] for i in order)
        with self._lock:
            self._ranked[key] = (profile, ranked)
            if len(self._ranked) > _KEPT_RANKINGS:
                self._ranked.popitem(last=False)
        return ranked

    def forget(self) -> None:
        """Drop all that is kept of posts and questions."""
        with self._lock:
            self._indexes.clear()
            self._indexed = 0
            self._ranked.clear()
        self._words.cache_clear()

    def _scores(self, question: str, profile: tuple[Post, ...]) -> npt.NDArray[np.float32]:
        index = self._index(profile)
        return index.scores([word for word in self._words(question) if word in index.found_in])

    def _index(self, profile: tuple[Post, ...]) -> "_Index":
        texts = tuple([post.text for post in profile])
        with self._lock:
            if texts in self._indexes:
                self._indexes.move_to_end(texts)
                return self._indexes[texts]
            index = self._indexes[texts] = _Index(texts)
            self._indexed += len(texts)
            while self._indexed > _KEPT_POSTS and len(self._indexes) > 1:
                self._indexed -= len(self._indexes.popitem(last=False)[0])
            return index


class _Index:
    """The words of some texts, counted.

    Scores are those of bm25s, bit for bit, whose own index scores all words of all texts beforehand: of a dozen posts,
    asked a dozen questions, most are never asked for.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        words = bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)
        self._counts: list[Counter[str]] = list(map(Counter, words))
        self.found_in = Counter(word for counts in self._counts for word in counts)
        """How many texts have each word."""
        sizes = np.array(list(map(len, words)))
        with np.errstate(invalid="ignore"):  # no text has a word
            self._norms = _K1 * ((1 - _B) + _B * sizes / sizes.mean())

    def scores(self, words: Sequence[str]) -> npt.NDArray[np.float32]:
        """The score of each text for these words; 0 for all where there is nothing to tell them apart by."""
        scores = np.zeros(len(self._counts), dtype=np.float32)
        if not words or len(self.found_in) < 2:
            return scores
        counts = np.array([[text.get(word, 0) for text in self._counts] for word in words], dtype=np.float64)
        rarity = np.array([self._rarity(word) for word in words], dtype=np.float32)
        for one in (rarity[:, None] * (counts / (self._norms + counts))).astype(np.float32):
            scores += one
        return scores

    def _rarity(self, word: str) -> float:
        found = self.found_in[word]
        return math.log(1 + (len(self._counts) - found + 0.5) / (found + 0.5))


def _words(question: str) -> Sequence[str]:
    import bm25s

    found: list[list[str]] = bm25s.tokenize([question], stopwords="en", return_ids=False, show_progress=False)
    return found[0]


class TextEncoder(Protocol):
    """Maps texts to vectors, one row each."""

    @property
    def name(self) -> str:
        """Return the encoder's name with its revision."""
        ...

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one embedding for each text."""
        ...


class Dense:
    """Ranks by cosine similarity to the question."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}
        self.name = f"dense:{encoder.name}"

    def rank(self, question: str, posts: Sequence[Post]) -> tuple[Post, ...]:
        """Order posts by similarity; texts seen before are not embedded again."""
        posts = tuple(posts)
        if len(posts) < 2:
            return posts
        vectors = self._embed([question, *(post.text for post in posts)])
        similarity = vectors[1:] @ vectors[0]
        return tuple(posts[i] for i in np.argsort(-similarity, kind="stable"))

    def _embed(self, texts: list[str]) -> Any:
        if new := list(dict.fromkeys(text for text in texts if text not in self._vectors)):
            rows = np.asarray(self._encoder.encode(new), dtype=np.float32)
            norms = np.linalg.norm(rows, axis=1, keepdims=True)
            self._vectors.update(zip(new, rows / np.maximum(norms, 1e-12), strict=True))
        return np.stack([self._vectors[text] for text in texts])


class PostRanker(Protocol):
    """Orders posts by how much they bear on a question.

    It returns the posts themselves, not their texts: an id can never come to stand beside another post's text.
    """

    @property
    def name(self) -> str:
        """Part of a run's configuration."""
        ...

    def rank(self, question: str, posts: Sequence[Post]) -> tuple[Post, ...]:
        """The same posts, most relevant first; equal relevance keeps the original order."""
        ...
