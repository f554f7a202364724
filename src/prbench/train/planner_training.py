"""`prbench train planner`: a language model learns what users expect, from the aspects of the training split.

After LaMP-QA's planner: question and posts in, aspect titles out, a LoRA adapter, loss on the titles alone. The prompts
are those that the `Planner` will ask, whole. No validation or test persona, question or aspect is learned from; the
validation loss is that of other users' other questions, and the adapter with the lowest one is kept.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import torch
from pydantic import Field

from prbench.config import Config, ModelOptions, digest
from prbench.errors import ModelError
from prbench.models.local.adapter import require_peft
from prbench.models.local.checkpoint import quiet
from prbench.models.local.language_model import LanguageModel
from prbench.train import checkpoint
from prbench.train.packs import Pack, TokenExample, groups, pack, target_losses


class PlannerConfig(Config):
    """Settings of a planner's training; everything here changes the weights and names what is resumed."""

    policy: str = "lm:smollm2"
    """Address of the language model to start from."""
    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=16, ge=1)
    dropout: float = Field(default=0.05, ge=0, lt=1)
    learning_rate: float = Field(default=5e-4, gt=0)
    """LaMP-QA takes 5e-5 for 2,000 steps of a model fifty times as large; a few hundred steps need more."""
    steps: int = Field(default=120, ge=1)
    warmup: int = Field(default=10, ge=0)
    """Steps until the learning rate is reached; it falls to a tenth from there."""
    batch: int = Field(default=8, ge=1)
    """Questions in a step, all of one user: the posts are computed once."""
    through_posts: bool = False
    """Whether gradients flow back through the posts, which all questions of a step share; takes twice the memory."""
    window: int = Field(default=2560, ge=64)
    """Most tokens of prompt and plan together; where not all posts fit, BM25 chooses."""
    look_every: int = Field(default=20, ge=1)
    """Steps between two looks at validation; each is also a checkpoint."""
    look: int = Field(default=32, ge=1)
    """Most validation examples that are looked at."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of the arithmetic; weights are float32."""
    seed: int = 0


class Look(NamedTuple):
    """Figures of the training so far."""

    step: int
    loss: float | None
    """Loss per target token, mean over the steps since the last look; None before the first step."""
    validation_loss: float
    best: bool


Listener = Callable[[Look], None]


class Lesson(Protocol):
    """Request to a planner and the reply it should give; tokens are made when they are needed."""

    @property
    def user(self) -> str:
        """User whose question it is."""
        ...

    @property
    def identity(self) -> str:
        """A hash over what is asked and what should be said."""
        ...

    def example(self) -> TokenExample:
        """Return request and reply as tokens."""
        ...


