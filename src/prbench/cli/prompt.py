"""`prbench prompt PAIR`: exactly what a model is shown for one pair, how long it is, and what had to be left out."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prbench.cli.options import (
    ColumnOption,
    RankerOption,
    SplitOption,
    SuiteOption,
    TemplateOption,
    WindowOption,
    read_columns,
    whole,
)

if TYPE_CHECKING:
    from prbench.run import Session
    from prbench.types import Pair, PairView, Prompt


class Order(StrEnum):
    """Answer that a model that compares is shown first."""

    chosen_first = "chosen-first"
    chosen_second = "chosen-second"


class PromptFormat(StrEnum):
    """Formats in which a prompt is printed."""

    text = "text"
    json = "json"


def prompt(
    pair: Annotated[str, typer.Argument(help="Id of a pair, or its number in the suite, from 1.", metavar="PAIR")],
    model: Annotated[str, typer.Option("--model", "-m", help="Model address, as for `prbench run`.")],
    context: Annotated[str, typer.Option("--context", "-c", help="One context: none, profile, other, …")] = "profile",
    suite: SuiteOption = "mirror",
    split: SplitOption = "test",
    order: Annotated[Order, typer.Option(help="For models that compare.")] = Order.chosen_first,
    raw: Annotated[bool, typer.Option("--raw", help="One text with the chat template's own tokens.")] = False,
    template: TemplateOption = None,
    plans: Annotated[Path | None, typer.Option(help="A file of `prbench plan`, for contexts with a plan.")] = None,
    ranker: RankerOption = "bm25",
    seed: Annotated[int, typer.Option(help="Of the wrong users shown.")] = 0,
    window: WindowOption = None,
    column: ColumnOption = None,
    format: Annotated[PromptFormat, typer.Option("--format", help="text, or json.")] = PromptFormat.text,
) -> None:
    """Print the exact prompt that a model gets for a pair; asks the model nothing."""
    from prbench.config import RunConfig
    from prbench.errors import ModelError
    from prbench.models import Replay
    from prbench.run import Session

    session = Session(
        RunConfig.of(
            suite=suite,
            split=whole(split),
            model=model,
            contexts=[context],
            ranker=ranker,
            plans=plans,
            seed=seed,
            columns=read_columns(column),
            options={"template": template, "window": window, "seed": seed},
        )
    )
    if isinstance(session.model, Replay):
        raise ModelError(f"{model!r} is not asked: its answers are stored", hint="name a model that is asked")
    shown = _shown(session, _named(session, pair), order.value, raw)
    if format == PromptFormat.json:
        typer.echo(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        typer.echo("\n".join(_lines(shown)))


def _named(session: "Session", name: str) -> "Pair":
    """The pair with this id, else with this number."""
    from prbench.errors import ConfigError, did_you_mean

    for pair in session.suite:
        if pair.id == name:
            return pair
    if name.isdecimal() and 1 <= int(name) <= len(session.suite):
        return list(session.suite)[int(name) - 1]
    where = f"suite {session.suite.record.name!r}, split {session.config.split or 'all'}"
    hint = (
        f"numbers go from 1 to {len(session.suite):,}"
        if name.isdecimal()
        else did_you_mean(name, [pair.id for pair in session.suite][:1000])
    )
    raise ConfigError(f"there is no pair {name!r} in {where}", hint=hint[:200])


def _shown(session: "Session", pair: "Pair", order: str, raw: bool) -> dict[str, Any]:
    from prbench.contexts import Unfit, render_all
    from prbench.errors import ContextError
    from prbench.models import is_rater

    (context,) = session.contexts
    found = session.builder().show(pair, context)
    if isinstance(found, Unfit):
        raise ContextError(
            f"pair {pair.id!r} cannot be shown under {context}: {found.reason}",
            hint="another --context, a larger --window, or --plans for contexts with a plan",
        )
    rates = is_rater(session.model)
    view: PairView = found.view.swap() if order == "chosen-second" and not rates else found.view
    names = ["the chosen answer", "the rejected answer"] if rates else [f"both answers, {order}"]
    prompts = render_all(session.model, view)
    return {
        "pair": pair.id,
        "context": str(context),
        "model": session.model.card.address,
        "reads": sorted(channel.value for channel in session.model.card.reads),
        "shown_user": view.user,
        "posts_shown": [post.id for post in view.posts],
        "posts_dropped": list(found.dropped),
        "window": getattr(session.model, "window", None),
        "prompts": [_prompt(session.model, name, one, raw) for name, one in zip(names, prompts, strict=True)],
    }


def _prompt(model: Any, name: str, prompt: "Prompt", raw: bool) -> dict[str, Any]:
    from prbench.errors import ConfigError
    from prbench.models import Windowed

    if raw and not hasattr(model, "written_out"):
        raise ConfigError(
            f"{model.card.address!r} has no tokenizer here, so there is no raw text", hint="without --raw"
        )
    return {
        "shows": name,
        "tokens": model.length(prompt) if isinstance(model, Windowed) else None,
        "tokens_counted": hasattr(model, "written_out"),
        **({"text": model.written_out(prompt)} if raw else {"messages": [one._asdict() for one in prompt.messages]}),
    }


def _lines(shown: dict[str, Any]) -> list[str]:
    posts, dropped = shown["posts_shown"], shown["posts_dropped"]
    left_out = f"; left out to fit the window: {', '.join(dropped)}" if dropped else ""
    whose = f" of {shown['shown_user']}" if shown["shown_user"] else ""
    lines = [
        f"pair     {shown['pair']}",
        f"context  {shown['context']}: {len(posts)} posts{whose}{left_out}",
        f"model    {shown['model']} (reads {', '.join(['question and answer', *shown['reads']])})",
    ]
    for prompt in shown["prompts"]:
        length = ""
        if prompt["tokens"] is not None:
            window = f", window {shown['window']:,}" if shown["window"] else ""
            length = f": {'' if prompt['tokens_counted'] else 'about '}{prompt['tokens']:,} tokens{window}"
        lines += ["", f"=== {prompt['shows']}{length} ==="]
        if "text" in prompt:
            lines.append(prompt["text"])
        for message in prompt.get("messages", ()):
            lines += [f"--- {message['role']} ---", message["content"]]
    return lines
