"""Finished runs, read for comparing: verified first, then reduced to what each pair earned."""

from pathlib import Path
from typing import NamedTuple

from prbench.config import RunConfig
from prbench.errors import RunError
from prbench.files import checked
from prbench.results.compute import RunFacts
from prbench.results.credits import CreditRows, credits_by_context
from prbench.results.folder import RunFolder
from prbench.results.reader import read_facts, read_result, read_rows, read_settings
from prbench.results.result import Result
from prbench.results.verify import require_verified


class Loaded(NamedTuple):
    """A finished run, as far as comparing needs it."""

    name: str
    path: Path
    config: RunConfig
    facts: RunFacts
    credits: dict[str, CreditRows]
    """Credits by context."""
    result: Result


def load_run(path: Path | str) -> Loaded:
    """Read a finished run, whose numbers are verified first.

    Raises:
        RunError: If it is no finished run, or if its numbers do not follow from its records.
    """
    folder = RunFolder.existing(path)
    require_verified(path)
    result, facts = read_result(folder), read_facts(folder)
    rows, records = read_rows(folder), folder.records()
    with checked(folder.path, raises=RunError, hint="the command that made the run computes it anew"):
        credits = credits_by_context(rows, records, facts.contexts, facts.expected)
    judged = {name: found.rows for name, found in credits.items()}
    return Loaded(str(path), folder.path, read_settings(folder), facts, judged, result)
