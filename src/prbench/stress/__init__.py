"""STRESS: the same pairs with changes that should not matter, and how many verdicts they change."""

from prbench.stress.changes import CHANGES, Change, read_paraphrases
from prbench.stress.stress import ChangeResult, StressResult, default_folder, stress, stress_tables

__all__ = [
    "CHANGES",
    "Change",
    "ChangeResult",
    "StressResult",
    "default_folder",
    "read_paraphrases",
    "stress",
    "stress_tables",
]
