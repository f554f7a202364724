"""Reader that turns texts into the vectors of a method: pieces of posts, and items (an answer beside its question)."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prbench.models.personal.features import Vectors
from prbench.models.personal.method import Width
from prbench.models.personal.person import Known
from prbench.models.personal.pieces import pieces
from prbench.rank import TextEncoder
from prbench.types import Judgment


class Reader:
    """Embeds what a method is shown, with a frozen encoder.

    Values are scaled to a mean square of about 1, whatever the encoder's width.

    Args:
        encoder: Maps texts to vectors of length 1.
        post_window: Sentences in a piece of a post; 0 takes the post whole.
        answer_window: Sentences in a piece of an answer; the answer's vector is the mean over its pieces.
    """

    def __init__(self, encoder: TextEncoder, *, post_window: int = 2, answer_window: int = 1) -> None:
        self.encoder = encoder
        self._post_window = post_window
        self._answer_window = answer_window

    @cached_property
    def width(self) -> Width:
        """Width of pieces and items; asks the encoder for one vector."""
        wide = int(self.encoder.encode(["width"]).shape[1])
        return Width(post=wide, item=2 * wide)

    def prepare(self, posts: Sequence[str], answers: Sequence[str], questions: Sequence[str]) -> None:
        """Embed everything that will be asked for in one go."""
        texts = [piece for post in posts for piece in pieces(post, self._post_window)]
        texts += [piece for answer in answers for piece in pieces(answer, self._answer_window)]
        self.encoder.encode([*texts, *questions])

    def posts(self, texts: Sequence[str]) -> Tensor:
        """One row for each piece of each post, (P, D)."""
        parts = [piece for text in texts for piece in pieces(text, self._post_window)]
        if not parts:
            return torch.zeros(0, self.width.post)
        return _tensor(self.encoder.encode(parts))

    def items(self, asked: Sequence[tuple[str, str]]) -> Tensor:
        """One row for each (question, answer), (N, F)."""
        if not asked:
            return torch.zeros(0, self.width.item)
        parts = [pieces(answer, self._answer_window) for _, answer in asked]
        vectors = self.encoder.encode([piece for part in parts for piece in part])
        bounds = np.cumsum([0, *map(len, parts)])
        answers = np.stack([vectors[start:end].mean(0) for start, end in pairwise(bounds)])
        questions = self.encoder.encode([question for question, _ in asked])
        return _tensor(np.concatenate([answers, questions], axis=1))

    def known(self, posts: Sequence[str], judgments: Sequence[Judgment] = ()) -> Known:
        """Return what is known of one user."""
        chosen = self.items([(judgment.question, judgment.chosen) for judgment in judgments])
        rejected = self.items([(judgment.question, judgment.rejected) for judgment in judgments])
        return Known(self.posts(posts), chosen, rejected)


def _tensor(rows: Vectors | Any) -> Tensor:
    width = rows.shape[1]
    return torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)) * float(np.sqrt(width))
