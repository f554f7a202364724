"""Settings of a user, resolved and written beside every run.

Only what can change an answer enters the digest that names a run's folder: the same command continues the same run, and
a faster machine, more concurrency or a new `--by` do not start another one.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from prbench.errors import ConfigError, did_you_mean
from prbench.types import Context, ContextName, Frozen

CACHE_VARIABLE = "PRBENCH_CACHE"


class Config(Frozen):
    """Base of all settings of a user: frozen, checked, and refused in the user's words."""

    @classmethod
    def of(cls, place: str = "", /, **settings: Any) -> Self:
        """Make settings of values, or refuse the first that does not fit, with its name and its place.

        Args:
            place: Where the values were written: a file, `--` for the command line, or empty where that is clear.
            settings: The values, by field.

        Raises:
            ConfigError: If a value does not fit, a field is unknown or a needed one is missing.

        Example:
            >>> ModelOptions.of("judge.toml", dtype="int8")
            Traceback (most recent call last):
            prbench.errors.ConfigError: judge.toml: dtype is 'int8': Input should be 'float32', 'bfloat16' or 'float16'
        """
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            first = error.errors()[0]
            unknown = first["type"] == "extra_forbidden"
            hint = did_you_mean(str(first["loc"][0]), cls.model_fields) if unknown else ""
            said = "there is no such setting" if unknown else first["msg"]
            raise ConfigError(_refusal(place, first["loc"], first["input"], said), hint=hint) from error

    @classmethod
    def typed(cls, **options: Any) -> Self:
        """Make settings of the options of a command; None, an option that was not typed, keeps the default.

        Example:
            >>> ModelOptions.typed(concurrency=0, retries=None)
            Traceback (most recent call last):
            prbench.errors.ConfigError: --concurrency 0: Input should be greater than or equal to 1
        """
        return cls.of("--", **{name: value for name, value in options.items() if value is not None})


def _refusal(place: str, field: tuple[int | str, ...], value: Any, message: str) -> str:
    name, said = ".".join(map(str, field)), message.removeprefix("Value error, ")
    if place == "--":
        return f"--{name.replace('_', '-')} {value!r}: {said}" if name else said
    shown = f"{name} is {value!r}: {said}" if name else said
    return f"{place}: {shown}" if place else shown


class Price(Frozen):
    """US dollars per million tokens."""

    per_million_in: float = Field(ge=0)
    per_million_out: float = Field(ge=0)
    per_million_cached: float | None = Field(default=None, ge=0)
    """Price of tokens that the provider had cached; None: as any token of a prompt."""
    per_million_stored: float | None = Field(default=None, ge=0)
    """Price of tokens that the provider puts into its cache; None: as any token of a prompt."""
    source: str = ""
    """Source of the price and its date; empty where the user gave it."""

    @property
    def costs(self) -> bool:
        """Whether a call costs anything."""
        return self.most_usd(1, 1) > 0

    def cost_usd(self, tokens_in: float, tokens_out: float, cached: float = 0, stored: float = 0) -> float:
        """Return the price of one call in US dollars.

        Args:
            tokens_in: Of the prompt, all of them.
            tokens_out: Written.
            cached: Of the prompt's, those read from the provider's cache.
            stored: Of the prompt's, those put into it.

        Example:
            >>> Price(per_million_in=1.0, per_million_out=2.0).cost_usd(500_000, 250_000)
            1.0
            >>> Price(per_million_in=1.0, per_million_out=2.0, per_million_cached=0.1).cost_usd(1e6, 0, cached=1e6)
            0.1
        """
        cached = min(cached, tokens_in)  # a provider that counts more must not make a call cheaper than free
        special = ((cached, self.per_million_cached), (min(stored, tokens_in - cached), self.per_million_stored))
        saved = sum(tokens * (self.per_million_in - price) for tokens, price in special if price is not None)
        return (tokens_in * self.per_million_in + tokens_out * self.per_million_out - saved) / 1e6

    def most_usd(self, tokens_in: float, tokens_out: float) -> float:
        """The most that one call can cost, whatever the provider's cache does with its prompt.

        Example:
            >>> Price(per_million_in=1.0, per_million_out=2.0, per_million_stored=1.25).most_usd(1e6, 1e6)
            3.25
        """
        dearest = max(self.per_million_in, self.per_million_cached or 0.0, self.per_million_stored or 0.0)
        return (tokens_in * dearest + tokens_out * self.per_million_out) / 1e6


_LATER = (
    *("key_env", "body", "structured", "logprobs"),
    *("trust_remote_code", "device_map", "max_memory", "quantize", "quantize_sample"),
)
"""Options that runs of the first format did not have."""


