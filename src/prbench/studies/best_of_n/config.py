"""Settings of a best-of-N study, as typed or as read from a TOML file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from prbench.config import Config, ModelOptions
from prbench.errors import ConfigError, ContextError
from prbench.files import read_toml
from prbench.studies.policy import WORDS
from prbench.types import Context, Text

NOISED = "noised-oracle"
"""Scheme of reward models that exist inside a study only: the judge's own grade plus noise of a known size."""


class RewardModelConfig(Config):
    """One reward model, and what of the user it is shown.

    Example:
        >>> RewardModelConfig(address="longer").context is None
        True
    """

    address: Text
    context: str | None = None
    """Default: `profile` where the model reads posts, else `none`."""
    label: str = ""
    """Name in tables; default: its address, with the context where that is not the default."""
    apart: bool = False
    """Shown, but no part of any ranking: a rung of a calibration ladder, a control."""
    lineage: str = ""
    """Method and encoder that it shares with others; where some have one, intervals and p draw whole lineages."""
    options: ModelOptions = ModelOptions()

    @field_validator("context")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is None:
            return None
        context = Context.parse(name)
        if context.name in ("plan", "profile+plan", "pairs"):
            raise ValueError(
                "this study has no plans and no labelled pairs: "
                "use profile, retrieved@K, recent@K, diluted@K, none, other, opposite or oracle"
            )
        return str(context)

    @property
    def noise(self) -> float | None:
        """The size of the noise of a noised oracle, in points of the judge's score; None for a real model.

        Example:
            >>> RewardModelConfig(address="noised-oracle:0.5").noise
            0.5
        """
        scheme, _, rest = self.address.partition(":")
        if scheme != NOISED:
            return None
        try:
            size = float(rest)
        except ValueError:
            size = -1.0
        if not 0 <= size < float("inf"):
            raise ConfigError(
                f"{self.address!r}: the noise {rest!r} is not a number from 0 up", hint=f"for example {NOISED}:0.5"
            )
        return size


def parse_model(text: str) -> RewardModelConfig:
    """Read `ADDRESS` or `CONTEXT=ADDRESS`; no address begins with the name of a context and `=`.

    Example:
        >>> parse_model("none=lm:smollm2#rate")
        RewardModelConfig(address='lm:smollm2#rate', context='none', label='', apart=False, ...)
        >>> parse_model("chat:m@http://127.0.0.1:1/v1?a=b#rate").context is None
        True
    """
    before, mark, address = text.partition("=")
    if mark and address:
        try:
            return RewardModelConfig(address=address, context=str(Context.parse(before)))
        except ContextError:
            pass  # the `=` belongs to the address
        except ValidationError as error:
            raise ConfigError(f"{text!r}: {error.errors()[0]['msg']}") from error
    return RewardModelConfig(address=text)


class BestOfNConfig(Config):
    """Settings of a best-of-N study, resolved."""

    models: tuple[RewardModelConfig, ...] = ()
    suite: str = "mirror"
    split: str = "test"
    """Part of the suite; `all` for all of it."""
    limit: int | None = Field(default=None, ge=1)
    """Most items (a user's question each); couples stay whole, categories and axes in proportion."""
    candidates: Literal["policy", "suite"] = "policy"
    """`suite`: the suite's own answers, as a check of the machinery only; it *is* the benchmark."""
    policy: str = ""
    policy_options: ModelOptions = ModelOptions()
    n: int = Field(default=16, ge=2)
    k: int | None = Field(default=None, ge=1)
    """The endpoint is best of so many; default: all N."""
    posts: int = Field(default=0, ge=0)
    """Posts that the policy is shown; 0: all users who ask a question share its candidates."""
    words: int = Field(default=WORDS, ge=5)
    max_tokens: int = Field(default=96, ge=8)
    temperature: float = Field(default=1.0, ge=0)
    poles: Mapping[str, Mapping[str, str]] = {}
    """Instructions by axis and pole, in the place of a style: each candidate is written for one choice of poles of its
    item's rubric, all choices in turn."""
    drop_nonsense: bool = False
    """Whether a text that is nonsense by rule is drawn again, then invalid, before anything is scored or graded."""
    truth: Literal["judge", "instructed"] = "judge"
    """Worth of a candidate: the judge's grade, or 2 to a user who wants the pole that it was written for."""
    judge: str = ""
    judge_options: ModelOptions = ModelOptions()
    judge_pairs: int = Field(default=400, ge=20)
    """Labelled pairs on which the judge's own accuracy is measured."""
    reserve: float = Field(default=0.0, ge=0, lt=1)
    """Train the judge on this share of the material alone, and refuse models that have not left it (`train --reserve`);
    0: on all of it, and who was taught alike is told."""
    seed: int = Field(default=0, ge=0)
    resamples: int = Field(default=2000, ge=100)

    @classmethod
    def of(cls, place: str = "", /, **settings: Any) -> Self:
        """Check what a user wrote.

        Example:
            >>> BestOfNConfig.of(policy="lm:smollm2", n=8, k=9)
            Traceback (most recent call last):
            prbench.errors.ConfigError: best of 9 needs 9 candidates, there are 8
        """
        made = super().of(place, **settings)
        for model in made.models:
            _ = model.noise  # refused now if it is no number
        return made

    @model_validator(mode="after")
    def _fits_together(self) -> "BestOfNConfig":
        if self.k is not None and self.k > self.n:
            raise ValueError(f"best of {self.k} needs {self.k} candidates, there are {self.n}")
        if self.candidates == "policy" and not self.policy:
            raise ValueError("no policy writes the candidates: --policy ADDRESS")
        if self.truth == "instructed" and not self.poles:
            raise ValueError("no candidate is written for a pole: [poles] are needed for the instructed truth")
        if self.poles and self.candidates == "suite":
            raise ValueError("the suite's own answers are written under no instruction")
        return self

    @property
    def endpoint(self) -> int:
        """The k that the study reports."""
        return self.k or self.n

    @property
    def writing(self) -> dict[str, Any]:
        """Return the settings that decide who writes which candidates for whom: a folder holds one such choice."""
        how = ("posts", "words", "max_tokens", "temperature", "seed", "poles", "drop_nonsense")
        keys = ("suite", "split", "candidates", "policy", *how)
        chosen: dict[str, Any] = self.model_dump(mode="json", include=set(keys))
        return chosen


def read_settings(path: Path) -> dict[str, Any]:
    """Read the settings of a TOML file; options on the command line go before it."""
    return read_toml(path, raises=ConfigError, hint="name a TOML file")
