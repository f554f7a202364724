"""Open work: every record a run needs, the calls behind it, and what of it is known already.

All views are built and all prompts rendered before the first call, so that a pair that does not fit, a context the
suite cannot have or a cost over the limit is found while nothing is spent. Neither views nor prompts are kept: a view
that shows nothing of a user is made anew when its call is asked.
"""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple, cast

import numpy as np

from prbench.calls import CallKeys
from prbench.contexts import ContextBuilder, ShownView, Unfit
from prbench.data import Suite
from prbench.errors import ContextError
from prbench.models import Jury, Model, is_rater, seated
from prbench.results import Records
from prbench.stats.clusters import encode
from prbench.types import AnswerView, Context, Message, Order, Pair, PairView, Prompt, Record

View = AnswerView | PairView
Slot = tuple[str, str, str, int]
Planning = Callable[[int, int], None]
"""Function that hears how many of all pairs and contexts are planned."""

_TOLD = 64
"""Pairs after which planning is told how far it is."""
_MOST_KNOWN = 65_536
"""Keys of answers that are remembered: both halves of a couple show the same ones."""


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


class Tasks(Sequence[RecordTask]):
    """All records to be made, by column."""

    def __init__(self) -> None:
        self._columns: tuple[list[Any], ...] = tuple([] for _ in RecordTask._fields)

    def add(self, *task: Any) -> None:
        """Add one more task, given by all its fields."""
        for column, value in zip(self._columns, task, strict=True):
            column.append(value)

    def values(self, place: int) -> list[Any]:
        """All fields of a task, in their order."""
        return [column[place] for column in self._columns]

    @property
    def keys(self) -> Sequence[tuple[str, ...]]:
        """The keys that each task waits for."""
        return cast(Sequence[tuple[str, ...]], self._columns[RecordTask._fields.index("keys")])

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, place: int) -> RecordTask:  # type: ignore[override]
        return RecordTask._make(self.values(place))


