"""`prbench train encoder`: tune a sentence encoder until stances can be told apart in its vectors.

For each axis a softmax over first pole, nothing, second pole on the unit vector of a text. Of a text in pieces some
piece must show the stance, 1 − Π(1 − P(piece)), and none the opposite. The axes that a text is not labelled for count
as "nothing" with a small weight, since a passage about money may also say something about time. The encoder learns in
low rank; what results is an ordinary encoder folder that `embed:DIR` opens, with its head for `embed:DIR#stances`.
"""

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from safetensors.torch import save_file
from torch import Tensor, nn

from prbench.config import Config, digest
from prbench.errors import ModelError, RunError
from prbench.files import checked, read_json, replacing, write_whole
from prbench.models.local.checkpoint import quiet
from prbench.models.personal.low_rank import adapt, delta, merge
from prbench.models.personal.pieces import pieces
from prbench.models.personal.shipped import DELTA, TUNING
from prbench.models.personal.stance_encoder import AXES, HEAD
from prbench.train import checkpoint
from prbench.train.frozen import FrozenStates
from prbench.train.stance_labels import Axes, Labelled, Stance

_WINDOW = 3
_MAX_TOKENS = 224
_SORTED_TOGETHER = 8
"""Batches whose texts are sorted by length together: less padding, still a random order."""


class EncoderConfig(Config):
    """Settings for tuning an encoder."""

    base: str = "embed:minilm"
    passages: bool = True
    """Whether the shipped stance passages are used."""
    posts: Literal["none", "pieces", "whole"] = "pieces"
    """Use of the training people's posts: not at all; those that aspects name as evidence, in pieces of which one shows
    the stance; or all of them whole, with those that show nothing."""
    answers: bool = True
    """Whether answers are used beside posts: those of the split, and passages that were written as answers."""
    wishes: bool = False
    """Whether stated wishes and the lines of rubrics are read as posts are."""
    join: bool = False
    """Whether up to three passages are read as one text, which is as long as a post and shows several stances."""
    epochs: int = Field(default=3, ge=1)
    batch: int = Field(default=32, ge=1)
    rank: int = Field(default=16, ge=0)
    """Rank of what is learned in each layer; 0 tunes the layers whole."""
    layers: int = Field(default=0, ge=0)
    """Number of the upper layers that learn in low rank; 0 is all of them."""
    learning_rate: float = Field(default=1e-3, gt=0)
    head_learning_rate: float = Field(default=1e-3, gt=0)
    warmup: int = Field(default=50, ge=0)
    """Steps over which the learning rate rises, while it falls in a line to a fiftieth at the last step."""
    silence: float = Field(default=0.08, ge=0)
    """Weight of an axis that a text is not labelled for."""
    seed: int = 0


class TuneEpoch(NamedTuple):
    """Figures of an epoch; `accuracy` is the share of held-out answers' stances that are told right."""

    number: int
    loss: float
    accuracy: float | None


