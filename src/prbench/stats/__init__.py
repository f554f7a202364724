"""Statistics of credits: every number with its interval, clustered by user and by question (the paper prints none).

Pure: arrays in, numbers out. No file, no print, no clock, no random number but from the generator that is handed over.
A missing value never enters; what is missing is counted and bounded beside the number, not inside it.
"""

from prbench.stats.arrays import Codes, Floats
from prbench.stats.best_of import (
    BestOf,
    Candidates,
    OverOptimisation,
    UserGain,
    best_of_curve,
    expected_best_of,
    over_optimisation,
    user_gains,
)
from prbench.stats.bias import LengthBias, PositionBias, length_bias, position_bias
from prbench.stats.calibration import Calibration, CalibrationBin, calibration
from prbench.stats.clusters import Clusters
from prbench.stats.comparison import Comparison, compare_paired, holm, mcnemar
from prbench.stats.coverage import Coverage, UserScore, couple_coverage, mirror_consistency, user_coverage
from prbench.stats.estimate import AccuracyBounds, Estimate, accuracy_bounds, quantile, wilson
from prbench.stats.intervals import (
    MANY_CELLS,
    correlation_interval,
    difference_interval,
    mean_interval,
    ratio_interval,
)
from prbench.stats.ranking import Standing, significance_groups

__all__ = [
    "MANY_CELLS",
    "AccuracyBounds",
    "BestOf",
    "Calibration",
    "CalibrationBin",
    "Candidates",
    "Clusters",
    "Codes",
    "Comparison",
    "Coverage",
    "Estimate",
    "Floats",
    "LengthBias",
    "OverOptimisation",
    "PositionBias",
    "Standing",
    "UserGain",
    "UserScore",
    "accuracy_bounds",
    "best_of_curve",
    "calibration",
    "compare_paired",
    "correlation_interval",
    "couple_coverage",
    "difference_interval",
    "expected_best_of",
    "holm",
    "length_bias",
    "mcnemar",
    "mean_interval",
    "mirror_consistency",
    "over_optimisation",
    "position_bias",
    "quantile",
    "ratio_interval",
    "significance_groups",
    "user_coverage",
    "user_gains",
    "wilson",
]
