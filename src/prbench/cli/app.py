"""The commands and their options; what they do is in `commands`, imported when one is called."""

from copy import copy
from enum import StrEnum
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

import typer

from prbench._version import __version__
from prbench.cli import options as shared
from prbench.cli.config_file import read_config_file
from prbench.cli.options import Dtype, Format, Structured, model_options, read_columns, whole

app = typer.Typer(
    name="prbench",
    help="Does a reward model know what this user wants? Evaluate reward models and LLM judges on personal preference.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class EngineName(StrEnum):
    """Engines that ask local models."""

    local = "local"
    ray = "ray"


class Tracker(StrEnum):
    """Services to which a finished run is sent."""

    mlflow = "mlflow"
    wandb = "wandb"


class Quantize(StrEnum):
    """Precision of rounded weights."""

    int8 = "int8"
    bfloat16 = "bfloat16"


ContextOption = Annotated[str | None, typer.Option("--context", help="Default: profile, else the first in common.")]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def run(
    model: Annotated[str, typer.Option("--model", "-m", help="Model address; `prbench models` lists the kinds.")],
    suite: shared.SuiteOption = "mirror",
    context: Annotated[
        str,
        typer.Option(
            "--context",
            "-c",
            help="Comma-separated, such as none,profile,recent@5,opposite; `prbench explain` lists and explains them.",
        ),
    ] = "none,profile,other",
    split: shared.SplitOption = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many pairs (whole mirrored couples).")] = None,
    by: Annotated[list[str] | None, typer.Option("--by", help="Also report groups by this tag; repeatable.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; default below runs/.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print pairs, calls, tokens, time or cost; ask nothing.")
    ] = False,
    fail_under: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit 1 if accuracy (own profile if shown, else the first context) is below."),
    ] = None,
    max_cost: shared.MaxCostOption = None,
    price: shared.PriceOption = None,
    template: shared.TemplateOption = None,
    planner: Annotated[str | None, typer.Option(help="Who writes plans; default: the model itself.")] = None,
    plans: Annotated[Path | None, typer.Option(help="A file of `prbench plan`, in place of a planner.")] = None,
    ranker: shared.RankerOption = "bm25",
    seed: Annotated[int, typer.Option(help="Of resampling, --limit and the wrong users shown.")] = 0,
    repeats: Annotated[int, typer.Option(min=1, help="How often each question is asked.")] = 1,
    one_order: Annotated[bool, typer.Option("--one-order", help="Ask comparers once, not in both orders.")] = False,
    column: shared.ColumnOption = None,
    revision: shared.RevisionOption = None,
    window: shared.WindowOption = None,
    dtype: shared.DtypeOption = Dtype.float32,
    device: shared.DeviceOption = "auto",
    device_map: shared.DeviceMapOption = None,
    max_memory: shared.MaxMemoryOption = None,
    quantize: Annotated[
        Quantize | None, typer.Option(help="Round a reward model's weights; what that changes is measured.")
    ] = None,
    quantize_sample: Annotated[
        int, typer.Option(min=0, help="Prompts scored before and after rounding; 0 measures nothing.")
    ] = 16,
    trust_remote_code: shared.TrustOption = False,
    batch_tokens: shared.BatchTokensOption = 8192,
    concurrency: shared.ConcurrencyOption = 8,
    workers: Annotated[
        str | None,
        typer.Option(
            help="Processes that hold a copy of a local model, or auto. Default 1, which uses all cores already: "
            "more are for isolation and clusters. On ray auto."
        ),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="Worker processes here, or a Ray cluster.")] = EngineName.local,
    timeout: shared.TimeoutOption = 60.0,
    retries: shared.RetriesOption = 4,
    expect_logit: Annotated[
        float | None, typer.Option(help="Known raw score of the probe (`prbench models probe`) on a vLLM server.")
    ] = None,
    temperature: shared.TemperatureOption = 0.0,
    max_tokens: shared.MaxTokensOption = 1024,
    key_env: shared.KeyOption = None,
    body: shared.BodyOption = None,
    structured: shared.StructuredOption = Structured.off,
    logprobs: shared.LogprobsOption = False,
    resamples: shared.ResamplesOption = 2000,
    allow_unfit: Annotated[
        bool, typer.Option(help="Count pairs that cannot be shown as invalid; else refuse.")
    ] = False,
    no_cache: shared.NoCacheOption = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask everything anew; old records are kept aside.")] = False,
    quiet: shared.QuietOption = False,
    format: shared.FormatOption = Format.table,
    full: Annotated[bool, typer.Option("--full", help="Print all tables, not only what the verdict rests on.")] = False,
    page: Annotated[bool, typer.Option("--report", help="Also make report.html in the run's folder.")] = False,
    track: Annotated[
        Tracker | None,
        typer.Option(help="Also send settings and numbers, no texts, to an experiment tracker: wandb or mlflow."),
    ] = None,
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="A TOML file of these options, such as the config.toml of a run; options given here go before.",
            is_eager=True,
            callback=read_config_file,
        ),
    ] = None,
) -> None:
    """Evaluate one model on a suite, with and without the user's profile."""
    from prbench.cli import commands

    given = locals()
    options = model_options(given, *_MODEL_OPTIONS)
    straight = ("model", "suite", "ranker", "planner", "plans", "repeats", "seed", "limit", "revision")
    config = {
        **{name: given[name] for name in (*straight, "allow_unfit", "resamples")},
        "split": whole(split),
        "contexts": context,
        "orders": "first" if one_order else "both",
        "by": tuple(by or ()),
        "columns": read_columns(column),
        "options": options,
    }
    commands.run(
        config,
        out=out,
        dry_run=dry_run,
        fail_under=fail_under,
        max_cost=max_cost,
        use_cache=not (no_cache or fresh),
        fresh=fresh,
        workers=workers,
        engine=engine.value,
        quiet=quiet,
        format=format.value,
        full=full,
        page=page,
        track=None if track is None else track.value,
    )


