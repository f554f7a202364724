"""The command `prbench stress`: whether verdicts stand changes that should not matter."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from prbench.cli.app import Dtype, Format, Structured


def stress(
    model: Annotated[str, typer.Argument(help="Model address; `prbench models` lists the kinds.", metavar="MODEL")],
    suite: Annotated[str, typer.Option("--suite", "-s", help="Suite name, file, or NAME=FOLDER.")] = "mirror",
    split: Annotated[str, typer.Option(help="Part of the suite; 'all' for all of it.")] = "test",
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
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the runs; default below runs/.")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, help="Most US dollars to spend; needs a price.")] = None,
    price: Annotated[str | None, typer.Option(help="IN,OUT[,CACHED] in US dollars per million tokens.")] = None,
    template: Annotated[Path | None, typer.Option(help="Prompt template file in place of the built-in one.")] = None,
    seed: Annotated[int, typer.Option(help="Of resampling and --limit.")] = 0,
    window: Annotated[int | None, typer.Option(min=1, help="Most tokens of a prompt.")] = None,
    dtype: Annotated[Dtype, typer.Option(help="Precision of local weights.")] = Dtype.float32,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = 8,
    temperature: Annotated[float, typer.Option(min=0, help="Of judges that sample.")] = 0.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of a reply.")] = 1024,
    key_env: Annotated[str | None, typer.Option(help="Variable with the endpoint's key.")] = None,
    body: Annotated[list[str] | None, typer.Option(help="KEY=VALUE of every request; repeatable.")] = None,
    structured: Annotated[Structured, typer.Option(help="Hold a judge to a JSON schema.")] = Structured.off,
    logprobs: Annotated[bool, typer.Option("--logprobs", help="Ask for a verdict's log-probabilities.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    format: Annotated[Format, typer.Option("--format", help="How the table looks.")] = Format.table,
) -> None:
    """Change what should not matter in the same pairs, and count the verdicts that change."""
    import json
    import sys
    from contextlib import closing

    from prbench import stress as room
    from prbench.calls import CallCache
    from prbench.cli.commands import read_body, read_price
    from prbench.config import ModelOptions, RunConfig
    from prbench.models import load_model
    from prbench.show import Format as Shown
    from prbench.show import render

    options: dict[str, Any] = {
        "template": template,
        "seed": seed,
        "window": window,
        "dtype": dtype.value,
        "concurrency": concurrency,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "price": read_price(price),
        "key_env": key_env,
        "body": read_body(body or []),
        "structured": structured.value,
        "logprobs": logprobs,
    }
    opened = load_model(model, ModelOptions(**options))
    config = RunConfig.of(
        suite=suite,
        split=None if split == "all" else split,
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
