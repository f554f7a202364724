"""Dense ranking: cosine similarity of embeddings, each distinct text embedded once."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from prbench.types import Post


class TextEncoder(Protocol):
    """Maps texts to vectors, one row each."""

    @property
    def name(self) -> str:
        """Which encoder, with its revision."""
        ...

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embed each text."""
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
