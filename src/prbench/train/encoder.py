"""`prbench train encoder`: tune a sentence encoder until stances can be told apart in its vectors.

The upper layers learn, whole; what lies below is computed once for each text. What they learn for stands in
`tuning_loss`. What results is an ordinary encoder folder that `embed:DIR` opens, with its heads for
`embed:DIR#stances`.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
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
from prbench.models.local.precision import Products, resolved, told
from prbench.models.local.upper import DELTA, TUNING
from prbench.models.personal.delta import add_delta, delta, learn_upper
from prbench.models.personal.pieces import pieces
from prbench.models.personal.stance_encoder import AXES, HEAD
from prbench.train import checkpoint
from prbench.train.frozen import FrozenStates
from prbench.train.stance_labels import Axes, Difference, Labelled, Stance
from prbench.train.tuning_batches import Step, steps
from prbench.train.tuning_loss import Answered, Heads, TuningLoss

_WINDOW = 3
_MAX_TOKENS = 224


class EncoderConfig(Config):
    """Settings for tuning an encoder."""

    base: str = "embed:minilm"
    stances: bool = True
    """Whether texts are shown for the stances they take."""
    differences: bool = False
    """Whether pairs of answers are shown for what they differ in."""
    passages: bool = True
    """Whether what ships with the package is used: stance passages, and with `flaws` sound and flawed answers."""
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
    batch: int = Field(default=8, ge=1)
    """Texts in a step; of texts shorter than a post more."""
    flaws: str = ""
    """A suite of sound and flawed answers; its pairs of the same split teach a head what all users want."""
    layers: int = Field(default=3, ge=1)
    """Number of the upper layers that learn."""
    learning_rate: float = Field(default=1e-4, gt=0)
    head_learning_rate: float = Field(default=1e-3, gt=0)
    warmup: int = Field(default=50, ge=0)
    """Steps over which the learning rate rises, while it falls in a line to a fiftieth at the last step."""
    silence: float = Field(default=0.08, ge=0)
    """Weight of an axis that a text is not labelled for."""
    products: Products = "auto"
    """Precision of the matrix products: `auto` takes bfloat16 where the processor has instructions for it."""
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
        differing: Pairs of answers that differ in something known.
        flawed: Sound and flawed answers to the same questions.
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
        differing: Sequence[Difference] = (),
        flawed: Sequence[Answered] = (),
        portion: Mapping[str, Any] | None = None,
    ) -> None:
        self._portion, self._differing, self._flawed = dict(portion or {}), tuple(differing), tuple(flawed)
        self._options, self._texts, self._held_out, self._folder = options, tuple(texts), tuple(held_out), folder
        self._axes = axes
        self._index = {axis: place for place, axis in enumerate(axes.poles)}
        self._tokenizer = encoder.checkpoint.tokenizer
        self._model: nn.Module = encoder._model
        self._base_revision: str = encoder.checkpoint.revision
        learned = learn_upper(self._model, options.layers)
        self._base = {name: self._model.get_parameter(name).detach().clone() for name in learned}
        self._states = FrozenStates(self._model, options.layers, options.products)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            self._heads = Heads(int(encoder.checkpoint.config.hidden_size), len(self._index))
        self._loss = TuningLoss(self._heads, self._vectors, self._index, options.silence)
        self._optimizer = torch.optim.AdamW(
            [
                {"params": self._learning, "lr": options.learning_rate},
                {"params": self._heads.parameters(), "lr": options.head_learning_rate},
            ],
            weight_decay=0.01,
        )
        self.epoch = 0
        self._last_step = max(options.epochs * len(self._steps()), 1)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimizer, self._rate)
        self.history: list[TuneEpoch] = []

    @property
    def _learning(self) -> list[nn.Parameter]:
        return [self._model.get_parameter(name) for name in self._base]

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
        self._prepare()
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

    def _rate(self, step: int) -> float:
        return min(1.0, (step + 1) / max(self._options.warmup, 1)) * max(0.02, 1 - step / self._last_step)

    def _one_epoch(self) -> float:
        self._model.train()
        total, count = 0.0, 0
        for step in self._steps():
            loss = self._loss(*step)
            value = self._finite(float(loss.item()))
            self._optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self._learning, 1.0)
            self._optimizer.step()
            self._schedule.step()
            total, count = total + value, count + 1
        self._model.eval()
        return total / count

    def _steps(self) -> list[Step]:
        seed = f"{self._options.seed}:{self.epoch}"
        return steps(self._texts, self._differing, self._flawed, self._options.batch, seed)

    def _finite(self, value: float) -> float:
        if not math.isfinite(value):
            raise ModelError(
                f"the loss of the encoder became {value} in epoch {self.epoch + 1}",
                hint="a lower --learning-rate helps, in a folder of its own; nothing of this epoch was kept",
            )
        return value

    def _prepare(self) -> None:
        """Compute what lies below the layers that learn, for all texts at once, however far the tuning is."""
        shown = [piece for one in self._texts for piece in one.pieces]
        shown += [text for pair in self._differing for text in (pair.one, pair.two)]
        shown += [text for one in self._flawed for text in (*one.sound, *one.flawed)]
        shown += [piece for text, _ in self._held_out for piece in pieces(text, _WINDOW)]
        self._states.prepare(self._ids(shown))

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = self._tokenizer(list(texts), truncation=True, max_length=_MAX_TOKENS)["input_ids"]
        return found

    def _vectors(self, texts: Sequence[str]) -> Tensor:
        """The mean over a text's tokens, of length √width."""
        states, mask = self._states(self._ids(texts))
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
                shares = self._heads.shares(self._vectors(pieces(text, _WINDOW))).mean(0)
                lean = shares[:, 2] - shares[:, 0]
                right += [float(lean[self._index[axis]] * side > 0) for axis, side in stances]
        return sum(right) / len(right)

    @property
    def identity(self) -> str:
        """Return the identity of this tuning: another one is not continued."""
        return digest(
            {
                "options": {
                    **self._options.model_dump(mode="json", exclude={"products"}),
                    **told(self._options.products),
                },
                "texts": [list(one) for one in self._texts],
                "differing": [list(pair) for pair in self._differing],
                "flawed": [list(one) for one in self._flawed],
            }
        )

    @property
    def _continued(self) -> str:
        """Return the identity that a checkpoint must have: layers tuned over another base would be no encoder."""
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
            "model": {name: self._model.get_parameter(name).detach() for name in self._base},
            "heads": self._heads.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
        }
        checkpoint.keep(self._folder, self._continued, state)

    def _resume(self) -> None:
        kept = checkpoint.read(self._folder, self._continued)
        if kept is None:
            return
        self._model.load_state_dict(kept["model"], strict=False)
        self._heads.load_state_dict(kept["heads"])
        self._optimizer.load_state_dict(kept["optimizer"])
        self._schedule.load_state_dict(kept["schedule"])
        self.epoch, self.history = kept["epoch"], [TuneEpoch(*epoch) for epoch in kept["history"]]

    def _write(self) -> None:
        """The encoder as a folder of its own; the record comes last, and the checkpoint goes."""
        self._model.eval()
        learned = delta(self._model, self._base)
        with replacing(self._folder / DELTA) as partial:
            save_file(learned, partial)
        self._model.load_state_dict(self._base, strict=False)
        add_delta(self._model, learned)
        with quiet():
            self._model.save_pretrained(self._folder)
            self._tokenizer.save_pretrained(self._folder)
        with replacing(self._folder / HEAD) as partial:
            save_file(self._heads.arrays(), partial)
        write_whole(self._folder / AXES, json.dumps(self._axes.poles, indent=2) + "\n")
        record = {
            "identity": self.identity,
            "options": self._options.model_dump(mode="json"),
            "base_revision": self._base_revision,
            "texts": len(self._texts),
            "differing": len(self._differing),
            "flawed": sum(len(one.flawed) for one in self._flawed),
            "portion": self._portion,
            "products": resolved(self._options.products),
            "axes": list(self._index),
            "history": [epoch._asdict() for epoch in self.history],
        }
        write_whole(self._folder / TUNING, json.dumps(record, indent=2) + "\n")
        (self._folder / checkpoint.CHECKPOINT).unlink(missing_ok=True)
