"""REPORT: what a person reads."""

from prbench.report.compare_tables import (
    flips_table,
    forecast_table,
    history_table,
    standings_table,
    verification_table,
    versus_table,
)
from prbench.report.plan_tables import plan_table
from prbench.report.run_tables import brief_tables, run_tables
from prbench.report.trackers import check_tracker, track

__all__ = [
    "brief_tables",
    "check_tracker",
    "flips_table",
    "forecast_table",
    "history_table",
    "plan_table",
    "run_tables",
    "standings_table",
    "track",
    "verification_table",
    "versus_table",
]
