"""Money: what was spent, written ahead of every request, and the limit at which asking stops.

Before a request is sent, the most that it can cost is written to the spend file; its reply settles the true cost. So
`kill -9` cannot make a run look cheaper than it was: a request whose cost is not known counts at its upper bound, and
is marked as such. The rule is the same wherever a model is asked: once as much as the limit is spent, nothing more is
sent, and what is under way is still taken and kept.
"""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from prbench import files
from prbench.errors import BudgetError, RunError
from prbench.models.meter import metered
from prbench.types import Frozen

FILE = "spend.jsonl"
_HINT = "remove the file; what was spent is then counted from the answers that are kept"


class SpendLine(Frozen):
    """One line of a spend file: a request that is sent, what it cost, or what all earlier lines come to."""

    number: int = 0
    """Number of the request; 0 for the sum of all earlier ones."""
    most_usd: float | None = None
    """Upper bound of a request that is sent now; in a sum, of all requests that were never settled."""
    usd: float | None = None
    """Cost of a request; in a sum, of all settled ones together."""
    unsettled: int = 0
    """Number of requests in a sum that were never settled."""
    retries: int = 0
    """Requests that were sent again."""


class Spending(NamedTuple):
    """Money spent, as a spend file records it."""

    settled_usd: float = 0.0
    unsettled_usd: float = 0.0
    """Upper bound of the requests that were sent and whose cost is not known."""
    unsettled: int = 0
    retries: int = 0
    """Requests that were sent again after a passing fault."""

    @property
    def spent_usd(self) -> float:
        """The most that was spent."""
        return self.settled_usd + self.unsettled_usd

    def words(self) -> str:
        """The amount in words, with the part that is an upper bound marked.

        Example:
            >>> Spending(0.5).words()
            '$0.5000'
            >>> Spending(0.5, 0.25, unsettled=2, retries=1).words()
            '$0.7500 (at most: $0.2500 of it for 2 requests of unknown cost), 1 request sent again'
        """
        said = f"${self.spent_usd:.4f}"
        if self.unsettled:
            requests = f"{self.unsettled:,} request{'' if self.unsettled == 1 else 's'}"
            said += f" (at most: ${self.unsettled_usd:.4f} of it for {requests} of unknown cost)"
        if self.retries:
            said += f", {self.retries:,} request{'' if self.retries == 1 else 's'} sent again"
        return said


def read_spending(path: Path) -> Spending:
    """Return the sum of a spend file; zero where there is none."""
    settled, unsettled, retries, unsettled_before = 0.0, 0.0, 0, 0
    open_requests: dict[int, float] = {}
    for line in files.read_models(path, SpendLine, raises=RunError, hint=_HINT):
        retries += line.retries
        if line.number == 0:
            settled, unsettled = settled + (line.usd or 0.0), unsettled + (line.most_usd or 0.0)
            unsettled_before += line.unsettled
        elif line.usd is None:
            open_requests[line.number] = line.most_usd or 0.0
        else:
            open_requests.pop(line.number, None)
            settled += line.usd
    open_usd = math.fsum(open_requests.values())
    return Spending(settled, unsettled + open_usd, unsettled_before + len(open_requests), retries)


