"""STUDIES: whether a better score gives a better policy. Downstream results, held against the benchmark's ranking."""

from prbench.studies.correlate import correlate
from prbench.studies.correlation_tables import correlation_tables
from prbench.studies.matched import LEAST_MODELS, CorrelateConfig
from prbench.studies.study import Judge, Labels, ModelOutcome, Study, StudyEstimate, read_study, refuse_unfit

__all__ = [
    "LEAST_MODELS",
    "CorrelateConfig",
    "Judge",
    "Labels",
    "ModelOutcome",
    "Study",
    "StudyEstimate",
    "correlate",
    "correlation_tables",
    "read_study",
    "refuse_unfit",
]
