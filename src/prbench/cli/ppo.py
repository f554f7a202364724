"""The command `prbench study ppo`."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prbench.cli.options import Format, FormatOption, PriceOption, RewardModelsOption, read_price, settings_of

if TYPE_CHECKING:
    from prbench.studies.ppo.outcome import PPOStudy


class PPOEngine(StrEnum):
    """Engines that can train."""

    local = "local"
    verl = "verl"


class AlgorithmName(StrEnum):
    """Algorithms of the training."""

    ppo = "ppo"
    grpo = "grpo"


def ppo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The study's folder; what is there is continued.")],
    reward: RewardModelsOption = None,
    policy: Annotated[str, typer.Option(help="Who is trained.")] = "lm:smollm2",
    judge: Annotated[str | None, typer.Option(help="Who says what the answers are worth; none: only train.")] = None,
    train_only: Annotated[
        bool, typer.Option("--train-only", help="Stop before judging; the judge only chooses items it can grade.")
    ] = False,
    engine: Annotated[PPOEngine, typer.Option(help="verl: write what a cluster of GPUs needs.")] = PPOEngine.local,
    algorithm: Annotated[AlgorithmName, typer.Option(help="grpo: with TRL.")] = AlgorithmName.ppo,
    suite: Annotated[str, typer.Option(help="Whose users and questions.")] = "mirror",
    train_split: Annotated[str, typer.Option(help="What the policy learns from.")] = "train",
    test_split: Annotated[str, typer.Option(help="What it is judged on.")] = "test",
    items: Annotated[int, typer.Option(min=2, help="Held-out items (a user's question each), whole couples.")] = 64,
    answers: Annotated[int, typer.Option(min=1, help="Answers to each held-out item.")] = 2,
    people: Annotated[
        int,
        typer.Option(
            min=0, help="Held-out people, whole couples, who each get a policy, judged on half of their questions."
        ),
    ] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="Default 40.")] = None,
    prompts: Annotated[int | None, typer.Option(min=1, help="Questions in a step; default 2.")] = None,
    rollouts: Annotated[int | None, typer.Option(min=2, help="Answers to each; default 4.")] = None,
    new_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of an answer; default 56.")] = None,
    posts: Annotated[int | None, typer.Option(min=0, help="Posts that the policy is shown; default 2.")] = None,
    words: Annotated[int | None, typer.Option(min=5, help="Most words to ask of the policy; default 40.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Of the policy; default 0.7.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over a step's answers; default 3.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Default 0.0005.")] = None,
    kl_weight: Annotated[float | None, typer.Option(min=0, help="Price of leaving the base model.")] = None,
    target_kl: Annotated[float | None, typer.Option(help="How far one step may move the policy.")] = None,
    trace: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="λ of the advantages; 1: all tokens share the reward; default .95."),
    ] = None,
    rank: Annotated[int | None, typer.Option(min=1, help="Of the adapters; default 8.")] = None,
    layers: Annotated[int | None, typer.Option(min=1, help="Upper layers with adapters; default half.")] = None,
    judge_pairs: Annotated[int, typer.Option(min=20, help="Labelled pairs to examine the judge on.")] = 400,
    reserve: Annotated[
        float, typer.Option(min=0, max=0.9, help="The judge learns from this share that all models left to it.")
    ] = 0.0,
    judge_dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    judge_price: PriceOption = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Most US dollars to spend on judging; needs --judge-price.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the training; seeds of one reward model are averaged.")] = 0,
    server: Annotated[
        str, typer.Option(help="verl: where `prbench serve` listens.", metavar="URL")
    ] = "http://127.0.0.1:8000",
    format: FormatOption = Format.table,
) -> None:
    """Train a policy with each reward model, and see what its answers to questions it has never met are worth."""
    posts = 0 if people and posts is None else posts  # a policy of one's own need not be told whose it is
    given = locals()
    from prbench.studies.best_of_n import parse_model
    from prbench.studies.ppo import PPOConfig, PPOStudyConfig

    options = PPOConfig.typed(**settings_of(PPOConfig, given))
    settings = PPOStudyConfig.of(
        **settings_of(PPOStudyConfig, given)
        | {"judge": judge or "", "judge_options": {"dtype": judge_dtype, "price": read_price(judge_price)}},
        options=options,
    )
    models = [parse_model(text) for text in reward or ()]
    if engine is PPOEngine.verl:
        from prbench.studies.ppo.verl import write_verl

        typer.echo(write_verl(settings, models, out, server=server))
        return
    from prbench.studies.ppo.recipe import ppo_study

    _show(ppo_study(settings, models, out, train_only=train_only, max_cost_usd=max_cost), out, format)


def _show(found: "PPOStudy | None", out: Path, format: Format) -> None:
    import json
    from typing import cast

    from prbench import show
    from prbench.studies.ppo.policy_tables import ppo_tables

    if found is None:
        return
    typer.echo(
        json.dumps(found.to_json(), ensure_ascii=False, indent=2, allow_nan=False)
        if format is Format.json
        else show.render(ppo_tables(found), cast(show.Format, format.value))
    )
    print(f"\nwritten: {out / 'study.json'}", file=sys.stderr)
