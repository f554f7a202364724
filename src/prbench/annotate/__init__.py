"""ANNOTATE: people judge pairs on a web page, and a report says what their judgments carry.

Annotators come in by an invitation link, see question, posts and two answers in a random order, and never a label nor
each other. Everything is in one SQLite file: what a person has confirmed survives `kill -9`, what a person deletes is
gone. The report repeats the paper's human check (equal quality, different preference) and refuses a verdict where the
data are too few. In mode `self` people write posts and judge for themselves; the export feeds `prbench build mirror`.
"""

from prbench.annotate.export import export
from prbench.annotate.findings import StudyFindings, find
from prbench.annotate.findings_tables import tables
from prbench.annotate.store import Store
from prbench.annotate.study import AnnotationConfig, AnnotationStudy, Mode, open_study

__all__ = [
    "AnnotationConfig",
    "AnnotationStudy",
    "Mode",
    "Store",
    "StudyFindings",
    "export",
    "find",
    "open_study",
    "tables",
]
