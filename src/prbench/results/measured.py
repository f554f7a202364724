"""Measurements taken while a run was made: kept in a file of their own, and held against records and spend file.

Seconds cannot be computed again. So they are written twice, to `measured.json` and into the result, and everything in
them that follows from something else is computed from it: latencies from the records, money from the spend file, rates
from their parts. A folder that is older than the file is held against the rest alone.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from prbench import files, stats
from prbench.calls.budget import FILE as SPEND
from prbench.calls.budget import read_spending
from prbench.errors import RunError
from prbench.plan import Plan
from prbench.results.folder import RunFolder
from prbench.results.records import Records
from prbench.results.result import Timing, Usage
from prbench.stats import Estimate
from prbench.types import Record

MEASURED = "measured.json"
_HALF_A_DIGIT_S = 0.0005
"""Largest rounding error of the seconds of a run."""
_HALF_A_RATE = 0.05
"""Largest rounding error of tokens per second."""


class Expected(NamedTuple):
    """A field of the timing, as it stands and as it must be."""

    field: str
    stored: Any
    wanted: Any


def write_measured(folder: RunFolder, timing: Timing) -> None:
    """Keep what was measured, beside the result that shows it."""
    folder.write_json(MEASURED, _fields(timing))


def latencies(records: Iterable[Record]) -> dict[str, Estimate | None]:
    """Quantiles of the time that records with a verdict took."""
    found = Records.of(records).latencies_ms()
    return {
        "latency_ms_p50": stats.quantile(found, 0.5) if found else None,
        "latency_ms_p95": stats.quantile(found, 0.95) if found else None,
    }


def paid_usd(records: Iterable[Record], plans: Iterable[Plan]) -> float:
    """Return the money that this run paid for the answers it keeps; those from the cache were paid by another."""
    uses = Records.of(records).uses().values()
    return sum(plan.cost_usd for plan in plans) + sum(use.cost_usd for use in uses if not use.cached)


def expected(
    folder: RunFolder, timing: Timing, usage: Usage, records: Records, plans: Iterable[Plan]
) -> Iterator[Expected]:
    """Every field of a timing that something else in the folder speaks of."""
    said = _fields(timing)
    if files.exists(folder.path / MEASURED, raises=RunError):
        kept = _fields(folder.read_model(MEASURED, Timing))
        for name in {**said, **kept}:
            yield Expected(name, said.get(name), kept.get(name))
    for name, estimate in latencies(records).items():
        yield Expected(name, said.get(name), None if estimate is None else estimate.to_json())
    yield from _money(folder, timing, paid_usd(records, plans))
    yield from _rates(timing)
    yield from _most(timing, usage)


def _fields(timing: Timing) -> dict[str, Any]:
    return timing.model_dump(mode="json", exclude_unset=True)


def _money(folder: RunFolder, timing: Timing, paid: float) -> Iterator[Expected]:
    """Yield the money by the spend file; runs that are older than theirs counted one start only."""
    if not files.exists(folder.path / SPEND, raises=RunError):
        return
    spent = read_spending(folder.path / SPEND)
    yield Expected("spent_usd", timing.spent_usd, max(spent.spent_usd, paid))
    retries = timing.retries or 0  # the file has those of paid requests
    yield Expected("retries", retries, max(retries, spent.retries))
    yield Expected("unsettled_calls", timing.unsettled_calls or 0, spent.unsettled)
    yield Expected("unsettled_usd", timing.unsettled_usd or 0.0, spent.unsettled_usd)


def _rates(timing: Timing) -> Iterator[Expected]:
    """Yield the values that are quotients of two other fields."""
    for name, part, whole in (
        ("computed_tokens_per_s", timing.tokens_computed, timing.passes_s),
        ("flops_per_s", timing.flops, timing.passes_s),
        ("peak_share", timing.flops_per_s, timing.peak_flops_per_s),
    ):
        yield Expected(name, getattr(timing, name), part / whole if part and whole else None)


def _most(timing: Timing, usage: Usage) -> Iterator[Expected]:
    """Yield the values that cannot be more than all answers of the run together."""
    if timing.calls_asked > usage.distinct_calls:
        yield Expected("calls_asked", timing.calls_asked, f"at most {usage.distinct_calls}")
    tokens, rate = usage.tokens_in + usage.tokens_out, timing.tokens_per_s or 0.0
    if (rate - _HALF_A_RATE) * max(0.0, timing.elapsed_s - _HALF_A_DIGIT_S) > tokens:
        yield Expected("tokens_per_s", rate, f"at most {tokens} tokens in {timing.elapsed_s} s")
