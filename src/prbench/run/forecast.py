"""Looking before spending: pairs, calls, tokens, time or cost. Asks the model nothing and spends nothing."""

import itertools
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from prbench.calls import CallCache
from prbench.config import Price
from prbench.contexts import Unfit
from prbench.models import Foreseeable, Jury, Model, Replay, Sized, TextByText, Windowed, is_hosted, is_rater, seated
from prbench.results import Records
from prbench.run.session import Session
from prbench.run.work import OpenWork, Planning, render
from prbench.types import AnswerView, Frozen, PairView, Prompt

Number = TypeVar("Number", int, float)

_TYPICAL_REPLY_TOKENS = 200
"""Typical length of a judge's text before its verdict, for an estimate of cost; the true number is only known
afterwards."""
_BYTES_PER_TOKEN = 4.0
_BLOCKS, _BLOCK = 8, 64
"""Calls that are looked at, where there are more: so many blocks of so many neighbours."""


class Forecast(Frozen):
    """Estimate of what a run would take from here."""

    pairs: int
    contexts: tuple[str, ...]
    unsupported: tuple[str, ...]
    records_open: int
    records_done: int
    calls_without_sharing: int
    distinct_calls: int
    calls_in_cache: int
    calls_to_make: int
    plans_to_make: int
    tokens_in: int
    """Tokens of the calls still to make; counted by the model's own tokenizer where it has one, else estimated."""
    tokens_counted: bool
    calls_sampled: int
    """Calls whose tokens were counted; the others are taken to be like them."""
    tokens_computed: int | None
    """Tokens left of them for a local model that computes shared beginnings or texts once; None for any other."""
    cost_usd: float | None
    """Cost of the calls; None where the model has no price."""
    time_s: float | None
    """Seconds of the calls; None where there is nothing to estimate them from."""


def forecast(session: Session, done: Records, cache: CallCache | None, planning: Planning | None = None) -> Forecast:
    """Estimate what is still to be done."""
    work = OpenWork() if isinstance(session.model, Replay) else session.work(done, planning)
    cached = cache.find(list(work.calls)) if cache is not None and session.model.card.reusable else {}
    views = [view for key, view in work.calls.items() if key not in cached]
    shares = _shares(session.model, views)
    tokens = sum(share.tokens for share in shares)
    plans, plan_cost = _plans(session)
    cost = _cost(shares)
    return Forecast(
        pairs=len(session.suite),
        contexts=tuple(map(str, session.contexts)),
        unsupported=tuple(map(str, session.unsupported)),
        records_open=len(work.tasks) + len(work.unfit),
        records_done=len(done),
        calls_without_sharing=work.naive_calls,
        distinct_calls=len(work.calls),
        calls_in_cache=len(cached),
        calls_to_make=len(views),
        plans_to_make=plans,
        tokens_in=tokens,
        tokens_counted=all(share.sample.counted for share in shares),
        calls_sampled=sum(share.sample.calls for share in shares),
        tokens_computed=_all(share.computed for share in shares),
        cost_usd=None if cost is None or plan_cost is None else cost + plan_cost,
        time_s=_all(share.seconds for share in shares),
    )


def _plans(session: Session) -> tuple[int, float | None]:
    """Plans to write, and what they cost together with the calls that will read them."""
    planner = session.planner
    if planner is None:
        return 0, 0.0
    prompts = [
        prompt
        for key, prompt in planner.requests(session.suite).items()
        if key not in session.plans and not isinstance(prompt, Unfit)
    ]
    letters = sum(_letters(prompt) for prompt in prompts)
    price = planner.card.price
    if price is None:
        return len(prompts), None
    readers = [context for context in session.contexts if context.name in ("plan", "profile+plan")]
    # Calls that show a plan cannot be rendered before it is written: they are estimated by the plans' own prompts.
    reading = len(session.suite) * len(readers) * (1 if is_rater(session.model) else 2)
    mean = letters / max(len(prompts), 1) / _BYTES_PER_TOKEN
    return len(prompts), price.cost_usd(
        len(prompts) * mean + reading * mean, (len(prompts) + reading) * _TYPICAL_REPLY_TOKENS
    )


class _Share(NamedTuple):
    """Calls of one model: the model of a run, or each juror of a jury."""

    model: Any
    calls: int
    sample: "_Sample"

    @property
    def tokens(self) -> int:
        """Tokens of all its calls, from those that were measured."""
        return round(self.sample.tokens / max(self.sample.calls, 1) * self.calls)

    @property
    def computed(self) -> int | None:
        """Tokens of these that are computed; None for a model that runs elsewhere."""
        return None if self.sample.fresh is None else round(self.sample.fresh * self.tokens)

    @property
    def seconds(self) -> float | None:
        """Seconds of these calls; None for a model that runs elsewhere."""
        return _time(self.model, self.sample, self.tokens, self.calls)


