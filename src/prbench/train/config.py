"""Settings of a training; everything here changes the weights and names the training that is resumed."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from prbench.config import Config


class TrainConfig(Config):
    """Settings for training a method over vectors."""

    method: str
    settings: Mapping[str, Any] = Field(default_factory=dict)
    """Settings of the method itself: its widths and weights."""
    encoder: str = "embed:minilm"
    """Address of the frozen encoder."""
    post_window: int = Field(default=2, ge=0)
    """Sentences in a piece of a post; 0 takes the post whole."""
    answer_window: int = Field(default=1, ge=0)
    epochs: int = Field(default=30, ge=1)
    batch: int = Field(default=128, ge=1)
    together: int = Field(default=8, ge=1)
    """Most pairs of a user in a batch that are shown with the same part of what is known of them: read once for all."""
    learning_rate: float = Field(default=2e-3, gt=0)
    weight_decay: float = Field(default=0.3, ge=0)
    patience: int = Field(default=8, ge=1)
    """Epochs without a better validation after which training stops."""
    keep_posts: float = Field(default=0.7, gt=0, le=1)
    """Share of a profile's pieces shown in a training example, so that no single piece is relied on."""
    strangers: float = Field(default=0.05, ge=0, le=1)
    """Share of training examples in which nothing of the user is shown."""
    shots: int = Field(default=16, ge=0)
    """Most labelled pairs shown in a training example; half of the examples show none."""
    aspects: bool = False
    """Whether the rubric aspects of the training split are shown in place of the posts in a third of the examples."""
    also: str | None = None
    """Another suite whose pairs of the same split are learned from as well: pairs without a user, for what all like."""
    also_repeat: int = Field(default=3, ge=1)
    """Number of times each of those is shown in an epoch: there are few of them."""
    seed: int = 0
