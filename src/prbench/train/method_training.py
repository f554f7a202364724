"""Training of a method over vectors; epochs, early stopping and checkpoints are those of every `Loop`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from prbench.config import digest
from prbench.data.fingerprint import fingerprint
from prbench.models.personal import artifact
from prbench.models.personal.features import encoder_revision
from prbench.models.personal.method import Method, bradley_terry, make
from prbench.models.personal.reader import Reader
from prbench.train.checkpoint import CHECKPOINT
from prbench.train.config import TrainConfig
from prbench.train.examples import Examples
from prbench.train.loop import Epoch, HeldOutScore, Listener, Loop
from prbench.types import Judgment, Pair

__all__ = ["CHECKPOINT", "Epoch", "HeldOutScore", "Listener", "Training", "encoder_revision", "measure", "save"]


class Training(Loop[Method]):
    """One training, from its options to a model on disk.

    Args:
        options: Settings of the training.
        train: The pairs to learn from.
        validation: Pairs of other users and other questions, for early stopping.
        reader: Embeds them.
        folder: Where checkpoint and model are kept.
        judged: What users have judged besides these pairs; shots are then drawn from there (see `Examples`).
    """

    def __init__(
        self,
        options: TrainConfig,
        train: Sequence[Pair],
        validation: Sequence[Pair],
        reader: Reader,
        folder: Path,
        judged: Mapping[str, Sequence[Judgment]] | None = None,
    ) -> None:
        # Before all texts are embedded: a method or a setting that does not exist must cost nothing.
        super().__init__(options, make(options.method, reader.width, dict(options.settings), options.seed), folder)
        self.options = options
        self._encoder = reader.encoder.name
        self._judged = judged
        self._train = Examples(train, reader, aspects=options.aspects, judged=judged)
        self._validation = Examples(validation, reader, judged=judged)

    @cached_property
    def _identity(self) -> str:
        """Options, encoder and what the pairs say, in their order."""
        parts = (self._train, self._validation)
        pairs = [[[pair.id for pair in part.pairs], fingerprint(part.pairs)] for part in parts]
        known = {"options": self.options.model_dump(mode="json"), "encoder": self._encoder, "pairs": pairs}
        if self._judged is not None:
            known["judged"] = {user: [j.model_dump() for j in mine] for user, mine in self._judged.items()}
        return digest(known)

    def _losses(self) -> Iterator[Tensor]:
        for batch in self._train.epoch(self.options, self._random):
            yield self.method.loss(*batch)

    def _measure(self) -> HeldOutScore:
        return measure(self.method, self._validation, shots=self.options.shots)


def measure(method: Method, examples: Examples, *, shots: int = 0) -> HeldOutScore:
    """Accuracy and loss of a method, each user with the whole profile, or with so many labelled pairs instead of none.

    Args:
        method: Method that is measured.
        examples: Examples that it is measured on.
        shots: Most labelled pairs shown of a user who has no post.
    """
    method.eval()
    credit, loss = 0.0, 0.0
    with torch.inference_mode():
        for batch in examples.whole(shots=shots):
            rewards = method.reward(method.person(batch.person), batch.pairs_N2F)
            margins = rewards[:, 0] - rewards[:, 1]
            credit += float((margins > 0).float().sum() + 0.5 * (margins == 0).float().sum())
            loss += float(bradley_terry(rewards)) * len(margins)
    return HeldOutScore(credit / len(examples.pairs), loss / len(examples.pairs))


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
