"""Looking before spending: pairs, calls, tokens, time or cost. Asks the model nothing and spends nothing."""

from typing import Any

from prbench.config import Price
from prbench.errors import BudgetError
from prbench.models import Windowed
from prbench.run.calls import CallCache
from prbench.run.session import Session
from prbench.run.work import Slot, Work
from prbench.types import Frozen, Prompt, Record

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
    work = Work() if not hasattr(session.model, "render") else session.work(done)
    cached = cache.find(list(work.calls)) if cache is not None and session.model.card.reusable else {}
    prompts = [call.prompt for key, call in work.calls.items() if key not in cached]
    tokens, counted = _tokens(session, prompts)
    planner = session.planner
    return Forecast(
        pairs=len(session.suite),
        contexts=tuple(map(str, session.contexts)),
        unsupported=tuple(map(str, session.unsupported)),
        records_open=len(work.tasks) + len(work.unfit),
        records_done=len(done),
        calls_without_sharing=work.naive_calls,
        distinct_calls=len(work.calls),
        calls_in_cache=len(cached),
        calls_to_make=len(prompts),
        plans_to_make=0 if planner is None else len({planner.key(pair) for pair in session.suite} - set(session.plans)),
        tokens_in=tokens,
        tokens_counted=counted,
        cost_usd=_cost(session.model.card.price, tokens, len(prompts)),
        time_s=_time(session, tokens),
    )


def refuse_over_budget(estimate: Forecast, max_cost_usd: float | None) -> None:
    """Stop before the first call where the estimate is over the limit, or cannot be made."""
    if max_cost_usd is None or not estimate.calls_to_make:
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


def _tokens(session: Session, prompts: list[Prompt]) -> tuple[int, bool]:
    model: Any = session.model
    if isinstance(model, Windowed):
        return sum(model.length(prompt) for prompt in prompts), hasattr(model, "parameter_count")
    letters = sum(len(message.content.encode()) for prompt in prompts for message in prompt.messages)
    return round(letters / _BYTES_PER_TOKEN), False


def _cost(price: Price | None, tokens: int, calls: int) -> float | None:
    return None if price is None else price.cost_usd(tokens, calls * _TYPICAL_REPLY_TOKENS)


def _time(session: Session, tokens: int) -> float | None:
    """From the model's size and the machine's own measured speed; None for models that run elsewhere."""
    model: Any = session.model
    if not hasattr(model, "parameter_count"):
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
