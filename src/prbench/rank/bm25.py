"""BM25 over one user's posts, through `bm25s`; each profile is indexed once."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from prbench.types import Post

_KEPT = 64
"""Indexed profiles kept at a time: a run goes through users one after another."""


class BM25:
    """Lexical ranking (Lucene's BM25, k1 = 1.5, b = 0.75), English stop words left out.

    Example:
        >>> posts = [Post(id="1", text="my bicycle squeaks"), Post(id="2", text="sourdough will not rise")]
        >>> [post.id for post in BM25().rank("why is my sourdough flat?", posts)]
        ['2', '1']
    """

    name = "bm25"

    def __init__(self) -> None:
        self._indexes: OrderedDict[tuple[Post, ...], Any] = OrderedDict()
        self._last: tuple[str, tuple[Post, ...], tuple[Post, ...]] | None = None
        self._lock = threading.Lock()

    def rank(self, question: str, posts: Sequence[Post]) -> tuple[Post, ...]:
        """Order posts by their BM25 score for the question."""
        profile = tuple(posts)
        if len(profile) < 2:
            return profile
        last = self._last  # a run asks about a user's pairs with the same question one after another
        if last is not None and last[0] == question and last[1] is profile:
            return last[2]
        scores = self._scores(question, profile)
        order = np.argsort(-scores, kind="stable")
        ranked = tuple(profile[i] for i in order)
        self._last = (question, profile, ranked)
        return ranked

    def _scores(self, question: str, profile: tuple[Post, ...]) -> Any:
        import bm25s

        index = self._index(profile)
        if index is None:
            return np.zeros(len(profile))
        words = bm25s.tokenize([question], stopwords="en", return_ids=False, show_progress=False)[0]
        known = [word for word in words if word in index.vocab_dict]
        return index.get_scores(known) if known else np.zeros(len(profile))

    def _index(self, profile: tuple[Post, ...]) -> Any:
        import bm25s

        with self._lock:
            if profile not in self._indexes:
                tokens = bm25s.tokenize([post.text for post in profile], stopwords="en", show_progress=False)
                index = bm25s.BM25() if len(tokens.vocab) > 1 else None
                if index is not None:
                    index.index(tokens, show_progress=False)
                self._indexes[profile] = index
                if len(self._indexes) > _KEPT:
                    self._indexes.popitem(last=False)
            self._indexes.move_to_end(profile)
            return self._indexes[profile]
