"""The check that a prompt is not blind: what decides must reach the model.

Two views that differ in one thing only are rendered; if the prompts are equal, that thing never reaches the model, and
it would be measured, or would reward, as if it did not matter. Nothing is asked of the model.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from prbench.errors import TemplateError
from prbench.models import Jury, Model, Windowed, is_rater
from prbench.types import AnswerView, Channel, Context, PairView, Post

_VIEW = PairView(
    "Which tea is best before going to bed?",
    "Take chamomile.",
    "Any tea will do.",
    (Post(id="1", text="I like short answers with one clear step."),),
    ("Keeps it short",),
    "ann",
)
_CHANGED: dict[str, PairView] = {
    "question": replace(_VIEW, question="How do I mend an old wooden chair?"),
    "posts": replace(_VIEW, posts=(Post(id="2", text="Show me the numbers before you show me the reason."),)),
    "plan": replace(_VIEW, plan=("Gives the numbers first",)),
}
_OTHER = "Green tea keeps most people awake, so have it at noon."
_LONGER = replace(_VIEW, first=" ".join(["Green tea keeps most people awake."] * 8))


def check_prompts(model: Model, context: Context, template: Path | None = None, *, question: bool = True) -> None:
    """Refuse a model whose prompt does not depend on the answers, the question or what the context shows.

    Args:
        model: The model, or each juror of a jury; only its `render` is called.
        context: What it is shown of the user.
        template: The user's own template, to be named in the error.
        question: Whether it must see the question; a model in Python may judge answers by themselves.

    Raises:
        TemplateError: If one of them does not reach the model.

    Example:
        >>> from prbench.models import load_model
        >>> check_prompts(load_model("longer"), Context.parse("none"))
    """
    for one in model.jurors if isinstance(model, Jury) else (model,):
        shown = _prompt(one, _VIEW, context)
        for slot, changed in _changes(one, context, question):
            if _prompt(one, changed, context) == shown:
                raise _blind(one, slot, template)


def check_length(model: Model, context: Context, template: Path | None = None) -> None:
    """Refuse a model that measures a longer answer as no longer input: its chat template drops the answer.

    Raises:
        TemplateError: If it does.
    """
    if isinstance(model, Windowed):
        short, long = (model.length(_prompt(model, view, context)) for view in (_VIEW, _LONGER))
        if not short < long:
            raise _blind(model, "answer", template)


def _changes(model: Model, context: Context, question: bool) -> Iterator[tuple[str, PairView]]:
    if is_rater(model):
        yield "answer", replace(_VIEW, first=_OTHER)
    else:
        yield "first", replace(_VIEW, first=_OTHER)
        yield "second", replace(_VIEW, second=_OTHER)
    for slot in (*(["question"] if question else []), *sorted(context.needs)):
        yield slot, _CHANGED[slot]


def _prompt(model: Model, view: PairView, context: Context) -> Any:
    """Return the prompt that the model receives for the view under the context."""
    posts = view.posts if Channel.POSTS in context.needs else ()
    plan = view.plan if Channel.PLAN in context.needs else ()
    seen = replace(view, posts=posts, plan=plan, user=view.user if context.needs else None)
    return cast(Any, model).render(_first(seen) if is_rater(model) else seen)


def _first(view: PairView) -> AnswerView:
    return view.answers()[0]


def _blind(model: Model, slot: str, template: Path | None) -> TemplateError:
    where = f"the template {str(template)!r} of {model.card.address!r}" if template else repr(model.card.address)
    said = {"first": "first answer", "second": "second answer"}.get(slot, slot)
    return TemplateError(
        f"what {where} gives the model does not depend on the {said}: every {said} would be worth the same to it",
        hint=f"show {{{{ {slot} }}}} to the model, or leave out the contexts that need it",
    )
