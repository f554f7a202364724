"""One method: posts and a question in, the same posts in order of relevance out."""

from collections.abc import Sequence
from typing import Protocol

from prbench.types import Post


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
