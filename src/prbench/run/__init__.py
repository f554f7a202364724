"""Runs: from a suite and a model to a kept result; resume, progress, budget."""

from prbench.run.evaluate import Running, evaluate_session, forecast_session
from prbench.run.execute import Evaluation, check_claim, execute, open_budget
from prbench.run.forecast import Forecast, forecast
from prbench.run.plans import PlanFile, fetch_matcher, open_matcher
from prbench.run.progress import RecordProgress
from prbench.run.session import Session

__all__ = [
    "Evaluation",
    "Forecast",
    "PlanFile",
    "RecordProgress",
    "Running",
    "Session",
    "check_claim",
    "evaluate_session",
    "execute",
    "fetch_matcher",
    "forecast",
    "forecast_session",
    "open_budget",
    "open_matcher",
]
