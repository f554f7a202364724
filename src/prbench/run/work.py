"""What there is to do: every record a run needs, the calls behind it, and what of it is known already.

All views are built and all prompts rendered before the first call, so that a pair that does not fit, a context the
suite cannot have or a cost over the limit is found while nothing is spent.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from prbench.contexts import ContextBuilder, Unfit, is_rater
from prbench.errors import ContextError
from prbench.models import Model
from prbench.run.calls import call_key
from prbench.types import AnswerView, Context, Order, Pair, PairView, Prompt, Record

Slot = tuple[str, str, str, int]


class Task(NamedTuple):
    """One record to be made, with the keys of the calls it waits for."""

    pair: str
    context: str
    order: Order
    repeat: int
    keys: tuple[str, ...]
    shown_user: str | None
    posts: int
    dropped: tuple[str, ...]


class Call(NamedTuple):
    """One question to the model."""

    view: AnswerView | PairView
    prompt: Prompt


@dataclass
class Work:
    """Tasks still open, the distinct calls they need, and records that need no call."""

    tasks: list[Task] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    unfit: list[Record] = field(default_factory=list)

    @property
    def naive_calls(self) -> int:
        """Calls that a run without sharing would make."""
        return sum(len(task.keys) for task in self.tasks)


def orders_of(model: Model, both: bool) -> tuple[Order, ...]:
    """The orders in which a model is shown a pair."""
    if is_rater(model):
        return ("rated",)
    return ("chosen-first", "chosen-second") if both else ("chosen-first",)


def plan_work(
    pairs: Sequence[Pair],
    model: Model,
    contexts: Sequence[Context],
    builder: ContextBuilder,
    *,
    both_orders: bool = True,
    repeats: int = 1,
    done: Mapping[Slot, Record] | None = None,
    allow_unfit: bool = False,
) -> Work:
    """List the records that are missing, pair by pair, and the calls they need."""
    work = Work()
    done = done or {}
    orders = orders_of(model, both_orders)
    for context in contexts:
        for pair in _user_by_user(pairs):
            slots = [
                (order, repeat)
                for order in orders
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
    work: Work,
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
        keys = tuple(_call(work, model, call_view, repeat) for call_view in _call_views(model, view))
        work.tasks.append(Task(pair.id, str(context), order, repeat, keys, view.user, len(view.posts), shown.dropped))


def _call_views(model: Model, view: PairView) -> tuple[AnswerView | PairView, ...]:
    return view.answers() if is_rater(model) else (view,)


def _call(work: Work, model: Model, view: AnswerView | PairView, repeat: int) -> str:
    render = cast(Callable[[AnswerView | PairView], Prompt], model.render)
    prompt = render(view)
    key = call_key(model.card, prompt, repeat)
    work.calls.setdefault(key, Call(view, prompt))
    return key
