"""Settings of a scorecard: the models that stand on it, the suites they meet, the rule that judges them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator

from prbench.config import Config, ModelOptions
from prbench.errors import AddressError, ConfigError, did_you_mean
from prbench.files import read_toml
from prbench.models import BASELINES, schemes
from prbench.scorecard.rule import Rule
from prbench.types import CONTEXTS, Context, context_names


class ScorecardModelConfig(Config):
    """One model on the scorecard.

    Example:
        >>> ScorecardModelConfig(address="lm:smollm2", context="oracle").label
        'lm:smollm2 · oracle (leaks)'
    """

    address: str = Field(min_length=1)
    name: str = ""
    """Name of the row; default: the address."""
    context: str = "profile"
    """Context in which the user is shown to it: any that shows the pair's own user; `oracle` leaks."""
    planner: str | None = None
    """Address of the model that writes plans, for the contexts that need them; default: the model itself."""
    limit: int | None = Field(default=None, ge=1)
    """Largest number of pairs of each suite, for a slow model; default: the scorecard's own limit."""
    curves: bool = True
    """Whether `--curves` measures this model too, on as many pairs as all others."""
    options: ModelOptions = ModelOptions()

    @field_validator("context")
    @classmethod
    def _shows_the_user(cls, name: str) -> str:
        context = Context.parse(name)
        if not context.kind.own:
            shown = [written for written in context_names() if CONTEXTS[written.partition("@")[0]].own]
            raise ValueError(f"a row shows the user: {', '.join(shown[:-1])} or {shown[-1]}")
        return str(context)

    @property
    def leaks(self) -> bool:
        """Whether the model is shown the scoring standard itself."""
        return Context.parse(self.context).leaks

    @property
    def label(self) -> str:
        """Name of the row."""
        shown = "" if self.context == "profile" else f" · {self.context}" + (" (leaks)" if self.leaks else "")
        return self.name or f"{self.address}{shown}"


class ScorecardConfig(Config):
    """Settings of a scorecard, resolved."""

    models: tuple[ScorecardModelConfig, ...] = Field(min_length=1)
    suite: str = "mirror"
    split: str = "test"
    """Part of the suite; `all` for all of it."""
    generic: str = "generic+posts"
    """Suite of general quality; with posts to show (`posts_of`), soundness is measured too; `none`: neither."""
    generic_split: str = ""
    """Part of it; default: as of the suite, so that no training has seen its questions either."""
    limit: int | None = Field(default=None, ge=1)
    seed: int = 0
    resamples: int = Field(default=2000, ge=100)
    latency_pairs: int = Field(default=30, ge=0)
    """Pairs on which latency is measured; 0 measures none."""
    baselines: bool = True
    """Whether the content-blind baselines stand above the models."""
    rule: Rule = Rule()

    @classmethod
    def of(cls, place: str = "", /, **settings: Any) -> Self:
        """Check the settings of a user, and that a model exists at every address, before anything is spent.

        Example:
            >>> ScorecardConfig.of(models=[{"address": "longr"}])
            Traceback (most recent call last):
            prbench.errors.AddressError: unknown model address 'longr'
            ...
        """
        if not settings.get("models"):
            raise ConfigError("no model was given", hint="name at least one: --model ADDRESS")
        made = super().of(place, **settings)
        known = schemes()
        for entry in made.models:
            scheme = entry.address.partition(":")[0]
            if scheme not in known:
                raise AddressError(f"unknown model address {entry.address!r}", hint=did_you_mean(scheme, known))
        return made

    @property
    def part(self) -> str | None:
        """Part of the suite as it is loaded; None for all of it."""
        return None if self.split == "all" else self.split

    @property
    def generic_part(self) -> str | None:
        """Part of the generic suite as it is loaded; None for all of it.

        Example:
            >>> ScorecardConfig(models=(ScorecardModelConfig(address="longer"),), split="validation").generic_part
            'validation'
        """
        wanted = self.generic_split or self.split
        return None if wanted == "all" else wanted

    @property
    def entries(self) -> tuple[ScorecardModelConfig, ...]:
        """All rows in order: the baselines, then the models."""
        listed = {entry.address for entry in self.models}
        blind = [ScorecardModelConfig(address=name) for name in BASELINES if self.baselines and name not in listed]
        return (*blind, *self.models)


def read_settings_file(path: Path) -> dict[str, Any]:
    """The values of a scorecard's TOML file: those of `ScorecardConfig`, and for each model a table `[[models]]`."""
    return read_toml(path, raises=ConfigError, hint="name a TOML file with --from")


def entries_of(addresses: Sequence[str], context: str = "profile") -> list[dict[str, Any]]:
    """Addresses as they are typed, as the values of entries."""
    return [{"address": address, "context": context} for address in addresses]