class PlannerTraining:
    """One training of a planner.

    Args:
        options: Settings of the training.
        model: The base, and what tokenises for it; its weights are adapted in place, in a copy of their own.
        train: Lessons to learn from.
        validation: Other users' other questions.
        folder: Where the checkpoint is kept.
    """

    def __init__(
        self,
        options: PlannerConfig,
        model: LanguageModel,
        train: Sequence[Lesson],
        validation: Sequence[Lesson],
        folder: Path,
    ) -> None:
        self.options = options
        self._base_revision = model.checkpoint.revision
        self._train, self._held = tuple(train), tuple(validation[: options.look])
        self._folder = folder
        self.adapted = _adapted(model, options)
        self._weights = [weight for weight in self.adapted.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(self._weights, lr=options.learning_rate, weight_decay=0.0)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimizer, self._rate)
        self._random = torch.get_rng_state()
        self._best: dict[str, torch.Tensor] = {}
        self.step = 0
        self.tokens = 0
        """Tokens that went through the model in training steps."""
        self.looks: list[Look] = []

    @cached_property
    def identity(self) -> str:
        """Return the identity of this training: another one is not continued."""
        lessons = [[lesson.identity for lesson in part] for part in (self._train, self._held)]
        return digest([self.options.model_dump(mode="json"), self._base_revision, lessons])

    @property
    def best(self) -> Look:
        """The look whose weights are kept."""
        return [look for look in self.looks if look.best][-1]

    def run(self, listener: Listener | None = None) -> None:
        """Train all steps, continuing after the last checkpoint, and take the best weights."""
        with checkpoint.alone(self._folder), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.options.seed)
            self._random = torch.get_rng_state()
            self._resume()
            if not self.looks:
                self._look(None, listener)
            while self.step < self.options.steps:
                self._look(self._some_steps(), listener)
        require_peft(self.options.policy).set_peft_model_state_dict(self.adapted, self._best)
        self.adapted.eval()

    def _some_steps(self) -> float:
        """Train until the next look; returns the mean loss of its steps."""
        torch.set_rng_state(self._random)
        until = min(self.step + self.options.look_every, self.options.steps)
        losses = [self._one_step(_packed(self._train, group)) for group in islice(self._order(), self.step, until)]
        self._random = torch.get_rng_state()
        return sum(losses) / len(losses)

    def _order(self) -> Iterator[list[int]]:
        """The lessons of all steps, epoch after epoch; the same from the start each time it is asked for."""
        for epoch in count():
            users = [lesson.user for lesson in self._train]
            yield from groups(users, self.options.batch, seed=f"{self.options.seed}:{epoch}")

    def _one_step(self, one: Pack) -> float:
        self.adapted.train()
        with self._arithmetic():
            losses = target_losses(self.adapted, one, through=self.options.through_posts)
        loss = losses.total / losses.tokens
        value = float(loss.item())
        if not math.isfinite(value):
            raise ModelError(
                f"the loss of the planner became {value} in step {self.step + 1}",
                hint="a lower --learning-rate helps, in a folder of its own; nothing since the last look was kept",
            )
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._weights, 1.0)
        self._optimizer.step()
        self._schedule.step()
        self.step, self.tokens = self.step + 1, self.tokens + one.tokens
        return value

    def _look(self, loss: float | None, listener: Listener | None) -> None:
        found = self.validation_loss()
        better = not self.looks or found < self.best.validation_loss
        if better:
            kept = require_peft(self.options.policy).get_peft_model_state_dict(self.adapted)
            self._best = {name: tensor.detach().clone() for name, tensor in kept.items()}
        self.looks.append(Look(self.step, loss, found, better))
        self._keep()
        if listener is not None:
            listener(self.looks[-1])

    def validation_loss(self) -> float:
        """Loss per target token of the held-out examples."""
        self.adapted.eval()
        total, tokens = 0.0, 0
        with torch.inference_mode(), self._arithmetic():
            for group in groups([lesson.user for lesson in self._held], self.options.batch):
                losses = target_losses(self.adapted, _packed(self._held, group))
                total, tokens = total + float(losses.total), tokens + losses.tokens
        return total / tokens

    def _arithmetic(self) -> Any:
        return torch.autocast("cpu", torch.bfloat16, enabled=self.options.dtype == "bfloat16")

    def _rate(self, step: int) -> float:
        return min(1.0, (step + 1) / max(self.options.warmup, 1)) * max(0.1, 1 - step / self.options.steps)

    def _keep(self) -> None:
        content = {
            "adapter": require_peft(self.options.policy).get_peft_model_state_dict(self.adapted),
            "best": self._best,
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "random": self._random,
            "step": self.step,
            "tokens": self.tokens,
            "looks": [tuple(look) for look in self.looks],
        }
        checkpoint.keep(self._folder, self.identity, content)

    def _resume(self) -> None:
        kept = checkpoint.read(self._folder, self.identity)
        if kept is None:
            return
        require_peft(self.options.policy).set_peft_model_state_dict(self.adapted, dict(kept["adapter"]))
        self._optimizer.load_state_dict(kept["optimizer"])
        self._schedule.load_state_dict(kept["schedule"])
        self._random, self._best = kept["random"], dict(kept["best"])
        self.step, self.tokens = kept["step"], kept["tokens"]
        self.looks = [Look(*look) for look in kept["looks"]]


def _packed(lessons: Sequence[Lesson], places: Iterable[int]) -> Pack:
    return pack([lessons[place].example() for place in places])


def _adapted(model: LanguageModel, options: PlannerConfig) -> Any:
    """The base with a new adapter on all its linear layers, the same for the same seed."""
    from transformers import AutoModelForCausalLM

    peft = require_peft(options.policy)
    base = model.checkpoint.load_weights(AutoModelForCausalLM, ModelOptions(device="cpu"))
    config = peft.LoraConfig(
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=options.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(options.seed)
        return peft.get_peft_model(base, config)


def closed(ids: Iterable[int], closing: int, end: int | None) -> tuple[int, ...]:
    """A conversation's tokens up to the one that ends the text: what the chat template writes after it is not learned.

    Args:
        ids: Prompt and text, as the chat template closes them.
        closing: How many tokens the template writes after a text.
        end: The token that ends a text; None where the model has none.

    Example:
        >>> closed([7, 8, 2, 13], closing=2, end=2), closed([7, 8], closing=0, end=2)
        ((7, 8, 2), (7, 8, 2))
    """
    whole = tuple(ids)
    said = whole[: len(whole) - closing]
    return said if end is None else (*said, end)
