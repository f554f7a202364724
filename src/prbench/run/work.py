"""What there is to do: every record a run needs, the calls behind it, and what of it is known already.

All views are built and all prompts rendered before the first call, so that a pair that does not fit, a context the
suite cannot have or a cost over the limit is found while nothing is spent.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from prbench.calls import call_key
from prbench.contexts import ContextBuilder, Unfit
from prbench.errors import ContextError
from prbench.models import Jury, Model, is_rater, seated
from prbench.types import AnswerView, Context, Message, Order, Pair, PairView, Prompt, Record

Slot = tuple[str, str, str, int]
Planning = Callable[[int, int], None]
"""Hears how many of all pairs and contexts are planned."""


class RecordTask(NamedTuple):
    """One record to be made, with the keys of the calls it waits for."""

    pair: str
    context: str
    order: Order
    repeat: int
    keys: tuple[str, ...]
    shown_user: str | None
    posts: int
    dropped: tuple[str, ...]


@dataclass
class OpenWork:
    """Tasks still open, the distinct calls they need, and records that need no call."""

    tasks: list[RecordTask] = field(default_factory=list)
    calls: dict[str, AnswerView | PairView] = field(default_factory=dict)
    """By key, in the order in which they are asked. Prompts are not kept: there may be gigabytes of them."""
    unfit: list[Record] = field(default_factory=list)

    @property
    def naive_calls(self) -> int:
        """Calls that a run without sharing would make."""
        return sum(len(task.keys) for task in self.tasks)


def orders_of(model: Model, pair: Pair, *, both: bool, seed: int) -> tuple[Order, ...]:
    """The orders in which a model is shown a pair.

    Where only one is asked for, a hash of question and answers decides which answer stands first, so that it says
    nothing of the label and is the same for both halves of a mirrored couple.
    """
    if is_rater(model):
        return ("rated",)
    if both:
        return ("chosen-first", "chosen-second")
    low, high = sorted((pair.chosen, pair.rejected))
    coin = hashlib.sha256("\x00".join((str(seed), pair.question, low, high)).encode()).digest()[0] % 2
    return ("chosen-first",) if (pair.chosen == low) == (coin == 0) else ("chosen-second",)


def plan_work(
    pairs: Sequence[Pair],
    model: Model,
    contexts: Sequence[Context],
    builder: ContextBuilder,
    *,
    both_orders: bool = True,
    repeats: int = 1,
    seed: int = 0,
    done: Mapping[Slot, Record] | None = None,
    allow_unfit: bool = False,
    planning: Planning | None = None,
) -> OpenWork:
    """List the records that are missing, pair by pair, and the calls they need."""
    work = OpenWork()
    done = done or {}
    for place, context in enumerate(contexts):
        for number, pair in enumerate(_user_by_user(pairs), 1 + place * len(pairs)):
            if planning is not None:
                planning(number, len(pairs) * len(contexts))
            slots = [
                (order, repeat)
                for order in orders_of(model, pair, both=both_orders, seed=seed)
                for repeat in range(repeats)
                if (known := done.get((pair.id, str(context), order, repeat))) is None or known.status == "failed"
            ]
            if slots:
                _add(work, pair, context, slots, model, builder)
    unfit = [record for record in work.unfit if record.status == "invalid"]
    if unfit and not allow_unfit:
        first = unfit[0]
        raise ContextError(
            f"{len(unfit)} records cannot be made; first: pair {first.pair!r} in context {first.context!r}: "
            f"{first.reason}",
            hint="leave that context out, raise --window, or count such pairs as invalid with --allow-unfit",
        )
    return work


def _user_by_user(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """The same pairs, a user's together and a question's together: what shares a prefix stays close."""
    return iter(sorted(pairs, key=lambda pair: (pair.tags.get("split", ""), pair.user, pair.question, pair.id)))


def _add(
    work: OpenWork,
    pair: Pair,
    context: Context,
    slots: Sequence[tuple[Order, int]],
    model: Model,
    builder: ContextBuilder,
) -> None:
    shown = builder.show(pair, context)
    if isinstance(shown, Unfit):
        work.unfit += [
            Record(
                pair=pair.id,
                context=str(context),
                order=order,
                repeat=repeat,
                status=shown.status,
                reason=shown.reason,
            )
            for order, repeat in slots
        ]
        return
    for order, repeat in slots:
        view = shown.view.swap() if order == "chosen-second" else shown.view
        calls = {_key(model, call_view, repeat): call_view for call_view in _call_views(model, view)}
        whose = pair.user if context.name == "pairs" else view.user
        for key in sorted(calls):  # the order of asking must not tell a model which answer is the chosen one
            work.calls.setdefault(key, calls[key])
        keys = tuple(calls)
        work.tasks.append(RecordTask(pair.id, str(context), order, repeat, keys, whose, len(view.posts), shown.dropped))


def _call_views(model: Model, view: PairView) -> tuple[AnswerView | PairView, ...]:
    if isinstance(model, Jury):
        return model.seats(view)
    return view.answers() if is_rater(model) else (view,)


def _key(model: Model, view: AnswerView | PairView, repeat: int) -> str:
    asked, plain = seated(model, view)
    prompt = render(asked, plain)
    if plain.user is not None and "\0judged\0" in plain.user:  # what the model was fitted to need not be in its prompt
        prompt = Prompt((*prompt.messages, Message("judged pairs", plain.user)))
    return call_key(asked.card, prompt, repeat)


def render(model: Model, view: AnswerView | PairView) -> Prompt:
    """What the model receives for a view of its own kind."""
    return cast(Callable[[AnswerView | PairView], Prompt], model.render)(view)
