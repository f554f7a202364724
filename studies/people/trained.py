"""The methods of `prbench train` on a world: trained with its people's own judgments as shots, asked with k of them.

`prbench train` itself wants all texts of held-out pairs to be new, the question too; here one question is asked of
everybody, and in one world the items are known on purpose. So the training is called directly, and the world's own
checks (see `worlds.checked`) say what may be shared.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from people.tastes import Numbers, rate_pairs
from people.worlds import Shots, World
from prbench.config import ModelOptions
from prbench.data.fingerprint import fingerprint
from prbench.models.personal.artifact import RECORD, PersonalRecord, TrainingFacts, read_record
from prbench.models.personal.contrast_ranker import ContrastRanker
from prbench.models.personal.features import FeatureStore
from prbench.models.personal.rater import PersonalRater, load
from prbench.models.personal.reader import Reader
from prbench.models.registry import load_encoder, load_model
from prbench.train import TrainConfig
from prbench.types import AnswerView, Pair, PairView, Post

REFERENCE = "personal:reference"


class _ItemReader(Reader):
    """Reads each item once: a few hundred texts are shown tens of thousands of times."""

    def items(self, asked: Sequence[tuple[str, str]]) -> Tensor:
        """As `Reader.items`."""
        if not asked:
            return super().items(asked)
        if new := [key for key in dict.fromkeys(asked) if key not in self._rows]:
            self._rows.update(zip(new, super().items(new), strict=True))
        return torch.stack([self._rows[key] for key in asked])

    @cached_property
    def _rows(self) -> dict[tuple[str, str], Tensor]:
        return {}


def open_reader(options: TrainConfig) -> Reader:
    """The frozen encoder of a training, with its vectors kept in the cache folder."""
    encoder = FeatureStore(load_encoder(options.encoder, ModelOptions()))
    return _ItemReader(encoder, post_window=options.post_window, answer_window=options.answer_window)


def train_method(world: World, options: TrainConfig, reader: Reader, folder: Path) -> PersonalRecord:
    """Train on people of train, stop early on people of validation; a model that is there already is taken as it is."""
    if (folder / RECORD).is_file():
        return read_record(folder, f"personal:{folder}")
    from prbench.train.method_training import Training, save

    train, validation = (_with_posts(world, world.pairs[split]) for split in ("train", "validation"))
    judged = {user: world.judgments(world.shots[user]) for user in sorted({p.user for p in (*train, *validation)})}
    training = Training(options, train, validation, reader, folder, judged=judged)
    training.run()
    facts = TrainingFacts(
        suite=world.name,
        fingerprint=fingerprint(train),
        split="train",
        pairs=len(train),
        users=len({pair.user for pair in train}),
        questions=len({pair.tags["item_pair"] for pair in train}),
        seed=options.seed,
        steps=training.steps,
        validation={
            "pairs": len(validation),
            "accuracy": training.best.validation_accuracy,
            "loss": training.best.validation_loss,
            "epoch": training.best.number,
            "epochs": training.epoch,
        },
    )
    return save(training, reader, facts, folder, encoder=options.encoder)


class Trained:
    """A trained model as a taste: it is fitted to each person's shots and rates both texts.

    Args:
        world: For the texts.
        folder: Where the model lies.
    """

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._rater = cast(PersonalRater, load(str(folder), ModelOptions()))

    def margins(self, pairs: Sequence[Pair], shots: Shots) -> Numbers:
        """Score of the chosen text less that of the rejected one."""
        posts = {user: self._world.posts(user, shots[user]) for user in {pair.user for pair in pairs}}
        if self._rater.card.reads:
            for user in posts:
                self._rater.fit_user(user, self._world.judgments(shots[user]))
        views = [(self._view(pair, pair.chosen, posts), self._view(pair, pair.rejected, posts)) for pair in pairs]
        return rate_pairs(self._rater, views)

    @staticmethod
    def _view(pair: Pair, answer: str, posts: Mapping[str, tuple[Post, ...]]) -> AnswerView:
        return AnswerView(pair.question, answer, posts=posts[pair.user], user=pair.user)


class Shipped:
    """The reference model as it ships, trained on nobody here: it is told each person's shots and sees both texts.

    Args:
        world: For the texts.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._model = cast(ContrastRanker, load_model(REFERENCE))

    def margins(self, pairs: Sequence[Pair], shots: Shots) -> Numbers:
        """Log-odds that the chosen text is preferred."""
        posts = {user: self._world.posts(user, shots[user]) for user in {pair.user for pair in pairs}}
        for user in posts:
            self._model.fit_user(user, self._world.judgments(shots[user]))
        views = [PairView(pair.question, pair.chosen, pair.rejected, posts[pair.user], (), pair.user) for pair in pairs]
        return np.array([outcome.margin for _, outcome in sorted(self._model.compare(views))], dtype=np.float64)


def _with_posts(world: World, pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs with their users' reasons as profile, where the world tells them."""
    posts = {user: world.posts(user, world.shots[user]) for user in {pair.user for pair in pairs}}
    return [pair.model_copy(update={"profile": posts[pair.user]}) for pair in pairs]
