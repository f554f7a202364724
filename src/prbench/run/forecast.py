"""Looking before spending: pairs, calls, tokens, time or cost. Asks the model nothing and spends nothing."""

from collections.abc import Sequence
from typing import Any

from prbench.calls import CallCache
from prbench.config import Price
from prbench.contexts import Unfit
from prbench.errors import BudgetError
from prbench.models import Replay, Sized, Windowed, is_rater
from prbench.run.session import Session
from prbench.run.work import Slot, Work, render
from prbench.types import AnswerView, Frozen, PairView, Prompt, Record

_TYPICAL_REPLY_TOKENS = 200
"""What a judge writes before its verdict, for an estimate of cost; the true number is only known afterwards."""
_BYTES_PER_TOKEN = 4.0


class Forecast(Frozen):
    """What a run would take from here."""

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
    """Of the calls still to make; counted by the model's own tokenizer where it has one, else estimated."""
    tokens_counted: bool
    cost_usd: float | None
    """None where the model has no price."""
    time_s: float | None
    """None where there is nothing to estimate it from."""


def forecast(session: Session, done: dict[Slot, Record], cache: CallCache | None) -> Forecast:
    """Estimate what is still to be done."""
    work = Work() if isinstance(session.model, Replay) else session.work(done)
    cached = cache.find(list(work.calls)) if cache is not None and session.model.card.reusable else {}
    views = [view for key, view in work.calls.items() if key not in cached]
    tokens, counted = _tokens(session, views)
    plans, plan_cost = _plans(session)
    cost = _cost(session.model.card.price, tokens, len(views))
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
        tokens_counted=counted,
        cost_usd=None if cost is None or plan_cost is None else cost + plan_cost,
        time_s=_time(session, tokens),
    )


def refuse_over_budget(estimate: Forecast, max_cost_usd: float | None) -> None:
    """Stop before the first call where the estimate is over the limit, or cannot be made."""
    if max_cost_usd is None or not (estimate.calls_to_make or estimate.plans_to_make):
        return
    if estimate.cost_usd is None:
        raise BudgetError(
            f"--max-cost {max_cost_usd:.2f} was given, but the model's price is not known",
            hint="give --price IN,OUT in US dollars per million tokens",
        )
    if estimate.cost_usd > max_cost_usd:
        raise BudgetError(
            f"the run is estimated at ${estimate.cost_usd:.2f}, over the limit of ${max_cost_usd:.2f}: not started",
            hint="raise --max-cost, lower --limit, or drop a context",
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


def _tokens(session: Session, views: Sequence[AnswerView | PairView]) -> tuple[int, bool]:
    model: Any = session.model
    prompts = (render(model, view) for view in views)
    if isinstance(model, Windowed):
        return sum(model.length(prompt) for prompt in prompts), isinstance(model, Sized)
    return round(sum(map(_letters, prompts)) / _BYTES_PER_TOKEN), False


def _letters(prompt: Prompt) -> int:
    return sum(len(message.content.encode()) for message in prompt.messages)


def _cost(price: Price | None, tokens: int, calls: int) -> float | None:
    return None if price is None else price.cost_usd(tokens, calls * _TYPICAL_REPLY_TOKENS)


def _time(session: Session, tokens: int) -> float | None:
    """From the model's size and the machine's own measured speed; None for models that run elsewhere."""
    model = session.model
    if not isinstance(model, Sized):
        return None
    return 2.0 * float(model.parameter_count()) * tokens / (0.5 * _matmul_flops())


def _matmul_flops() -> float:
    """Floating-point operations a second of a matrix product here and now (a tenth of a second of work)."""
    import time

    import torch

    size = 768
    one = torch.ones(size, size)
    one @ one
    started, rounds = time.perf_counter(), 0
    while time.perf_counter() - started < 0.1:
        one @ one
        rounds += 1
    return 2.0 * size**3 * rounds / (time.perf_counter() - started)
