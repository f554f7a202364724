"""What may be set for a policy's training; whatever is in here is part of a checkpoint's key."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError

from prbench.errors import ConfigError
from prbench.types import Frozen

Algorithm = Literal["ppo", "grpo"]


class PPOConfig(Frozen):
    """How a policy is trained.

    Example:
        >>> PPOConfig().batch
        8
    """

    algorithm: Algorithm = "ppo"
    steps: int = Field(default=40, ge=1)
    prompts: int = Field(default=2, ge=1)
    """Questions in a step."""
    rollouts: int = Field(default=4, ge=2)
    """Answers to each: a reward is held against those of the same question."""
    new_tokens: int = Field(default=56, ge=1)
    """Most tokens of an answer."""
    posts: int = Field(default=2, ge=0)
    """Posts that the policy is shown: the best for the question. Without any it cannot know whom it answers."""
    words: int = Field(default=40, ge=5)
    """Most words that the policy is asked for."""
    temperature: float = Field(default=0.7, gt=0)
    """Divides the policy's logits in sampling, in training and in the reference: it is a part of the policy."""
    epochs: int = Field(default=3, ge=1)
    """Passes over a step's answers."""
    learning_rate: float = Field(default=5e-4, gt=0)
    value_learning_rate: float = Field(default=2e-3, gt=0)
    clip: float = Field(default=0.2, gt=0)
    """How far the odds of a token may move before its gain no longer counts."""
    value_clip: float = Field(default=0.2, gt=0)
    value_weight: float = Field(default=0.1, ge=0)
    entropy_weight: float = Field(default=0.0, ge=0)
    kl_weight: float = Field(default=0.05, ge=0)
    """Price of one nat per token away from the base model, in standard deviations of the reward."""
    discount: float = Field(default=1.0, gt=0, le=1)
    trace: float = Field(default=0.95, ge=0, le=1)
    """λ of generalised advantage estimation."""
    target_kl: float = Field(default=0.1, gt=0)
    """A step's epochs end once the policy has moved so far (per token) from the one that wrote the answers."""
    max_norm: float = Field(default=1.0, gt=0)
    """Gradients longer than this are shortened."""
    rank: int = Field(default=8, ge=1)
    """Of the low-rank adapters."""
    layers: int | None = Field(default=None, ge=1)
    """How many of the upper layers have adapters; default: half of them."""
    checkpoint_every: int = Field(default=5, ge=1)
    seed: int = Field(default=0, ge=0)

    @property
    def batch(self) -> int:
        """Answers in a step."""
        return self.prompts * self.rollouts

    @property
    def identity(self) -> dict[str, Any]:
        """What decides which policy comes out: all but how often it is saved."""
        return self.model_dump(mode="json", exclude={"checkpoint_every"})


def make_options(values: Mapping[str, Any]) -> PPOConfig:
    """Check what a user typed; what was left out (None) keeps its default.

    Example:
        >>> make_options({"rollouts": 1, "steps": None})
        Traceback (most recent call last):
        prbench.errors.ConfigError: --rollouts 1: Input should be greater than or equal to 2
    """
    try:
        return PPOConfig.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        option = ".".join(map(str, first["loc"])).replace("_", "-")
        raise ConfigError(f"--{option} {first['input']!r}: {first['msg']}") from error
