"""The command `prbench stress`: whether verdicts stand changes that should not matter."""

from pathlib import Path
from typing import Annotated, cast

import typer

from prbench.cli import options as shared
from prbench.cli.options import Dtype, Format, Structured, model_options, whole

_MODEL_OPTIONS = (
    *("template", "seed", "window", "dtype", "concurrency", "temperature", "max_tokens", "price", "key_env"),
    *("body", "structured", "logprobs"),
)


def stress(
    model: Annotated[str, typer.Argument(help="Model address; `prbench models` lists the kinds.", metavar="MODEL")],
    suite: shared.SuiteOption = "mirror",
    split: shared.SplitOption = "test",
    context: Annotated[
        str | None, typer.Option("--context", "-c", help="Default: profile where the model reads posts, else none.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many pairs (whole mirrored couples).")] = 200,
    change: Annotated[
        list[str] | None,
        typer.Option(help="markdown, typography, posts, names, question or again; repeatable; default: all."),
    ] = None,
    paraphrases: Annotated[
        Path | None, typer.Option(help="JSONL with question and paraphrase; default: of the embedded suite.")
    ] = None,
    out: shared.RunsFolderOption = None,
    max_cost: shared.MaxCostOption = None,
    price: shared.PriceOption = None,
    template: shared.TemplateOption = None,
    seed: Annotated[int, typer.Option(help="Of resampling and --limit.")] = 0,
    window: shared.WindowOption = None,
    dtype: shared.DtypeOption = Dtype.float32,
    concurrency: shared.ConcurrencyOption = 8,
    temperature: shared.TemperatureOption = 0.0,
    max_tokens: shared.MaxTokensOption = 1024,
    key_env: shared.KeyOption = None,
    body: shared.BodyOption = None,
    structured: shared.StructuredOption = Structured.off,
    logprobs: shared.LogprobsOption = False,
    quiet: shared.QuietOption = False,
    format: shared.FormatOption = Format.table,
) -> None:
    """Change what should not matter in the same pairs, and count the verdicts that change."""
    given = locals()
    import json
    import sys
    from contextlib import closing

    from prbench import stress as room
    from prbench.calls import CallCache
    from prbench.config import ModelOptions, RunConfig
    from prbench.models import load_model
    from prbench.show import Format as Shown
    from prbench.show import render

    options = model_options(given, *_MODEL_OPTIONS)
    opened = load_model(model, ModelOptions.of("--", **options))
    config = RunConfig.of(
        suite=suite,
        split=whole(split),
        model=model,
        contexts=context or ("profile" if "posts" in opened.card.reads else "none"),
        limit=limit,
        seed=seed,
        options=options,
    )
    with closing(CallCache()) as cache:
        found = room.stress(
            config,
            out or room.default_folder(config, opened.card),
            changes=change or (),
            paraphrases=room.read_paraphrases(paraphrases),
            model=opened,
            cache=cache,
            max_cost_usd=max_cost,
            say=(lambda line: None) if quiet else lambda line: print(line, file=sys.stderr, flush=True),
            quiet=quiet,
        )
    data = json.dumps(found.model_dump(mode="json"), ensure_ascii=False, indent=2, allow_nan=False)
    typer.echo(data if format is Format.json else render(room.stress_tables(found), cast(Shown, format.value)))
