"""`cross`: a cross-encoder that reads posts, question and answer together (after Nogueira and Cho 2019).

r(x, u) = w·BERT([CLS] best pieces of u's posts, question [SEP] x [SEP]), trained by −log σ(r(x⁺, u) − r(x⁻, u)).

Of the posts only the pieces that BM25 finds nearest to question and answer are read, as many as fit; what a plan says
is read like posts. It does not adapt to judgments: there is no room for them beside the posts.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from prbench.config import ModelOptions
from prbench.errors import ModelError
from prbench.models.local.checkpoint import Checkpoint
from prbench.models.local.hf import SequenceClassifier
from prbench.models.personal import artifact
from prbench.models.personal.pieces import pieces
from prbench.models.protocols import ModelCard
from prbench.rank import BM25
from prbench.types import AnswerView, Channel, Judgment, Message, Post, Prompt

FOLDER = "cross"
"""Folder of the weights, beside the record."""
_SPECIAL = 3
"""Tokens around a text pair."""


class PieceChooser:
    """Puts what a cross-encoder reads beside an answer into one text, within a budget of tokens.

    Args:
        tokenizer: Counts tokens.
        budget: Most tokens of posts, question and answer together; question and answer are never cut for it.
        window: Sentences in a piece of a post.
    """

    def __init__(self, tokenizer: Any, *, budget: int, window: int) -> None:
        self._tokenizer = tokenizer
        self._budget = budget
        self._window = window
        self._ranker = BM25()
        self._counts: dict[str, int] = {}
        self._cut: dict[tuple[str, ...], tuple[Post, ...]] = {}

    def beside(self, texts: Sequence[str], question: str, answer: str) -> str:
        """The pieces nearest to question and answer, in the order in which they were written, then the question."""
        room = self._budget - self._count(question) - self._count(answer) - _SPECIAL
        cut = self._pieces(tuple(texts))
        chosen: set[str] = set()
        for piece in self._ranker.rank(f"{question} {answer}", cut):
            if (size := self._count(piece.text)) <= room:
                room -= size
                chosen.add(piece.id)
        return "\n".join([*(piece.text for piece in cut if piece.id in chosen), question])

    def _pieces(self, texts: tuple[str, ...]) -> tuple[Post, ...]:
        if texts not in self._cut:
            parts = dict.fromkeys(part for text in texts for part in pieces(text, self._window))
            self._cut[texts] = tuple(Post(id=str(place), text=part) for place, part in enumerate(parts))
        return self._cut[texts]

    def _count(self, text: str) -> int:
        if text not in self._counts:
            ids = self._tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
            self._counts[text] = len(ids)
        return self._counts[text]


class CrossRater(SequenceClassifier):
    """Scores an answer for the user whose posts or plan it is given; a user without either is a stranger.

    Args:
        folder: Where the trained model lies.
        record: Record of the model.
        options: Device, batches and precision; the window is that of the training.
    """

    adapts: ClassVar[bool] = False
    """Whether the model adapts to users: `fit_user` takes no judgments."""

    def __init__(self, folder: Path, record: artifact.PersonalRecord, options: ModelOptions) -> None:
        from prbench.models.personal.rater import of_encoder, precision

        checkpoint = Checkpoint.open(str(folder / FOLDER), f"personal:{folder}")
        super().__init__(checkpoint, None, of_encoder(options))
        self.record = record
        self._told = precision(options)
        self._chooser = chooser(checkpoint.tokenizer, record)

    @cached_property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        return ModelCard(
            address=self._checkpoint.address,
            revision=self._checkpoint.revision,
            reads=frozenset({Channel.POSTS, Channel.PLAN}),
            parameters={
                "method": self.record.method,
                "settings": dict(self.record.settings),
                "post_window": self.record.post_window,
                "encoder": self.record.encoder,
                "training": self.record.training.told,
                **self._told,
            },
            units="log-odds",
        )

    def render(self, view: AnswerView) -> Prompt:
        """The pieces that are read and the question as one text, the answer as the other."""
        texts = (*(post.text for post in view.posts), *view.plan)
        beside = self._chooser.beside(texts, view.question, view.answer)
        return Prompt((Message("user", beside), Message("assistant", view.answer)))

    def fit_user(self, user: str, judgments: Sequence[Judgment]) -> None:
        """Refused: a cross-encoder reads posts, and what a user has judged has no place beside them."""
        if judgments:
            raise ModelError(
                f"{self._checkpoint.address} (cross) reads posts and does not adapt to judgments",
                hint="train a method that does, for example `prbench train user-bt`",
            )


def chooser(tokenizer: Any, record: artifact.PersonalRecord) -> PieceChooser:
    """Return the chooser of what a model of this record reads of a user."""
    return PieceChooser(tokenizer, budget=int(record.settings["budget"]), window=record.post_window)
