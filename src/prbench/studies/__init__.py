"""STUDIES: does a better score give a better policy? What came downstream, held against the benchmark's ranking."""

from prbench.studies.correlate import LEAST_MODELS, CorrelateOptions, correlate
from prbench.studies.study import Judge, Labels, Measured, Outcome, Study, read_study, refuse_unfit
from prbench.studies.tables import correlation_tables

__all__ = [
    "LEAST_MODELS",
    "CorrelateOptions",
    "Judge",
    "Labels",
    "Measured",
    "Outcome",
    "Study",
    "correlate",
    "correlation_tables",
    "read_study",
    "refuse_unfit",
]
