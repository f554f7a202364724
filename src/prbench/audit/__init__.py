"""AUDIT: the soundness of a suite. Balance, duplicates, leaks, evidence, splits, and the stance in the text.

Works on any suite: what a suite has nothing for (no mirror tags, no axes, no profiles) is not applicable. It looks at
texts, tags and content-blind raters only; whether an answer is true or a persona believable, a reader must say.
"""

from prbench.audit.attributes import load_people
from prbench.audit.check_tables import audit_tables
from prbench.audit.config import AuditConfig, default_settings, load_settings
from prbench.audit.examine import Audit, Check, audit
from prbench.audit.people import People
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence

__all__ = [
    "Audit",
    "AuditConfig",
    "Check",
    "CheckVerdict",
    "Figure",
    "Finding",
    "Offence",
    "People",
    "audit",
    "audit_tables",
    "default_settings",
    "load_people",
    "load_settings",
]
