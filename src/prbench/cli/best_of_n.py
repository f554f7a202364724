"""The command `prbench study best-of-n`."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prbench.cli.options import Format, FormatOption, RewardModelsOption, settings_of

if TYPE_CHECKING:
    from prbench.studies.best_of_n import BestOfNConfig


class Until(StrEnum):
    """Steps up to which to go."""

    candidates = "candidates"
    scores = "scores"
    grades = "grades"
    study = "study"


class CandidateSource(StrEnum):
    """Sources of the candidates."""

    policy = "policy"
    suite = "suite"


def best_of_n(
    models: RewardModelsOption = None,
    policy: Annotated[str | None, typer.Option(help="Who writes the candidates, as lm:smollm2.")] = None,
    judge: Annotated[str | None, typer.Option(help="Who says what each is worth: chat:…, lm:… or stances:….")] = None,
    settings_file: Annotated[
        Path | None, typer.Option("--from", help="A TOML file with the same settings; options here go before it.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Whose users and questions; default mirror.")] = None,
    split: Annotated[str | None, typer.Option(help="Part of it, or all; default test.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most items (a user's question each), whole couples.")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", min=2, help="Candidates of each item; default 16.")] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="The endpoint is best of k; default N.")] = None,
    candidates: Annotated[
        CandidateSource | None, typer.Option(help="suite: its own answers, as a check only; default policy.")
    ] = None,
    posts: Annotated[
        int | None, typer.Option(min=0, help="Posts that the policy is shown; default 0: candidates shared by users.")
    ] = None,
    words: Annotated[int | None, typer.Option(min=5, help="Most words to ask of the policy; default 60.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=8, help="Most tokens of a candidate; default 96.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="Of the policy; default 1.")] = None,
    judge_pairs: Annotated[
        int | None, typer.Option(min=20, help="Labelled pairs to examine the judge on; default 400.")
    ] = None,
    truth: Annotated[
        str | None, typer.Option(help="judge, or instructed: the pole a candidate was written for; default judge.")
    ] = None,
    reserve: Annotated[
        float | None, typer.Option(min=0, max=0.9, help="The judge learns from this share that all models left to it.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of everything that is drawn; default 0.")] = None,
    resamples: Annotated[int | None, typer.Option(min=100, help="Bootstrap resamples; default 2000.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Most US dollars to spend, all starts together; prices stand in --from.")
    ] = None,
    until: Annotated[Until, typer.Option(help="The last stage to go through.")] = Until.study,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The study's folder.")] = None,
    format: FormatOption = Format.table,
) -> None:
    """Let each reward model choose among the same N answers, and see what its choice is worth to the user."""
    given = locals()
    import json
    from typing import cast

    from prbench import show
    from prbench.studies.best_of_n import BestOfNConfig, best_of_n_tables, parse_model, read_settings
    from prbench.studies.best_of_n import best_of_n as compute

    typed = settings_of(BestOfNConfig, given) | {"models": [parse_model(text) for text in models] if models else None}
    written = read_settings(settings_file) if settings_file else {}
    chosen = {**written, **{key: value for key, value in typed.items() if value is not None}}
    settings = BestOfNConfig.of(str(settings_file or ""), **chosen)
    folder = out or default_folder(settings)
    print(f"study: {folder}", file=sys.stderr)
    found = compute(settings, folder, until=until.value, max_cost_usd=max_cost)
    if found is None:
        print(f"stopped after {until.value}; the same command without --until goes on", file=sys.stderr)
        return
    typer.echo(
        json.dumps(found.model_dump(mode="json"), ensure_ascii=False, indent=2, allow_nan=False)
        if format is Format.json
        else show.render(best_of_n_tables(found), cast(show.Format, format.value))
    )
    print(f"\nwritten: {folder / 'study.json'}, {folder / 'curves.json'}", file=sys.stderr)


def default_folder(settings: "BestOfNConfig") -> Path:
    """`runs/best-of-n-<suite>-<policy>-<8 hex>`: the same command continues the same study."""
    from prbench.config import digest
    from prbench.files import slug

    names = (Path(settings.suite).name, settings.policy or "suite")
    readable = (slug(name)[:40] for name in names)
    return Path("runs") / "-".join(("best-of-n", *readable, digest(settings.writing)[:8]))
