"""RUN: keys, resume, progress, budget; and the results that can be computed again from what a run keeps."""

from prbench.run.calls import CallCache
from prbench.run.compare import Loaded, Moment, Versus, history, load_run, standings, versus
from prbench.run.execute import Evaluation, check_claim, execute, recompute
from prbench.run.forecast import Forecast, forecast, refuse_over_budget
from prbench.run.plans import PlanFile, fetch_matcher, open_matcher
from prbench.run.progress import Progress, clock
from prbench.run.result import headline
from prbench.run.session import Session
from prbench.run.staff import Staff
from prbench.run.store import RunFolder
from prbench.run.verify import Mismatch, Verification, verify

__all__ = [
    "CallCache",
    "Evaluation",
    "Forecast",
    "Loaded",
    "Mismatch",
    "Moment",
    "PlanFile",
    "Progress",
    "RunFolder",
    "Session",
    "Staff",
    "Verification",
    "Versus",
    "check_claim",
    "clock",
    "execute",
    "fetch_matcher",
    "forecast",
    "headline",
    "history",
    "load_run",
    "open_matcher",
    "recompute",
    "refuse_over_budget",
    "standings",
    "verify",
    "versus",
]
