"""Evaluation of a resolved session to a kept result: the one way, for the command line and for Python."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from prbench.calls import Budget, CallCache, Workers, refuse_over_budget
from prbench.results import Records, RunFolder
from prbench.run.execute import Evaluation, check_claim, execute, open_budget
from prbench.run.forecast import Forecast, forecast
from prbench.run.progress import RecordProgress
from prbench.run.session import Session


class Running(NamedTuple):
    """Settings of how a run is made; none of them can change an answer."""

    workers: Workers = Workers()
    """Number and place of the copies of the model that answer."""
    cache: bool = True
    """Whether to take answers of earlier runs from the cache, and to keep new ones there."""
    fresh: bool = False
    """Whether to ask anew what the folder and the cache hold already; old records are kept aside."""
    max_cost_usd: float | None = None
    """Refuse to start, or stop resumably, where the run would cost more."""
    quiet: bool = True
    """Whether to show no progress on standard error."""


def evaluate_session(session: Session, folder: RunFolder, running: Running) -> Evaluation:
    """Make every record that is missing and every aggregate.

    Raises:
        BudgetError: If the run would cost more than allowed, before anything is asked; or once as much is spent.
    """
    with _call_cache(running) as cache:
        if running.max_cost_usd is not None:
            _refuse_over_budget(session, folder, running, cache)
        with RecordProgress(quiet=running.quiet) as progress:
            return execute(
                session,
                folder,
                cache=cache,
                listening=progress.listening,
                planning=progress.planning,
                max_cost_usd=running.max_cost_usd,
                fresh=running.fresh,
                workers=running.workers,
            )


def forecast_session(session: Session, folder: RunFolder, running: Running) -> Forecast:
    """Estimate what is still to be done; asks nothing."""
    with _call_cache(running) as cache:
        return _forecast(session, folder, running, cache)


def _refuse_over_budget(session: Session, folder: RunFolder, running: Running, cache: CallCache | None) -> None:
    estimate, limit_usd = _forecast(session, folder, running, cache), running.max_cost_usd
    budget = Budget(None, limit_usd) if running.fresh else open_budget(folder, limit_usd, folder.records())
    if estimate.calls_to_make or estimate.plans_to_make:
        hint = "raise --max-cost, lower --limit, or drop a context"
        refuse_over_budget("the run is", estimate.cost_usd, budget, hint)


def _forecast(session: Session, folder: RunFolder, running: Running, cache: CallCache | None) -> Forecast:
    check_claim(session, folder)
    with RecordProgress(quiet=running.quiet) as progress:
        return forecast(session, Records() if running.fresh else folder.records(), cache, progress.planning)


@contextmanager
def _call_cache(running: Running) -> Iterator[CallCache | None]:
    if not running.cache or running.fresh:
        yield None
        return
    with closing(CallCache()) as cache:
        yield cache