def _all(parts: Iterable[Number | None]) -> Number | None:
    """The sum of all parts; None where one is not known."""
    known = list(parts)
    if any(part is None for part in known):
        return None
    return sum((part for part in known if part is not None), start=0)


def _shares(model: Model, views: Sequence[AnswerView | PairView]) -> list[_Share]:
    asked: dict[int, list[AnswerView | PairView]] = defaultdict(list)
    models: Sequence[Any] = model.jurors if isinstance(model, Jury) else (model,)
    for view in views:
        one, plain = seated(model, view)
        asked[next(number for number, known in enumerate(models) if known is one)].append(plain)
    return [
        _Share(one, len(asked[number]), _sampled(one, asked[number]))
        for number, one in enumerate(models)
        if asked[number] or len(models) == 1
    ]


class _Sample(NamedTuple):
    """Size and time of some of the calls."""

    calls: int
    tokens: int
    counted: bool
    """Whether the model's own tokenizer counted the tokens; else they are estimated from letters."""
    fresh: float | None
    """The part of the tokens that a local model computes, where it computes what calls share only once."""
    seconds: float
    """Seconds of rendering and tokenising them."""


def _sampled(model: Any, views: Sequence[AnswerView | PairView]) -> _Sample:
    """Measure some calls in blocks of neighbours, which share as much as they will in the run."""
    blocks = _blocks(len(views))
    started = time.perf_counter()
    rendered = [[render(model, views[index]) for index in block] for block in blocks]
    prompts = [prompt for block in rendered for prompt in block]
    if isinstance(model, Windowed):
        tokens, counted = sum(map(model.length, prompts)), isinstance(model, Sized)
    else:
        tokens, counted = round(sum(map(_letters, prompts)) / _BYTES_PER_TOKEN), False
    seconds = time.perf_counter() - started
    fresh: list[float]
    match "texts" if isinstance(model, TextByText) else getattr(model, "computes_once", None):
        case "prefixes":
            fresh = [_letters_after_neighbour(block) for block in rendered]
        case "texts":
            texts = model.fresh_texts(render(model, view) for view in views)
            fresh = [sum(map(len, texts)) * len(prompts) / max(len(views), 1)]
        case "nothing":
            fresh = [sum(len(_text(prompt)) for prompt in prompts)]
        case _:
            return _Sample(len(prompts), tokens, counted, None, seconds)
    share = sum(fresh) / max(sum(len(_text(prompt)) for prompt in prompts), 1)
    return _Sample(len(prompts), tokens, counted, min(share, 1.0), seconds)


def _blocks(calls: int) -> list[range]:
    """All calls where they are few, else blocks of neighbours at equal distances.

    Example:
        >>> _blocks(100), len(_blocks(10_000)), _blocks(10_000)[-1]
        ([range(0, 100)], 8, range(9936, 10000))
    """
    if calls <= _BLOCKS * _BLOCK:
        return [range(calls)]
    starts = (round(number * (calls - _BLOCK) / (_BLOCKS - 1)) for number in range(_BLOCKS))
    return [range(start, start + _BLOCK) for start in starts]


def _letters_after_neighbour(prompts: Sequence[Prompt]) -> int:
    """Letters of prompts, in order, that are not the beginning of the one before as well."""
    texts = sorted(map(_text, prompts))
    return sum(len(text) - _common(before, text) for before, text in itertools.pairwise(["", *texts]))


def _common(one: str, other: str) -> int:
    """Letters with which two texts begin alike.

    Example:
        >>> _common("teapot", "teacup"), _common("", "tea"), _common("tea", "tea")
        (3, 0, 3)
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _text(prompt: Prompt) -> str:
    return "\x00".join(message.content for message in prompt.messages)


def _letters(prompt: Prompt) -> int:
    return sum(len(message.content.encode()) for message in prompt.messages)


def _cost(shares: Sequence[_Share]) -> float | None:
    """Return the cost of all shares; None where a model has no price. A juror that runs here costs nothing."""
    total = 0.0
    for share in shares:
        price: Price | None = share.model.card.price
        if price is not None:
            total += price.cost_usd(share.tokens, share.calls * _TYPICAL_REPLY_TOKENS)
        elif len(shares) == 1 or is_hosted(share.model.card.address):
            return None
    return total


def _time(model: Model, sample: _Sample, tokens: int, calls: int) -> float | None:
    """Return the seconds of preparing and computing the calls; None for models that run elsewhere."""
    if sample.fresh is None or not isinstance(model, Foreseeable):
        return None
    length = tokens // max(calls, 1)
    return sample.seconds * calls / max(sample.calls, 1) + model.foreseen_seconds(round(sample.fresh * tokens), length)
