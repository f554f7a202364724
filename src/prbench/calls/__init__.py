"""Calls: ask a model what is missing, keep each answer at once, and resume.

A call has a key, a content hash over who is asked and what. Answers are cached by key across runs; open calls are asked
in this process, by worker processes or on a Ray cluster, and the answers are the same everywhere.
"""

from prbench.calls.ask import Asker, InProcess, in_chunks, reply
from prbench.calls.budget import FILE as SPEND_FILE
from prbench.calls.budget import Budget, Spending, read_spending, refuse_over_budget
from prbench.calls.cache import CallCache, CallKeys, call_key
from prbench.calls.journal import Journal
from prbench.calls.progress import ProgressLine, clock
from prbench.calls.shards import View
from prbench.calls.workers import Workers, cores, open_asker

__all__ = [
    "SPEND_FILE",
    "Asker",
    "Budget",
    "CallCache",
    "CallKeys",
    "InProcess",
    "Journal",
    "ProgressLine",
    "Spending",
    "View",
    "Workers",
    "call_key",
    "clock",
    "cores",
    "in_chunks",
    "open_asker",
    "read_spending",
    "refuse_over_budget",
    "reply",
]
