"""Options that several commands have, each defined once, and the readers of what is typed for them."""

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from prbench.config import Config, Price


class Format(StrEnum):
    """Formats of the output."""

    table = "table"
    md = "md"
    csv = "csv"
    json = "json"
    latex = "latex"


class Dtype(StrEnum):
    """Precision of local weights."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


class Structured(StrEnum):
    """Whether a judge is held to a JSON schema."""

    off = "off"
    auto = "auto"
    json_schema = "json-schema"


def _suite_names() -> list[str]:
    from prbench.data import suites

    return [info.name for info in suites()]


def metric_names() -> list[str]:
    """Return what `prbench explain` knows, for the shell to complete."""
    from prbench.results import definitions

    return [part.strip() for names in definitions() for part in names.split(",")]


SuiteOption = Annotated[
    str, typer.Option("--suite", "-s", help="Suite name, file, or NAME=FOLDER.", autocompletion=_suite_names)
]
SplitOption = Annotated[str, typer.Option(help="Part of the suite; 'all' for all of it.")]
ColumnOption = Annotated[list[str] | None, typer.Option(help="FIELD=COLUMN of your file; repeatable.")]
RevisionOption = Annotated[str | None, typer.Option(help="Revision of a hub suite.")]
RankerOption = Annotated[str, typer.Option(help="Who chooses posts: bm25, or an encoder's address.")]
TemplateOption = Annotated[Path | None, typer.Option(help="Prompt template file in place of the built-in one.")]
ResamplesOption = Annotated[int, typer.Option(min=100, help="Bootstrap resamples behind each interval.")]
WindowOption = Annotated[int | None, typer.Option(min=1, help="Most tokens of a prompt.")]
DtypeOption = Annotated[Dtype, typer.Option(help="Precision of local weights.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
DeviceMapOption = Annotated[
    str | None, typer.Option(help="Spread weights over devices: auto, balanced, sequential or a JSON file.")
]
MaxMemoryOption = Annotated[
    list[str] | None, typer.Option(help="DEVICE=SIZE that may be filled, e.g. 0=20GiB, cpu=30GiB; repeatable.")
]
TrustOption = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that the checkpoint brings along, named and pinned.")
]
BatchTokensOption = Annotated[int, typer.Option(min=1, help="Most tokens in one forward pass.")]
ConcurrencyOption = Annotated[int, typer.Option(min=1, help="Requests under way at once.")]
TimeoutOption = Annotated[float, typer.Option(min=0.001, help="Seconds to wait for a reply.")]
RetriesOption = Annotated[int, typer.Option(min=0, help="How often a passing fault is tried again.")]
TemperatureOption = Annotated[float, typer.Option(min=0, help="Of judges that sample.")]
MaxTokensOption = Annotated[int, typer.Option(min=1, help="Most tokens of a reply.")]
PriceOption = Annotated[str | None, typer.Option(help="IN,OUT[,CACHED] in US dollars per million tokens.")]
MaxCostOption = Annotated[float | None, typer.Option(min=0, help="Most US dollars to spend; needs a price.")]
KeyOption = Annotated[str | None, typer.Option(help="Variable with the endpoint's key; default: the provider's own.")]
BodyOption = Annotated[
    list[str] | None, typer.Option(help="KEY=VALUE of every request, e.g. reasoning_effort=low; repeatable.")
]
StructuredOption = Annotated[
    Structured, typer.Option(help="Hold a judge to a JSON schema: off, auto (where taken) or json-schema.")
]
LogprobsOption = Annotated[bool, typer.Option("--logprobs", help="Ask for a verdict's log-probabilities.")]
RewardModelsOption = Annotated[
    list[str] | None, typer.Option(help="Reward models: ADDRESS, or CONTEXT=ADDRESS.", metavar="MODELS…")
]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Ask again what earlier runs have asked.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How the tables look.")]
PortOption = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]
JsonFileOption = Annotated[Path | None, typer.Option("--out", "-o", help="Also write the JSON to this file.")]
SuiteFolderOption = Annotated[Path, typer.Option("--out", "-o", help="Folder of the suite.")]
PageOption = Annotated[Path, typer.Option("--out", "-o", help="The page.")]
RunsFolderOption = Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the runs; default below runs/.")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take a group of options as one named tuple, whose fields are options like its own.

    Example:
        @grouped
        def write(out: OutOption, sampling: Sampling) -> None: ...
    """
    groups: dict[str, Any] = {}
    options: list[inspect.Parameter] = []
    for option in inspect.signature(command).parameters.values():
        if not hasattr(option.annotation, "_fields"):
            options.append(option.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        group = groups[option.name] = option.annotation
        for name, kind in get_type_hints(group, include_extras=True).items():
            default = group._field_defaults[name]
            options.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {name: group(*(given.pop(field) for field in group._fields)) for name, group in groups.items()}
        command(**given, **made)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def settings_of(kind: "type[Config]", given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a kind among all that a command was given, by the names of its fields.

    Example:
        >>> from prbench.config import ModelOptions
        >>> settings_of(ModelOptions, {"dtype": Dtype.float32, "out": "runs/a"})
        {'dtype': 'float32'}
    """
    found = {name: given[name] for name in kind.model_fields if name in given}
    return {name: value.value if isinstance(value, StrEnum) else value for name, value in found.items()}


def model_options(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The options of a model among all that a command was given, as `ModelOptions` takes them.

    Example:
        >>> model_options({"dtype": Dtype.float32, "timeout": 5.0, "seed": 1}, "dtype", "timeout")
        {'dtype': 'float32', 'timeout_s': 5.0}
    """
    readers = {"max_memory": read_sizes, "price": read_price, "body": read_body}
    found = {name: readers[name](given[name]) if name in readers else given[name] for name in names}
    values = {name: value.value if isinstance(value, StrEnum) else value for name, value in found.items()}
    return {"timeout_s" if name == "timeout" else name: value for name, value in values.items()}


def whole(split: str) -> str | None:
    """The split of a suite as it is loaded; None for 'all' of it."""
    return None if split == "all" else split


def read_price(text: str | None) -> "Price | None":
    """Read `IN,OUT` or `IN,OUT,CACHED` in US dollars per million tokens."""
    from prbench.config import Price
    from prbench.errors import ConfigError

    if text is None:
        return None
    try:
        price_in, price_out, *cached = map(float, text.split(","))
        if len(cached) > 1:
            raise ValueError(text)
        return Price(
            per_million_in=price_in, per_million_out=price_out, per_million_cached=cached[0] if cached else None
        )
    except ValueError as error:
        raise ConfigError(
            f"--price {text!r} should be IN,OUT or IN,OUT,CACHED", hint="for example --price 0.15,0.60"
        ) from error


def read_body(texts: Sequence[str] | None) -> dict[str, Any]:
    """Read `KEY=VALUE` options; a value that is JSON is taken as such, else as text."""
    from prbench.errors import ConfigError

    body: dict[str, Any] = {}
    for text in texts or ():
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise ConfigError(f"--body {text!r} should be KEY=VALUE", hint="for example --body reasoning_effort=low")
        try:
            body[name] = json.loads(value)
        except ValueError:
            body[name] = value
    return body


def read_sizes(texts: Sequence[str] | None) -> dict[str, str]:
    """Read options of the form `DEVICE=SIZE`.

    Example:
        >>> read_sizes(["0=20GiB", "cpu=30GiB"])
        {'0': '20GiB', 'cpu': '30GiB'}
    """
    from prbench.errors import ConfigError

    sizes = {}
    for text in texts or ():
        device, _, size = text.partition("=")
        if not device or not re.fullmatch(r"[0-9]+(\.[0-9]+)?[KMGT]i?B", size):
            raise ConfigError(f"--max-memory {text!r} should be DEVICE=SIZE", hint="for example --max-memory cpu=30GiB")
        sizes[device] = size
    return sizes


def read_columns(texts: Sequence[str] | None) -> dict[str, str]:
    """Read options of the form `FIELD=COLUMN`."""
    from prbench.errors import ConfigError

    columns = {}
    for text in texts or ():
        name, mark, column = text.partition("=")
        if not mark or not name or not column:
            raise ConfigError(f"--column {text!r} should be FIELD=COLUMN", hint="for example --column question=prompt")
        columns[name] = column
    return columns