class Budget:
    """Money that a command has spent, over all its starts, and may spend. Use in a `with` block.

    Args:
        path: The spend file; None keeps nothing.
        limit_usd: Stop once as much is spent.
        spent_usd: What the answers that are kept have cost: a folder may be older than its spend file.
    """

    def __init__(self, path: Path | None = None, limit_usd: float | None = None, *, spent_usd: float = 0.0) -> None:
        self._path = path
        self.limit_usd = limit_usd
        self._what = ""
        known = Spending() if path is None else read_spending(path)
        missing = max(0.0, spent_usd - known.spent_usd)
        self._before = known._replace(settled_usd=known.settled_usd + missing)
        self._settled_usd = 0.0
        self._abandoned: list[float] = []
        self._retries = 0
        self._requests = 0
        self._announced = False
        self._open: dict[int, float] = {}
        self._lines: files.Appender | None = None
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the spend file, which from now on holds one line: the sum."""
        if self._lines is not None and self._path is not None:
            self._lines.__exit__(kind, error, trace)
            self._lines = None
            files.write_whole(self._path, _sum(self.spending).model_dump_json(exclude_defaults=True) + "\n")

    @property
    def spending(self) -> Spending:
        """All that was spent; requests that are under way count at their upper bound."""
        with self._lock:
            done, under_way = self._done, [most for most in self._open.values() if most > 0]
            return done._replace(
                unsettled_usd=done.unsettled_usd + math.fsum(under_way), unsettled=done.unsettled + len(under_way)
            )

    @property
    def spent_usd(self) -> float:
        """Return the money spent, without the requests that are under way."""
        return self._done.spent_usd

    @contextmanager
    def metering(self, what: str = "") -> Iterator[None]:
        """Have the requests of a model that is asked in this block announced here; `what` says what for."""
        self._announced, self._what = False, what
        with metered(self):
            yield

    def begin(self, most_usd: float, *, again: bool = False) -> int:
        """Write down a request that is about to be sent; refuse it where the limit is reached."""
        if most_usd > 0:
            self.check()
        with self._lock:
            self._announced = True
            self._requests += 1
            self._retries += again
            self._open[self._requests] = most_usd
            if most_usd > 0:
                self._write(SpendLine(number=self._requests, most_usd=most_usd, retries=int(again)))
            return self._requests

    def settle(self, number: int, cost_usd: float) -> None:
        """Write down what a request cost."""
        with self._lock:
            most_usd = self._open.pop(number)
            self._settled_usd += cost_usd
            if most_usd > 0 or cost_usd > 0:
                self._write(SpendLine(number=number, usd=cost_usd))

    def abandon(self, number: int) -> None:
        """Count a request whose reply will never be read at its upper bound, as the spend file already does."""
        with self._lock:
            most_usd = self._open.pop(number)
            if most_usd > 0:
                self._abandoned.append(most_usd)

    def take(self, cost_usd: float, *, more: bool = True) -> None:
        """Count an answer, unless the model announced it; stop where the limit is reached.

        A model that announces its requests is stopped where it sends them, so that what is under way is not lost.

        Args:
            cost_usd: Cost of the request.
            more: Whether something is still to be asked: the last answer leaves nothing to stop.
        """
        if self._announced:
            return
        if cost_usd > 0:
            with self._lock:
                self._settled_usd += cost_usd
                self._write(SpendLine(usd=cost_usd))
            if more:
                self.check()

    def check(self) -> None:
        """Stop where the limit is reached."""
        done = self._done
        if self.limit_usd is not None and done.spent_usd >= self.limit_usd:
            raise BudgetError(
                f"stopped after {done._replace(retries=0).words()}{self._what and f' for {self._what}'}: "
                f"the limit is ${self.limit_usd:.2f}",
                hint="all answers are kept; the same command with a higher --max-cost continues",
            )

    @property
    def _done(self) -> Spending:
        before = self._before
        with self._lock:
            return before._replace(
                settled_usd=before.settled_usd + self._settled_usd,
                unsettled_usd=before.unsettled_usd + math.fsum(self._abandoned),
                unsettled=before.unsettled + len(self._abandoned),
                retries=before.retries + self._retries,
            )

    def _write(self, line: SpendLine) -> None:
        if self._path is None:
            return
        if self._lines is None:
            # What earlier starts spent is summed first: their requests have numbers, too.
            files.write_whole(self._path, _sum(self._before).model_dump_json(exclude_defaults=True) + "\n")
            self._lines = files.Appender(self._path)
        self._lines.append(line)


def _sum(spending: Spending) -> SpendLine:
    return SpendLine(
        usd=spending.settled_usd,
        most_usd=spending.unsettled_usd or None,
        unsettled=spending.unsettled,
        retries=spending.retries,
    )


def refuse_over_budget(what: str, cost_usd: float | None, budget: Budget, hint: str) -> None:
    """Stop before the first request where it is estimated to go over the limit, or where there is no estimate.

    Args:
        what: What would be asked, as the subject of a sentence: `the run is`.
        cost_usd: What is estimated for all that is still to be asked; None where there is no price.
        budget: What was spent, and the limit.
        hint: A way out.
    """
    limit_usd, spent_usd = budget.limit_usd, budget.spent_usd
    if limit_usd is None:
        return
    if cost_usd is None:
        raise BudgetError(
            f"--max-cost {limit_usd:.2f} was given, but the model's price is not known",
            hint="give --price IN,OUT in US dollars per million tokens",
        )
    if spent_usd + cost_usd > limit_usd:
        before = f" after ${spent_usd:.2f} spent already" if spent_usd else ""
        raise BudgetError(
            f"{what} estimated at ${cost_usd:.2f}{before}, over the limit of ${limit_usd:.2f}: not started", hint=hint
        )
