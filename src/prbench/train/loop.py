"""Training of a method over vectors: epochs, early stopping on validation, checkpoints.

After each epoch everything that the next one depends on is kept in `checkpoint.pt`, so that an interrupted training
continues with the same command and ends with the same weights. The best epoch's weights become the model.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from prbench.config import digest
from prbench.data.fingerprint import fingerprint
from prbench.errors import ModelError
from prbench.models.personal import artifact
from prbench.models.personal.features import encoder_revision
from prbench.models.personal.method import Method, bradley_terry, make
from prbench.models.personal.reader import Reader
from prbench.train import checkpoint
from prbench.train.checkpoint import CHECKPOINT
from prbench.train.examples import Examples
from prbench.train.options import TrainOptions
from prbench.types import Judgment, Pair

__all__ = ["CHECKPOINT", "Epoch", "Listener", "Measured", "Training", "encoder_revision", "measure", "save"]


class Epoch(NamedTuple):
    """How an epoch went."""

    number: int
    loss: float
    validation_accuracy: float
    validation_loss: float
    best: bool


Listener = Callable[[Epoch], None]


class Measured(NamedTuple):
    """A method on held-out pairs: whole profiles, labelled pairs only where there is no profile; ties count ½."""

    accuracy: float
    loss: float


class Training:
    """One training, from its options to a model on disk.

    Args:
        options: How.
        train: The pairs to learn from.
        validation: Pairs of other users and other questions, for early stopping.
        reader: Embeds them.
        folder: Where checkpoint and model are kept.
        judged: What users have judged besides these pairs; shots are then drawn from there (see `Examples`).
    """

    def __init__(
        self,
        options: TrainOptions,
        train: Sequence[Pair],
        validation: Sequence[Pair],
        reader: Reader,
        folder: Path,
        judged: Mapping[str, Sequence[Judgment]] | None = None,
    ) -> None:
        self.options = options
        self._folder = folder
        # Before all texts are embedded: a method or a setting that does not exist must cost nothing.
        self.method = make(options.method, reader.width, dict(options.settings), options.seed)
        self._encoder = reader.encoder.name
        self._judged = judged
        self._train = Examples(train, reader, aspects=options.aspects, judged=judged)
        self._validation = Examples(validation, reader, judged=judged)
        self._optimizer = torch.optim.AdamW(
            self.method.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay
        )
        self._random = torch.Generator().manual_seed(options.seed)
        self._best: dict[str, Tensor] = {}
        self.best = Epoch(0, float("nan"), -1.0, float("inf"), best=True)
        self._dropout_state: Tensor = torch.get_rng_state()
        self.epoch = 0
        self.steps = 0

    def run(self, listener: Listener | None = None) -> Method:
        """Train until nothing gets better; continues where a checkpoint of the same training left off."""
        with checkpoint.alone(self._folder):
            return self._run(listener)

    def _run(self, listener: Listener | None) -> Method:
        self._resume()
        with torch.random.fork_rng(devices=[]):
            if self.epoch == 0:
                torch.manual_seed(self.options.seed)
            else:
                torch.set_rng_state(self._dropout_state)
            while self.epoch < self.options.epochs and self.epoch - self.best.number < self.options.patience:
                epoch = self._one_epoch()
                self._dropout_state = torch.get_rng_state()
                self._keep()
                if listener is not None:
                    listener(epoch)
        self.method.load_state_dict(self._best)
        self.method.eval()
        return self.method

    def _one_epoch(self) -> Epoch:
        self.method.train()
        total, count = 0.0, 0
        for batch in self._train.epoch(self.options, self._random):
            loss = self.method.loss(batch.person, batch.pairs_B2F)
            value = self._finite(float(loss.item()), "loss")
            self._optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.method.parameters(), 1.0)
            self._optimizer.step()
            total, count, self.steps = total + value, count + 1, self.steps + 1
        found = measure(self.method, self._validation, shots=self.options.shots)
        self._finite(found.loss, "validation loss")
        self.epoch += 1
        better = (found.accuracy, -found.loss) > (self.best.validation_accuracy, -self.best.validation_loss)
        epoch = Epoch(self.epoch, total / count, found.accuracy, found.loss, better)
        if better:
            self.best = epoch
            self._best = {name: tensor.clone() for name, tensor in self.method.state_dict().items()}
        return epoch

    def _finite(self, value: float, what: str) -> float:
        if not math.isfinite(value):
            raise ModelError(
                f"the {what} of {self.options.method} became {value} in epoch {self.epoch + 1}",
                hint="a lower --learning-rate helps, in a folder of its own; nothing of this epoch was kept",
            )
        return value

    @cached_property
    def _identity(self) -> str:
        """Options, encoder and what the pairs say, in their order."""
        parts = (self._train, self._validation)
        pairs = [[[pair.id for pair in part.pairs], fingerprint(part.pairs)] for part in parts]
        known = {"options": self.options.model_dump(mode="json"), "encoder": self._encoder, "pairs": pairs}
        if self._judged is not None:
            known["judged"] = {user: [j.model_dump() for j in mine] for user, mine in self._judged.items()}
        return digest(known)

    def _keep(self) -> None:
        checkpoint.keep(
            self._folder,
            self._identity,
            {
                "method": self.method.state_dict(),
                "optimizer": self._optimizer.state_dict(),
                "random": self._random.get_state(),
                "dropout": self._dropout_state,
                "best_weights": self._best,
                "best": tuple(self.best),
                "epoch": self.epoch,
                "steps": self.steps,
            },
        )

    def _resume(self) -> None:
        kept = checkpoint.read(self._folder, self._identity)
        if kept is None:
            return
        self.method.load_state_dict(kept["method"])
        self._optimizer.load_state_dict(kept["optimizer"])
        self._random.set_state(kept["random"])
        self._dropout_state = kept["dropout"]
        self._best = dict(kept["best_weights"])
        self.best = Epoch(*kept["best"])
        self.epoch, self.steps = kept["epoch"], kept["steps"]


def measure(method: Method, examples: Examples, *, shots: int = 0) -> Measured:
    """Accuracy and loss of a method, each user with the whole profile, or with so many labelled pairs instead of none.

    Args:
        method: What is measured.
        examples: On what.
        shots: Most labelled pairs shown of a user who has no post.
    """
    method.eval()
    credit, loss = 0.0, 0.0
    with torch.inference_mode():
        for batch in examples.whole(shots=shots):
            rewards = method.reward(method.person(batch.person), batch.pairs_B2F)
            margins = rewards[:, 0] - rewards[:, 1]
            credit += float((margins > 0).float().sum() + 0.5 * (margins == 0).float().sum())
            loss += float(bradley_terry(rewards)) * len(margins)
    return Measured(credit / len(examples.pairs), loss / len(examples.pairs))


def save(
    training: Training, reader: Reader, facts: artifact.TrainingFacts, folder: Path, *, encoder: str
) -> artifact.PersonalRecord:
    """Write the trained model beside its checkpoint."""
    options, width = training.options, reader.width
    record = artifact.PersonalRecord(
        method=options.method,
        settings=dict(options.settings),
        encoder=encoder,
        encoder_revision=encoder_revision(reader.encoder),
        post_window=options.post_window,
        answer_window=options.answer_window,
        width_post=width.post,
        width_item=width.item,
        training=facts,
    )
    artifact.save(folder, record, training.method.state_dict())
    return record
