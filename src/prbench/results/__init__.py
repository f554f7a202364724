"""Results: what a run found, typed; computed from its records, read from its folder, compared and verified."""

from prbench.results.compare import Moment, Versus, history, standings, versus
from prbench.results.compute import BaselineScore, RunFacts, compute_result, distinct_calls
from prbench.results.credits import Credit, Credits, PairRow, credits_by_context
<<<<<<< HEAD
from prbench.results.definitions import METRICS, Metric, definitions
from prbench.results.effects import DIFFERENCES, EFFECTS, GAIN, HEADROOM, REVERSAL, SPECIFICITY, Effect, own_context
=======
from prbench.results.definitions import METRICS, definitions
from prbench.results.effects import (
    DIFFERENCES,
    EFFECTS,
    GAIN,
    HEADROOM,
    HIGH_STAKES,
    HIGH_STAKES_TOGETHER,
    REVERSAL,
    SOUNDNESS,
    SPECIFICITY,
    Effect,
    own_context,
    shown_context,
)
>>>>>>> landing-sound
from prbench.results.folder import RunFolder
from prbench.results.loaded import Loaded, load_run
from prbench.results.measure import Measure, clusters_of, rank_credits
from prbench.results.reader import (
    QUALITY,
    check_versions,
    read_baselines,
    read_facts,
    read_plans,
    read_quality,
    read_result,
    read_rows,
    read_settings,
    recompute,
)
from prbench.results.result import (
    BaselineResult,
    ContextResult,
    Effects,
    Headroom,
    PlansResult,
    Result,
    Soundness,
    Timing,
    Usage,
    WorstGroup,
)
from prbench.results.verdict import RULE, RunVerdict, UserGrade, verdict
from prbench.results.verify import Mismatch, Verification, contradictions, require_verified, seal, verify

__all__ = [
    "DIFFERENCES",
    "EFFECTS",
    "GAIN",
    "HEADROOM",
    "HIGH_STAKES",
    "HIGH_STAKES_TOGETHER",
    "METRICS",
    "QUALITY",
    "REVERSAL",
    "RULE",
    "SOUNDNESS",
    "SPECIFICITY",
    "BaselineResult",
    "BaselineScore",
    "ContextResult",
    "Credit",
    "Credits",
    "Effect",
    "Effects",
    "Headroom",
    "Loaded",
    "Measure",
    "Metric",
    "Mismatch",
    "Moment",
    "PairRow",
    "PlansResult",
    "Result",
    "RunFacts",
    "RunFolder",
    "RunVerdict",
    "Soundness",
    "Timing",
    "Usage",
    "UserGrade",
    "Verification",
    "Versus",
    "WorstGroup",
    "check_versions",
    "clusters_of",
    "compute_result",
    "contradictions",
    "credits_by_context",
    "definitions",
    "distinct_calls",
    "history",
    "load_run",
    "own_context",
    "rank_credits",
    "read_baselines",
    "read_facts",
    "read_plans",
    "read_quality",
    "read_result",
    "read_rows",
    "read_settings",
    "recompute",
    "require_verified",
    "seal",
    "shown_context",
    "standings",
    "verdict",
    "verify",
    "versus",
]
