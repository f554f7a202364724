"""Checks before the first request: a model that cannot see the answer would pay every answer the same.

Two views that differ in one thing only are rendered; if the prompts are equal, that thing never reaches the model. For
models that measure their prompts, a longer answer must also make a longer input: a tokenizer's chat template may drop
the answer that the prompt still holds.
"""

from dataclasses import replace
from pathlib import Path

from prbench.errors import ConfigError, ModelError, TemplateError
from prbench.models import Model, Rater, Windowed, alone
from prbench.types import AnswerView, Channel, Context, Post

_VIEW = AnswerView(
    "Which tea is best before going to bed?",
    "Take chamomile.",
    (Post(id="1", text="I like short answers with one clear step."),),
    ("Keeps it short",),
    "ann",
)
_CHANGED: dict[str, AnswerView] = {
    "answer": replace(_VIEW, answer="Green tea keeps most people awake, so have it at noon."),
    "question": replace(_VIEW, question="How do I mend an old wooden chair?"),
    "posts": replace(_VIEW, posts=(Post(id="2", text="Show me the numbers before you show me the reason."),)),
    "plan": replace(_VIEW, plan=("Gives the numbers first",)),
}
_LONGER = replace(_VIEW, answer=" ".join(["Green tea keeps most people awake."] * 8))


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
            hint="serve a Rater: for example hf:…, personal:…, embed:…, or lm: and chat: with #rate",
        )
    if missing := sorted(context.needs - model.card.reads):
        raise ConfigError(
            f"{address!r} does not read {' and '.join(missing)}, which context '{context}' would show it",
            hint="use --context none, where it sees only question and answer",
        )
    lint(rater, context, template)
    return rater


def lint(model: Rater, context: Context, template: Path | None = None) -> None:
    """Refuse a model whose prompt does not depend on what decides."""
    for slot in ("answer", "question", *sorted(context.needs)):
        if model.render(_seen(_VIEW, context)) == model.render(_seen(_CHANGED[slot], context)):
            raise _blind(model, slot, template)
    if isinstance(model, Windowed):
        short, long = (model.length(model.render(_seen(view, context))) for view in (_VIEW, _LONGER))
        if not short < long:
            raise _blind(model, "answer", template)


def _seen(view: AnswerView, context: Context) -> AnswerView:
    """The view as the context would have it."""
    posts = view.posts if Channel.POSTS in context.needs else ()
    plan = view.plan if Channel.PLAN in context.needs else ()
    return replace(view, posts=posts, plan=plan, user=view.user if context.needs else None)


def _blind(model: Rater, slot: str, template: Path | None) -> TemplateError:
    where = f"the template {str(template)!r} of {model.card.address!r}" if template else repr(model.card.address)
    return TemplateError(
        f"what {where} gives the model does not depend on the {slot}: every {slot} would get the same reward",
        hint=f"show {{{{ {slot} }}}} to the model; `prbench run` would measure it just as blind",
    )
