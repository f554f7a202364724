"""Settings of a user for making a mirrored suite."""

from collections.abc import Mapping

from pydantic import Field, field_validator

from prbench.config import Config
from prbench.errors import ConfigError

SPLITS = ("train", "validation", "test", "seen-users")
TRAIN, VALIDATION, TEST, SEEN_USERS = range(4)


class MirrorConfig(Config):
    """Settings for turning a log into a mirrored suite.

    Example:
        >>> MirrorConfig(splits=parse_splits("80/0/20")).splits
        (80.0, 0.0, 20.0)
    """

    seed: int = 0
    min_gap: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Least distance of two ratings of one user to be a preference; None: a fifth of the range of all ratings."""
    question: str | None = Field(default=None, min_length=1)
    """The question that both halves of a couple are asked; `{topic}` and `{stance}` are filled in."""
    columns: Mapping[str, str] = Field(default_factory=dict)
    """Field → column, where a column is named otherwise than its field."""
    splits: tuple[float, float, float] = (60.0, 20.0, 20.0)
    """Shares of train, validation and test, of the users and of the items alike."""
    max_pairs: int | None = Field(default=20_000, ge=2)
    """Most pairs in all; taken evenly over item pairs."""
    max_per_user: int | None = Field(default=100, ge=1)
    """Most pairs of a user in a split, so that a few busy users do not decide the result."""
    max_posts: int = Field(default=40, ge=1)
    """Most posts in a profile, and most labelled context pairs made from one user's ratings."""
    context_share: float = Field(default=0.5, gt=0, lt=1)
    """Part of a user's judgments that becomes the profile."""

    @field_validator("splits")
    @classmethod
    def _are_shares(cls, splits: tuple[float, float, float]) -> tuple[float, float, float]:
        if not all(0 <= share < float("inf") for share in splits) or sum(splits) <= 0:
            raise ValueError("shares of train, validation and test must not be negative, nor all 0")
        return splits

    @property
    def shares(self) -> tuple[float, float, float]:
        """The splits as parts of 1."""
        train, validation, test = (share / sum(self.splits) for share in self.splits)
        return train, validation, test


def parse_splits(text: str) -> tuple[float, float, float]:
    """Read `TRAIN/VALIDATION/TEST`, as in 60/20/20.

    Example:
        >>> parse_splits("60/20/20")
        (60.0, 20.0, 20.0)
    """
    try:
        train, validation, test = map(float, text.split("/"))
    except ValueError as error:
        raise ConfigError(f"--splits {text!r} should be TRAIN/VALIDATION/TEST", hint="for example 60/20/20") from error
    return train, validation, test