_PANELS = {
    "Data": ("column", "revision", "plans", "planner", "ranker", "allow_unfit", "seed"),
    "Judges and endpoints": (
        "price",
        "max_cost",
        "template",
        "temperature",
        "max_tokens",
        "key_env",
        "body",
        "structured",
        "logprobs",
        "concurrency",
        "timeout",
        "retries",
        "repeats",
        "one_order",
        "expect_logit",
    ),
    "Tuning": (
        "window",
        "dtype",
        "device",
        "batch_tokens",
        "workers",
        "engine",
        "resamples",
        "no_cache",
        "fresh",
    ),
}
"""Panels in which `run --help` lists an option; the task itself comes first, without a heading of its own."""

_MODEL_OPTIONS = (
    *("template", "seed", "window", "device", "dtype", "device_map", "max_memory", "quantize", "quantize_sample"),
    *("trust_remote_code", "batch_tokens", "concurrency", "timeout", "retries", "temperature", "max_tokens", "price"),
    *("key_env", "body", "structured", "logprobs", "expect_logit"),
)

for _panel, _names in _PANELS.items():
    for _name in _names:
        _kind, _option = get_args(get_type_hints(run, include_extras=True)[_name])
        _option = copy(_option)  # other commands share it
        _option.rich_help_panel = _panel
        run.__annotations__[_name] = Annotated[_kind, _option]


@app.command()
def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A column, metric, effect, context, or `verdict`; without it, all names.",
            autocompletion=shared.metric_names,
        ),
    ] = None,
) -> None:
    """Say what a number in the tables means."""
    from prbench.cli import commands

    commands.explain(name)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run folders.", metavar="RUN_A RUN_B…")],
    context: ContextOption = None,
    flips: Annotated[int, typer.Option(min=0, help="How many flipped pairs to list on each side.")] = 10,
    format: shared.FormatOption = Format.table,
) -> None:
    """Compare runs on the pairs all of them judged: difference, interval, p, which pairs flipped."""
    from prbench.cli import commands

    commands.compare(runs, context, flips, format.value)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    format: shared.FormatOption = Format.table,
) -> None:
    """Recompute every aggregate of a run from its records; exit 1 if one differs."""
    from prbench.cli import commands

    commands.verify(folder, format.value)


@app.command()
def history(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, in any order.", metavar="RUNS…")],
    context: ContextOption = None,
    as_given: Annotated[
        bool,
        typer.Option(
            "--as-given",
            help="One series in the order given, whatever the models; default: by model, in order of finishing.",
        ),
    ] = False,
    format: shared.FormatOption = Format.table,
) -> None:
    """Show how a model's numbers moved from run to run; exit 1 if the latest step is a regression."""
    from prbench.cli import commands

    commands.history(runs, context, as_given, format.value)


@app.command()
def suites(format: shared.FormatOption = Format.table) -> None:
    """List the suites that can be named."""
    from prbench.cli import commands

    commands.suites(format.value)


models_app = typer.Typer(
    help="List the kinds of model address; pull weights.", rich_markup_mode=None, invoke_without_command=True
)
app.add_typer(models_app, name="models")


@models_app.callback()
def models(context: typer.Context, format: shared.FormatOption = Format.table) -> None:
    """List the kinds of model address; pull weights."""
    from prbench.cli import commands

    if context.invoked_subcommand is None:
        commands.models(format.value)


@app.command()
def doctor(format: shared.FormatOption = Format.table) -> None:
    """Show what is installed, what is missing and where things are kept."""
    from prbench.cli import commands

    commands.doctor(format.value)