class Tuning:
    """One tuning, from a base encoder to a folder.

    Args:
        options: Settings of the tuning.
        texts: Texts with the stances they show.
        axes: The axes of the stances.
        held_out: Answers of held-out questions with their stances, to say how well it goes; nothing is chosen by them.
        encoder: A loaded `SentenceEncoder`: its model is tuned in place.
        folder: Where checkpoint and encoder are kept.
        portion: What part of the material the texts are, for the record.
    """

    def __init__(
        self,
        options: EncoderConfig,
        texts: Sequence[Labelled],
        axes: Axes,
        held_out: Sequence[tuple[str, tuple[Stance, ...]]],
        encoder: Any,
        folder: Path,
        portion: Mapping[str, Any] | None = None,
    ) -> None:
        self._portion = dict(portion or {})
        self._options, self._texts, self._held_out, self._folder = options, tuple(texts), tuple(held_out), folder
        self._axes = axes
        self._index = {axis: place for place, axis in enumerate(axes.poles)}
        self._tokenizer = encoder.checkpoint.tokenizer
        self._model: nn.Module = encoder._model
        self._base_revision: str = encoder.checkpoint.revision
        width = int(encoder.checkpoint.config.hidden_size)
        self._below = FrozenStates(self._model, options.layers) if options.rank and options.layers else None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            self._head = nn.Linear(width, 3 * len(self._index))
            if options.rank:
                adapt(self._model, options.rank, options.layers)
        self._optimizer = torch.optim.AdamW(
            [
                {"params": self._learning, "lr": options.learning_rate},
                {"params": self._head.parameters(), "lr": options.head_learning_rate},
            ],
            weight_decay=0.01,
        )
        self._steps = options.epochs * -(-len(texts) // options.batch)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimizer, self._rate)
        self.epoch = 0
        self.history: list[TuneEpoch] = []

    @property
    def _learning(self) -> list[nn.Parameter]:
        return [parameter for parameter in self._model.parameters() if parameter.requires_grad]

    def run(self, listener: Callable[[TuneEpoch], None] | None = None) -> None:
        """Tune all epochs, continuing after the last one that is there, and write the encoder."""
        with checkpoint.alone(self._folder):
            if (self._folder / "config.json").is_file() and (self._folder / TUNING).is_file():
                self._check_finished()
                (self._folder / checkpoint.CHECKPOINT).unlink(missing_ok=True)  # left by a crash right at the end
            else:
                self._run(listener)

    def _run(self, listener: Callable[[TuneEpoch], None] | None) -> None:
        self._resume()
        while self.epoch < self._options.epochs:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self._options.seed * 1000 + self.epoch)
                loss = self._one_epoch()
            self.epoch += 1
            self.history.append(TuneEpoch(self.epoch, loss, self.accuracy()))
            self._keep()
            if listener is not None:
                listener(self.history[-1])
        self._write()

    @property
    def _learned(self) -> set[str]:
        return {name for name, parameter in self._model.named_parameters() if parameter.requires_grad}

    def _rate(self, step: int) -> float:
        return min(1.0, (step + 1) / max(self._options.warmup, 1)) * max(0.02, 1 - step / self._steps)

    def _one_epoch(self) -> float:
        self._model.train()
        total, count = 0.0, 0
        for batch in self._batches():
            loss = self._loss(batch)
            value = self._finite(float(loss.item()))
            self._optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self._learning, 1.0)
            self._optimizer.step()
            self._schedule.step()
            total, count = total + value, count + 1
        self._model.eval()
        return total / count

    def _finite(self, value: float) -> float:
        if not math.isfinite(value):
            raise ModelError(
                f"the loss of the encoder became {value} in epoch {self.epoch + 1}",
                hint="a lower --learning-rate helps, in a folder of its own; nothing of this epoch was kept",
            )
        return value

    def _batches(self) -> Iterator[list[Labelled]]:
        """All texts once: texts of like length in a batch, batches in a random order."""
        draw = random.Random(f"{self._options.seed}:{self.epoch}")  # noqa: S311 (a reproducible shuffle)
        texts, size = list(self._texts), self._options.batch
        draw.shuffle(texts)
        batches = []
        for start in range(0, len(texts), size * _SORTED_TOGETHER):
            near = sorted(texts[start : start + size * _SORTED_TOGETHER], key=lambda one: max(map(len, one.pieces)))
            batches += [near[place : place + size] for place in range(0, len(near), size)]
        draw.shuffle(batches)
        yield from batches

    def _loss(self, batch: Sequence[Labelled]) -> Tensor:
        shares = self._logits([piece for one in batch for piece in one.pieces]).softmax(-1)
        losses, start = [], 0
        for one in batch:
            shares_PK3 = shares[start : start + len(one.pieces)]
            start += len(one.pieces)
            losses.append(self._one_loss(shares_PK3, one.stances))
        return torch.stack(losses).mean()

    def _one_loss(self, shares_PK3: Tensor, stances: Sequence[Stance]) -> Tensor:
        """Some piece shows each stance and none its opposite; about other axes there is nothing."""
        silent = torch.full((shares_PK3.shape[1],), self._options.silence)
        silent[[self._index[stance.axis] for stance in stances]] = 0.0
        loss = -(silent * _log(shares_PK3[..., 1]).mean(0)).sum()
        for axis, side in stances:
            known, opposite = (shares_PK3[:, self._index[axis], place] for place in (side + 1, 1 - side))
            loss = loss - _log(1 - (1 - known).prod()) - (_log(1 - opposite).mean() if len(known) > 1 else 0.0)
        return loss

    def _logits(self, texts: Sequence[str]) -> Tensor:
        """First pole, nothing, second pole for each text and axis, (N, K, 3)."""
        logits: Tensor = self._head(self._vectors(texts))
        return logits.unflatten(-1, (-1, 3))

    def _vectors(self, texts: Sequence[str]) -> Tensor:
        """The mean over a text's tokens, of length √width."""
        ids = self._tokenizer(list(texts), truncation=True, max_length=_MAX_TOKENS)["input_ids"]
        if self._below is not None:
            states, mask = self._below(ids)
        else:
            fields = self._tokenizer.pad({"input_ids": ids}, return_tensors="pt")
            states, mask = self._model(**fields).last_hidden_state, fields["attention_mask"]
        weight = mask[..., None].float()
        vectors: Tensor = nn.functional.normalize((states * weight).sum(1) / weight.sum(1), dim=-1)
        return vectors * vectors.shape[-1] ** 0.5

    def accuracy(self) -> float | None:
        """Share of the held-out answers' stances that the mean over their pieces tells right."""
        if not self._held_out:
            return None
        self._model.eval()
        right = []
        with torch.inference_mode():
            for text, stances in self._held_out:
                shares = self._logits(pieces(text, _WINDOW)).softmax(-1).mean(0)
                lean = shares[:, 2] - shares[:, 0]
                right += [float(lean[self._index[axis]] * side > 0) for axis, side in stances]
        return sum(right) / len(right)

    @property
    def identity(self) -> str:
        """Return the identity of this tuning: another one is not continued."""
        return digest({"options": self._options.model_dump(mode="json"), "texts": [list(one) for one in self._texts]})

    @property
    def _continued(self) -> str:
        """Return the identity that a checkpoint must have: low rank on another base's layers would be no encoder."""
        return digest({"tuning": self.identity, "base": self._base_revision})

    def _check_finished(self) -> None:
        path = self._folder / TUNING
        hint = "remove that folder, or give --out another one"
        found = read_json(path, raises=RunError, hint=hint)
        with checked(path, raises=RunError, hint=hint):
            identity, base = found["identity"], found.get("base_revision", self._base_revision)
        if (identity, base) != (self.identity, self._base_revision):
            raise RunError(
                f"{str(self._folder)!r} holds another tuning (its options, its base or its texts differ)",
                hint="give this one its own folder with --out, or remove that one",
            )

    def _keep(self) -> None:
        state = {
            "epoch": self.epoch,
            "history": [tuple(epoch) for epoch in self.history],
            "model": {name: value for name, value in self._model.state_dict().items() if name in self._learned},
            "head": self._head.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
        }
        checkpoint.keep(self._folder, self._continued, state)

    def _resume(self) -> None:
        kept = checkpoint.read(self._folder, self._continued)
        if kept is None:
            return
        self._model.load_state_dict(kept["model"], strict=False)
        self._head.load_state_dict(kept["head"])
        self._optimizer.load_state_dict(kept["optimizer"])
        self._schedule.load_state_dict(kept["schedule"])
        self.epoch, self.history = kept["epoch"], [TuneEpoch(*epoch) for epoch in kept["history"]]

    def _write(self) -> None:
        """The encoder as a folder of its own; the record comes last, and the checkpoint goes."""
        self._model.eval()
        if self._options.rank:
            with replacing(self._folder / DELTA) as partial:
                save_file(delta(self._model), partial)
            merge(self._model)
        with quiet():
            self._model.save_pretrained(self._folder)
            self._tokenizer.save_pretrained(self._folder)
        with replacing(self._folder / HEAD) as partial:
            save_file({name: tensor.contiguous() for name, tensor in self._head.state_dict().items()}, partial)
        write_whole(self._folder / AXES, json.dumps(self._axes.poles, indent=2) + "\n")
        record = {
            "identity": self.identity,
            "options": self._options.model_dump(mode="json"),
            "base_revision": self._base_revision,
            "texts": len(self._texts),
            "portion": self._portion,
            "axes": list(self._index),
            "history": [epoch._asdict() for epoch in self.history],
        }
        write_whole(self._folder / TUNING, json.dumps(record, indent=2) + "\n")
        (self._folder / checkpoint.CHECKPOINT).unlink(missing_ok=True)


def _log(shares: Tensor) -> Tensor:
    return shares.clamp_min(1e-6).log()
