"""Checks before the first request: whether a model can be served under a context at all."""

from pathlib import Path
from typing import cast

from prbench.contexts import check_length, check_prompts
from prbench.errors import ConfigError, ModelError
from prbench.models import Model, Ranker, Rater, alone, is_ranker
from prbench.types import Context


def check_servable(model: Model, context: Context, template: Path | None = None) -> Rater:
    """The model as a Rater, if it can be served under this context.

    Raises:
        ModelError: If it compares answers, and so has no reward to give.
        ConfigError: If it does not read what the context shows.
        TemplateError: If something that it must see does not reach it.

    Example:
        >>> from prbench.models import load_model
        >>> check_servable(load_model("longer"), Context.parse("none")).card.address
        'longer'
    """
    address = model.card.address
    rater = alone(model)
    if rater is None:
        raise ModelError(
            f"{address!r} compares two answers and has no reward for one",
            hint="serve a Rater: hf:…, personal:…, embed:…, or lm: and chat: with #rate; with #rank they score lists",
        )
    _check_seen(rater, context, template)
    return rater


def check_served(model: Model, context: Context, template: Path | None = None) -> Rater | Ranker:
    """The model as it is served: a Rater, or a Ranker that has scores for lists of answers only.

    Raises:
        PrbenchError: As `check_servable`.
    """
    if alone(model) is not None or not is_ranker(model):
        return check_servable(model, context, template)
    _check_seen(cast(Model, model), context, template)
    return model


def _check_seen(model: Model, context: Context, template: Path | None) -> None:
    address = model.card.address
    if missing := sorted(context.needs - model.card.reads):
        raise ConfigError(
            f"{address!r} does not read {' and '.join(missing)}, which context '{context}' would show it",
            hint="use --context none, where it sees only question and answer",
        )
    check_prompts(model, context, template)
    check_length(model, context, template)