class Calls(Mapping[str, View]):
    """Distinct calls by key, in the order in which they are asked; a view is made when it is asked for.

    Args:
        model: Whose views; None where nothing is asked.
        pairs: The pairs that they show.
    """

    def __init__(self, model: Model | None = None, pairs: Suite | None = None) -> None:
        self._model = model
        self._rates = model is not None and is_rater(model) and not isinstance(model, Jury)
        names = ("question", "chosen", "rejected", "turns")
        self._texts = [] if pairs is None else [pairs.column(name) for name in names]
        self._numbers: dict[str, int] = {}
        self._place, self._seat, self._swapped = array("q"), array("b"), array("b")
        self._shown: dict[int, PairView] = {}

    def add(self, key: str, place: int, seat: int, view: PairView | None = None, swapped: bool = False) -> None:
        """One more call, unless it is there: it shows a pair, and it is the so-manieth of the pair's calls.

        Without a view only the texts of the pair are shown.
        """
        number = self._numbers.setdefault(key, len(self._place))
        if number < len(self._place):
            return
        self._place.append(place)
        self._seat.append(seat)
        self._swapped.append(swapped)
        if view is not None and (view.posts or view.plan or view.user is not None):
            self._shown[number] = view

    def without(self, done: Iterable[int]) -> "Calls":
        """The calls that are not done; `done` says 1 of each that is, in their order."""
        done = bytes(done)
        if not any(done):
            return self
        part = Calls()
        part.__dict__.update(self.__dict__)
        part._numbers = dict(compress(self._numbers.items(), (not one for one in done)))
        return part

    def number(self, key: str) -> int:
        """The place of a call among all calls."""
        return self._numbers[key]

    def __getitem__(self, key: str) -> View:
        number = self._numbers[key]
        view = self._shown.get(number)
        if view is None:
            place = self._place[number]
            question, chosen, rejected, turns = [column[place] for column in self._texts]
            if self._rates:
                return AnswerView(question, rejected if self._seat[number] else chosen, turns=turns)
            view = PairView(question, chosen, rejected, turns=turns)
            view = view.swap() if self._swapped[number] else view
        return _call_views(self._model, view)[self._seat[number]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


@dataclass
class OpenWork:
    """Tasks still open, the distinct calls they need, and records that need no call."""

    calls: Calls = field(default_factory=Calls)
    tasks: Tasks = field(default_factory=Tasks)
    unfit: list[Record] = field(default_factory=list)

    @property
    def naive_calls(self) -> int:
        """Calls that a run without sharing would make."""
        return sum(map(len, self.tasks.keys))


def orders_of(model: Model, pair: Pair, *, both: bool, seed: int) -> tuple[Order, ...]:
    """The orders in which a model is shown a pair."""
    return _fixed_orders(model, both) or one_order(pair.question, pair.chosen, pair.rejected, seed)


def _fixed_orders(model: Model, both: bool) -> tuple[Order, ...]:
    """The orders in which a model is shown every pair; empty where they differ."""
    if is_rater(model):
        return ("rated",)
    return ("chosen-first", "chosen-second") if both else ()


def one_order(question: str, chosen: str, rejected: str, seed: int) -> tuple[Order, ...]:
    """The order where only one is asked for.

    A hash of question and answers decides which answer stands first, so that it says nothing of the label and is the
    same for both halves of a mirrored couple.
    """
    low, high = sorted((chosen, rejected))
    coin = hashlib.sha256("\x00".join((str(seed), question, low, high)).encode()).digest()[0] % 2
    return ("chosen-first",) if (chosen == low) == (coin == 0) else ("chosen-second",)


def plan_work(
    suite: Suite,
    model: Model,
    contexts: Sequence[Context],
    builder: ContextBuilder,
    *,
    both_orders: bool = True,
    repeats: int = 1,
    seed: int = 0,
    done: Records | None = None,
    allow_unfit: bool = False,
    planning: Planning | None = None,
) -> OpenWork:
    """List the records that are missing, pair by pair, and the calls they need."""
    planner = _WorkPlanner(suite, model, builder)
    work, done = planner.work, done or Records()
    total, number = len(suite) * len(contexts), 0
    orders = _fixed_orders(model, both_orders)
    always = [(order, repeat) for order in orders for repeat in range(repeats)] if not len(done) else []
    """Orders and repeats of each pair, where they are the same of all."""
    texts = [suite.column(name) for name in ("id", "question", "chosen", "rejected")]
    for context in contexts:
        name = str(context)
        for place in _user_by_user(suite):
            number += 1
            if planning is not None and (number % _TOLD == 0 or number == total):
                planning(number, total)
            slots = always
            if not slots:
                pair, question, chosen, rejected = [column[place] for column in texts]
                slots = [
                    (order, repeat)
                    for order in orders or one_order(question, chosen, rejected, seed)
                    for repeat in range(repeats)
                    if done.status((pair, name, order, repeat)) in (None, "failed")
                ]
            if slots:
                planner.add(place, context, name, slots)
    unfit = [record for record in work.unfit if record.status == "invalid"]
    if unfit and not allow_unfit:
        first = unfit[0]
        raise ContextError(
            f"{len(unfit)} records cannot be made; first: pair {first.pair!r} in context {first.context!r}: "
            f"{first.reason}",
            hint="leave that context out, raise --window, or count such pairs as invalid with --allow-unfit",
        )
    return work


def _user_by_user(suite: Suite) -> list[int]:
    """Places of all pairs, a user's together and a question's together: what shares a prefix stays close."""
    split = [name or "" for name in suite.tag("split")]
    labels = (suite.column("id"), suite.column("question"), suite.column("user"), split)
    order: list[int] = np.lexsort([encode(column)[0] for column in labels]).tolist()
    return order


class _WorkPlanner:
    """Puts together the open work, pair by pair; a pair of which only the texts are shown needs no object."""

    def __init__(self, suite: Suite, model: Model, builder: ContextBuilder) -> None:
        self._suite, self._model, self._builder = suite, model, builder
        self._keys = _Keys(model)
        self._ids, self._users = suite.column("id"), suite.column("user")
        self._texts = [suite.column(name) for name in ("question", "chosen", "rejected")]
        self._turns = suite.column("turns")
        self._known: dict[tuple[str, str], str] = {}
        self._plain = is_rater(model) and not isinstance(model, Jury) and builder.unlimited
        self.work = OpenWork(Calls(model, suite))

    def add(self, place: int, context: Context, name: str, slots: Sequence[tuple[Order, int]]) -> None:
        """Add the records of a pair in a context that are missing."""
        if self._plain and not context.kind.source:
            self._add_texts(place, name, slots)
            return
        shown, pair = self._show(place, context), self._ids[place]
        if isinstance(shown, Unfit):
            said = {"status": shown.status, "reason": shown.reason}
            self.work.unfit += [
                Record(pair=pair, context=name, order=order, repeat=repeat, **said) for order, repeat in slots
            ]
            return
        whose = self._users[place] if context.name == "pairs" else shown.view.user
        for order, repeat in slots:
            swapped = order == "chosen-second"
            view = shown.view.swap() if swapped else shown.view
            seats = {self._keys.of(one, repeat): seat for seat, one in enumerate(_call_views(self._model, view))}
            for key in sorted(seats):  # the order of asking must not tell a model which answer is the chosen one
                self.work.calls.add(key, place, seats[key], view, swapped)
            asked = tuple(seats)
            self.work.tasks.add(pair, name, order, repeat, asked, whose, len(view.posts), shown.dropped)

    def _add_texts(self, place: int, name: str, slots: Sequence[tuple[Order, int]]) -> None:
        """Add the records of a pair of which a Rater is shown nothing but the texts, and which always fits."""
        question, chosen, rejected = [column[place] for column in self._texts]
        calls = self.work.calls
        for order, repeat in slots:
            one, two = self._key(place, question, chosen, repeat), self._key(place, question, rejected, repeat)
            calls.add(*((one, place, 0) if one <= two else (two, place, 1)))
            calls.add(*((two, place, 1) if one <= two else (one, place, 0)))
            asked = (one, two) if one != two else (one,)
            self.work.tasks.add(self._ids[place], name, order, repeat, asked, None, 0, ())

    def _key(self, place: int, question: str, answer: str, repeat: int) -> str:
        """The key of a call that shows nothing but a question and an answer."""
        turns = self._turns[place]
        if repeat or turns:
            return self._keys.of(AnswerView(question, answer, turns=turns), repeat)
        if (key := self._known.get((question, answer))) is None:
            key = self._keys.of(AnswerView(question, answer), repeat)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[question, answer] = key
        return key

    def _show(self, place: int, context: Context) -> ShownView | Unfit:
        if context.kind.source:
            return self._builder.show(self._suite[place], context)
        question, chosen, rejected = [column[place] for column in self._texts]
        return self._builder.fit(PairView(question, chosen, rejected, turns=self._turns[place]))


def _call_views(model: Model | None, view: PairView) -> Sequence[View]:
    if isinstance(model, Jury):
        return model.seats(view)
    return view.answers() if model is not None and is_rater(model) else (view,)


class _Keys:
    """Keys of calls to a model, or to the jurors of a jury."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._by_model: dict[int, CallKeys] = {}

    def of(self, view: View, repeat: int) -> str:
        """The key under which the answer to a view is kept."""
        asked, plain = seated(self._model, view)
        prompt = render(asked, plain)
        if plain.user is not None and "\0judged\0" in plain.user:  # what a model was fitted to may not be in its prompt
            prompt = Prompt((*prompt.messages, Message("judged pairs", plain.user)))
        if id(asked) not in self._by_model:
            self._by_model[id(asked)] = CallKeys(asked.card)
        return self._by_model[id(asked)].of(prompt, repeat)


def render(model: Model, view: View) -> Prompt:
    """Return the prompt that the model receives for a view of its own kind."""
    return cast(Callable[[View], Prompt], model.render)(view)
