"""LOAD: from a name, a file or a folder to pairs that have been checked, with the record of where they came from.

This room reads JSONL, Parquet and CSV, local copies of published datasets and the hub, and writes pairs. It refuses
what it cannot vouch for: doubled ids, empty or equal answers, broken couples, text that is not UTF-8; each with file,
line and field. It shows nothing to a model: that is what contexts are for.
"""

from prbench.data.fingerprint import fingerprint, hash_text
from prbench.data.load import load_pairs, load_questions
from prbench.data.passages import Passage, load_passages
from prbench.data.portion import Portion
from prbench.data.registry import SuiteInfo, suites
from prbench.data.rows import Place, SourceRow, read_rows, suffix_of
from prbench.data.suite import Counts, DatasetRecord, Suite
from prbench.data.write import write_pairs

__all__ = [
    "Counts",
    "DatasetRecord",
    "Passage",
    "Place",
    "Portion",
    "SourceRow",
    "Suite",
    "SuiteInfo",
    "fingerprint",
    "hash_text",
    "load_pairs",
    "load_passages",
    "load_questions",
    "read_rows",
    "suffix_of",
    "suites",
    "write_pairs",
]
