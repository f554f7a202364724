"""`prbench train`: personalized reward models, one method at a time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from prbench.models.personal.artifact import PersonalRecord
    from prbench.train.encoder import TuneEpoch
    from prbench.train.method_training import Epoch
    from prbench.train.planner_training import Look

EXIT_INTERRUPTED = 130

_TAKEN = {
    "encoder": frozenset({"epochs", "batch", "learning_rate", "passages"}),
    "contrast": frozenset({"also", "passages"}),
    "planner": frozenset({"steps", "batch", "learning_rate"}),
    "cross": frozenset(
        {"epochs", "batch", "learning_rate", "weight_decay", "patience", "post_window", "pairs_per_epoch"}
    ),
}
"""Options of the trainings that are not a method over vectors; those take all but the ones of these alone."""


def train(
    method: Annotated[
        str, typer.Argument(help="bt, user-bt, vpl, pal, lore, gpo, stances, cross, contrast; encoder; planner.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the model; an interrupted training continues.")],
    suite: Annotated[str, typer.Option(help="Name or path.")] = "mirror",
    split: Annotated[str, typer.Option(help="What is learned from.")] = "train",
    validation: Annotated[str, typer.Option(help="What early stopping looks at.")] = "validation",
    people: Annotated[
        int | None, typer.Option(min=1, help="Learn from so many couples of the split by seed; fewer are among more.")
    ] = None,
    passages: Annotated[
        float | None, typer.Option(min=0, max=1, help="contrast, encoder: share of the stance passages; default all.")
    ] = None,
    flipped: Annotated[
        float, typer.Option(min=0, max=0.5, help="Share of labels with their two sides exchanged, for studies.")
    ] = 0.0,
    reserve: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of couples, questions and passages left to judges.")
    ] = 0.0,
    encoder: Annotated[str, typer.Option(help="Frozen encoder: embed:, lm: or hf:NAME.")] = "embed:minilm",
    policy: Annotated[str, typer.Option(help="planner: the language model to start from.")] = "lm:smollm2",
    steps: Annotated[int | None, typer.Option(min=1, help="planner: how many.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1)] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Pairs in a step.")] = None,
    learning_rate: Annotated[float | None, typer.Option()] = None,
    weight_decay: Annotated[float | None, typer.Option()] = None,
    patience: Annotated[int | None, typer.Option(min=1, help="Epochs without a better validation.")] = None,
    shots: Annotated[int | None, typer.Option(min=0, help="Most labelled pairs shown in an example.")] = None,
    post_window: Annotated[int | None, typer.Option(min=0, help="Sentences in a piece of a post; 0: whole.")] = None,
    answer_window: Annotated[int | None, typer.Option(min=0, help="Sentences in a piece of an answer.")] = None,
    aspects: Annotated[bool, typer.Option("--aspects", help="Show the split's rubric aspects in training.")] = False,
    also: Annotated[str | None, typer.Option(help="Another suite to learn from: general quality.")] = None,
    pairs_per_epoch: Annotated[int | None, typer.Option(min=1, help="cross: pairs drawn for an epoch.")] = None,
    setting: Annotated[list[str] | None, typer.Option(help="NAME=VALUE of the method itself; repeatable.")] = None,
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """Train a personalized reward model; evaluate it with `prbench run --model personal:DIR`."""
    if validation == "test":
        typer.echo("warning: early stopping looks at test, so what is measured there afterwards flatters", err=True)
    given: dict[str, Any] = {
        "epochs": epochs,
        "batch": batch,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "patience": patience,
        "shots": shots,
        "post_window": post_window,
        "answer_window": answer_window,
    }
    own = {"aspects": aspects or None, "also": also, "steps": steps, "pairs_per_epoch": pairs_per_epoch}
    _refuse(method, given | own | {"passages": passages})
    given |= {"settings": dict(map(_setting, setting or [])), "encoder": encoder, "policy": policy, "seed": seed}
    given |= {"aspects": aspects, "also": also, "steps": steps, "pairs_per_epoch": pairs_per_epoch}
    try:
        portion = _portion(people=people, passages=passages, flipped=flipped, reserve=reserve)
        _train(method, given, out, suite=suite, split=split, validation=validation, portion=portion)
    except KeyboardInterrupt:
        typer.echo(f"\nstopped; the same command continues {out} after its last whole epoch", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _portion(**given: Any) -> Any:
    from prbench.data import Portion

    return Portion.model_validate({name: value for name, value in given.items() if value is not None})


def _train(method: str, given: dict[str, Any], out: Path, **place: Any) -> None:
    if method == "encoder":
        own = _own(given, "epochs", "batch", "learning_rate", "seed") | {"base": given["encoder"]}
        _tune(own, out, **place)
    elif method == "planner":
        _planner(_own(given, "policy", "steps", "batch", "learning_rate", "seed"), out, **place)
    elif method == "contrast":
        _say(_contrast(_own(given, "encoder", "also", "seed"), out, **place), out)
    elif method == "cross":
        taken = ("epochs", "batch", "learning_rate", "seed", "weight_decay", "patience", "post_window")
        own = _own(given, *taken, "pairs_per_epoch") | {"base": given["encoder"]}
        _say(_cross(own, out, **place), out)
    else:
        from prbench.train import TrainConfig
        from prbench.train import train as run

        own = {name: value for name, value in given.items() if name not in ("policy", "steps", "pairs_per_epoch")}
        _say(run(TrainConfig.typed(**own, method=method), out, listener=_tell, **place), out)


def _own(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """The options that a training takes, and its settings among them."""
    settings: dict[str, Any] = given["settings"]
    return {name: given[name] for name in names} | settings


def _refuse(method: str, given: dict[str, Any]) -> None:
    """Refuse an unknown method, and an option that a method would not look at: it would go unheard."""
    from prbench.errors import ConfigError, did_you_mean
    from prbench.models.personal.method import methods

    known = [*methods(), *_TAKEN]
    if method not in known:
        raise ConfigError(f"unknown method {method!r}", hint=did_you_mean(method, known))
    taken = _TAKEN.get(method, frozenset(given) - {"steps", "pairs_per_epoch", "passages"})
    for name, value in given.items():
        if value is not None and name not in taken:
            raise ConfigError(
                f"--{name.replace('_', '-')} means nothing to {method}",
                hint="leave it out; what a method takes itself is given as --setting NAME=VALUE",
            )


def _say(record: "PersonalRecord", out: Path) -> None:
    found = record.training
    epoch = f" (epoch {found.validation['epoch']})" if "epoch" in found.validation else ""
    typer.echo(
        f"{record.method}: {found.pairs:,} pairs of {found.users} users; validation accuracy "
        f"{100 * found.validation['accuracy']:.1f} % on {found.validation['pairs']:,} pairs"
        f"{epoch}\nmodel: {out}    (prbench run --model personal:{out})"
    )


def _cross(given: dict[str, Any], out: Path, **place: Any) -> "PersonalRecord":
    from prbench.train.cross import CrossConfig, train_cross

    options = CrossConfig.typed(**given)
    return train_cross(options, out, listener=_tell, **place)


def _contrast(given: dict[str, Any], out: Path, **place: Any) -> "PersonalRecord":
    from prbench.train.contrast import ContrastConfig, train_contrast

    options = ContrastConfig.typed(**given)
    return train_contrast(options, out, tell=lambda line: typer.echo(line, err=True), **place)


def _tune(given: dict[str, Any], out: Path, **place: Any) -> None:
    from prbench.train.encoder import EncoderConfig
    from prbench.train.tune import tune

    options = EncoderConfig.typed(**given)
    tuning = tune(options, out, listener=_tell_tuning, **place)
    last = tuning.history[-1].accuracy if tuning.history else None
    told = "" if last is None else f"; tells {100 * last:.1f} % of the held-out answers' stances"
    use = f"stances --encoder 'embed:{out}#stances'" if options.stances else f"contrast --setting answers=embed:{out}"
    typer.echo(f"encoder: {out}{told}    (prbench train {use} -o DIR)")


def _planner(given: dict[str, Any], out: Path, **place: Any) -> None:
    from prbench.train.planner import train_planner
    from prbench.train.planner_training import PlannerConfig

    options = PlannerConfig.typed(**given)
    record = train_planner(options, out, listener=_tell_planner, **place)
    typer.echo(
        f"planner: {record.examples:,} questions of {record.users} users; validation loss "
        f"{record.looks[0].validation_loss:.3f} → {record.best.validation_loss:.3f} per token on "
        f"{record.validation_examples} questions of other users (step {record.best.step})\n"
        f"planner: {out}    (prbench plan --model lm:{out}, prbench run --context plan --planner lm:{out})"
    )


def _tell_planner(look: "Look") -> None:
    loss = "" if look.loss is None else f"  loss {look.loss:.4f}"
    best = "  best" if look.best else ""
    typer.echo(f"step {look.step:5}{loss}  validation loss {look.validation_loss:.4f}{best}", err=True)


def _tell_tuning(epoch: "TuneEpoch") -> None:
    accuracy = "" if epoch.accuracy is None else f"  held-out answers {100 * epoch.accuracy:5.1f} %"
    typer.echo(f"epoch {epoch.number:3}  loss {epoch.loss:.4f}{accuracy}", err=True)


def _tell(epoch: "Epoch") -> None:
    typer.echo(
        f"epoch {epoch.number:3}  loss {epoch.loss:.4f}  validation {100 * epoch.validation_accuracy:5.1f} %, "
        f"loss {epoch.validation_loss:.4f}{'  best' if epoch.best else ''}",
        err=True,
    )


def _setting(text: str) -> tuple[str, Any]:
    import json

    from prbench.errors import ConfigError

    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--setting {text!r} is not NAME=VALUE", hint="for example --setting stances=32")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
