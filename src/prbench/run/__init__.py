"""Runs: from a suite and a model to a kept result; resume, progress, budget."""

from prbench.run.execute import Evaluation, check_claim, execute
from prbench.run.forecast import Forecast, forecast, refuse_over_budget
from prbench.run.plans import PlanFile, fetch_matcher, open_matcher
from prbench.run.progress import Progress
from prbench.run.session import Session

__all__ = [
    "Evaluation",
    "Forecast",
    "PlanFile",
    "Progress",
    "Session",
    "check_claim",
    "execute",
    "fetch_matcher",
    "forecast",
    "open_matcher",
    "refuse_over_budget",
]