class ModelOptions(Config):
    """Options that a user may set for any model; a backend ignores what it has no use for."""

    template: Path | None = None
    """A template file in place of the built-in one."""
    seed: int = 0
    window: int | None = Field(default=None, ge=1)
    """Most tokens of a prompt; default: what the model says of itself."""
    device: str = "auto"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_tokens: int = Field(default=8192, ge=1)
    """Most tokens, padding included, in one forward pass."""
    concurrency: int = Field(default=8, ge=1)
    timeout_s: float = Field(default=60.0, gt=0)
    retries: int = Field(default=4, ge=0)
    """Number of times a request that met a passing fault is sent again."""
    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=1024, ge=1)
    trust_remote_code: bool = False
    """Whether code that a checkpoint brings along may be run; it is named, pinned and recorded."""
    device_map: str | None = None
    """Spread of the weights over devices: `auto`, `balanced`, `sequential` or a JSON file; None: all on `device`."""
    max_memory: Mapping[str, str] = Field(default_factory=dict)
    """Memory that each device may use for weights (`{"0": "20GiB", "cpu": "30GiB"}`); the rest stays on disk."""
    quantize: Literal["int8", "bfloat16"] | None = None
    """Keep the weights of linear layers in 8 bits, or compute in bfloat16."""
    quantize_sample: int = Field(default=16, ge=0)
    """Prompts scored before and after, which tell what rounding changes; 0 measures nothing and tells nothing."""
    price: Price | None = None
    key_env: str | None = None
    """The environment variable with the endpoint's key; default: the provider's own, for the provider's own host."""
    body: Mapping[str, Any] = Field(default_factory=dict)
    """Further fields of every request to a chat model, such as `reasoning_effort`."""
    structured: Literal["off", "auto", "json-schema"] = "off"
    """Whether a chat model is held to a JSON schema: never, where the endpoint takes one, or always."""
    logprobs: bool = False
    """Whether the log-probabilities of a verdict are asked for, which give its margin."""
    expect_logit: float | None = Field(default=None, allow_inf_nan=False)
    """The known raw score of the probe conversation (`prbench models probe`), checked on connecting to a server."""

    @model_serializer(mode="wrap")
    def _as_ever(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write the options without later fields that have their default, so that settings are written as ever."""
        fields = type(self).model_fields
        later = {name: fields[name].get_default(call_default_factory=True) for name in _LATER}
        return {name: value for name, value in write(self).items() if name not in later or value != later[name]}


class RunConfig(Config):
    """A run, resolved: what was evaluated, on what, how."""

    suite: str
    split: str | None = None
    """Part of the suite; None for all of it."""
    model: str
    contexts: tuple[ContextName, ...] = ("none", "profile", "other")
    ranker: str = "bm25"
    """Chooses posts for `retrieved@K` and where not all fit: `bm25`, or the address of an encoder (`embed:…`)."""
    planner: str | None = None
    """Address of the model that writes plans; None: the evaluated model itself."""
    plans: Path | None = None
    """A file of `prbench plan`, in place of a planner."""
    orders: Literal["both", "first"] = "both"
    """Whether a Comparer is asked in both orders; one order leaves position bias unmeasured."""
    repeats: int = Field(default=1, ge=1, le=10_000)
    seed: int = Field(default=0, ge=0, le=2**53)
    limit: int | None = Field(default=None, ge=1)
    by: tuple[str, ...] = ()
    """Tags to report groups by, besides the category."""
    columns: Mapping[str, str] = Field(default_factory=dict)
    revision: str | None = None
    """Revision of a hub suite."""
    allow_unfit: bool = False
    """Whether a pair that cannot be shown becomes an invalid record instead of an error."""
    resamples: int = Field(default=2000, ge=100, le=1_000_000)
    options: ModelOptions = ModelOptions()

    @classmethod
    def of(
        cls, place: str = "", /, *, contexts: str | Iterable[str] = ("none", "profile", "other"), **settings: Any
    ) -> Self:
        """Make a configuration of what a user typed; what does not fit is said in the user's words.

        Example:
            >>> RunConfig.of(suite="s", model="longer", contexts="none,profile").contexts
            ('none', 'profile')
        """
        names = contexts.split(",") if isinstance(contexts, str) else contexts
        known = tuple(dict.fromkeys(str(Context.parse(name)) for name in names))
        if not known:
            raise ConfigError("no context was given", hint="for example none,profile,other")
        named = {"model": one_address(settings["model"])} if isinstance(settings.get("model"), str) else {}
        return super().of(place, **{**settings, **named, "contexts": known})

    def identity(self) -> dict[str, Any]:
        """Return the settings that can change an answer, as JSON values."""
        data: dict[str, Any] = self.model_dump(mode="json", exclude={"by", "options", "allow_unfit", "plans"})
        if self.plans is not None and self.plans.is_file():
            data["plans"] = _checksum(self.plans)
        options = self.options.model_dump(mode="json")
        data["options"] = {key: options[key] for key in ("window", "dtype", "temperature", "max_tokens", "seed")}
        if self.options.template is not None and self.options.template.is_file():
            data["template"] = _checksum(self.options.template)
        return data


def one_address(address: str) -> str:
    """A model's address in the one spelling that its folder has: from the working folder, where it lies below it.

    Example:
        >>> one_address("longer"), one_address("hf:org/name"), one_address("hf:./no/such/folder")
        ('longer', 'hf:org/name', 'hf:./no/such/folder')
    """
    scheme, colon, rest = address.partition(":")
    name, mark, fragment = rest.partition("#")
    try:
        if not colon or not name or not Path(name).expanduser().is_dir():
            return address
    except OSError:  # too long for a path, or not to be looked at
        return address
    folder = Path(os.path.abspath(Path(name).expanduser()))  # noqa: PTH100  # links are not followed
    here = Path.cwd()
    own = str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)
    return f"{scheme}:{own}{mark}{fragment}"


def _checksum(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(f"cannot read {str(path)!r}: {error.strerror}", hint="check its permissions") from error


def digest(data: Any) -> str:
    """Content hash of JSON values, independent of key order.

    Example:
        >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
        True
    """
    return hashlib.sha256(written(data).encode()).hexdigest()


def written(data: Any) -> str:
    """JSON values as the one text that is hashed for them."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def cache_folder() -> Path:
    """Return the folder that keeps calls and weights between runs: `$PRBENCH_CACHE`, else the platform's cache."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder)
    from platformdirs import user_cache_path

    return user_cache_path("prbench", appauthor=False)
