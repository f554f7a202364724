"""BEST OF N: candidates drawn once, scored once by each reward model, judged once; then exact curves over all k."""

from prbench.studies.best_of_n.conclusion import read_curves
from prbench.studies.best_of_n.config import (
    BestOfNConfig,
    RewardModelConfig,
    parse_model,
    read_settings,
)
from prbench.studies.best_of_n.gain_tables import best_of_n_tables
from prbench.studies.best_of_n.outcome import Entered, World
from prbench.studies.best_of_n.recipe import STAGES, Stage, best_of_n

__all__ = [
    "STAGES",
    "BestOfNConfig",
    "Entered",
    "RewardModelConfig",
    "Stage",
    "World",
    "best_of_n",
    "best_of_n_tables",
    "parse_model",
    "read_curves",
    "read_settings",
]
