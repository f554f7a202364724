"""SCORECARD: models side by side, on general quality and on the person; and how they grow with what is known of a user.

A row comes from runs like any other, so it can be opened, verified and compared. This room trains nothing and knows no
method: what a model is, its address says. A model that breaks is a row that says why.
"""

from prbench.scorecard.card import Scorecard, make_scorecard
from prbench.scorecard.card_tables import curve_tables, document, scorecard_tables
from prbench.scorecard.config import (
    ScorecardConfig,
    ScorecardModelConfig,
    entries_of,
    read_settings_file,
)
from prbench.scorecard.curves import CurveSheet, make_curves
from prbench.scorecard.protocol import ShotDivision, divide
from prbench.scorecard.row import ScorecardRow
from prbench.scorecard.rule import Rule, Verdict

__all__ = [
    "CurveSheet",
    "Rule",
    "Scorecard",
    "ScorecardConfig",
    "ScorecardModelConfig",
    "ScorecardRow",
    "ShotDivision",
    "Verdict",
    "curve_tables",
    "divide",
    "document",
    "entries_of",
    "make_curves",
    "make_scorecard",
    "read_settings_file",
    "scorecard_tables",
]
