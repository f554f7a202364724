"""Campaigns of attacks: what was tried, what came of it, and one table of all at the end of the tests.

Every campaign is seeded and bounded. `make test` runs about a tenth of it; with PRBENCH_ATTACK=long it is the whole,
which takes about an hour. The table is collected from the reports of the tests, so it is whole under several workers.
"""

import os
import resource
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prbench.errors import PrbenchError
from prbench.show.table import Table

LONG = os.environ.get("PRBENCH_ATTACK") == "long"
PROPERTY = "attack"
"""Under which name a test's report carries its campaign."""
_COUNTS = ("tried", "survived", "lost", "changed", "tracebacks")


def times(long: int, short: int | None = None) -> int:
    """How often to try: as often as the long profile says, else a tenth."""
    return long if LONG else short if short is not None else max(1, long // 10)


@dataclass
class Campaign:
    """What one test found."""

    name: str
    tried: int = 0
    lost: list[str] = field(default_factory=list)
    """What was kept or confirmed and is gone."""
    changed: list[str] = field(default_factory=list)
    """Answers that are another's, or differ from an undisturbed run's."""
    tracebacks: list[str] = field(default_factory=list)
    """Whatever ended without an error in words that names its place."""
    peak_mb: float = 0.0

    @property
    def wrong(self) -> list[str]:
        """Everything that should not have happened."""
        kinds = (("lost", self.lost), ("changed", self.changed), ("traceback", self.tracebacks))
        return [f"{kind}: {what}" for kind, found in kinds for what in found]

    def row(self) -> dict[str, Any]:
        """As it travels in a test's report."""
        counts = {"lost": len(self.lost), "changed": len(self.changed), "tracebacks": len(self.tracebacks)}
        return {
            "name": self.name,
            "tried": self.tried,
            "survived": max(0, self.tried - sum(counts.values())),
            **counts,
            "peak_mb": self.peak_mb,
        }

    def remember(self, peak_mb: float) -> None:
        """Note the memory of a process."""
        self.peak_mb = max(self.peak_mb, peak_mb)

    def refused(self, work: Callable[[], object]) -> PrbenchError | None:
        """Do something that may be refused in words; anything else that it raises is a traceback."""
        try:
            work()
        except PrbenchError as error:
            return error
        except Exception as error:
            self.tracebacks.append(told(error))
        return None


@contextmanager
def campaign(name: str, note: Callable[[str, object], None]) -> Iterator[Campaign]:
    """Count what happens in a block, hand it to the test's report, and fail the test if anything is wrong."""
    found = Campaign(name)
    _reset_peak()
    try:
        yield found
    finally:
        found.remember(peak_mb())
        note(PROPERTY, found.row())
    assert not found.wrong, f"{len(found.wrong)} of {found.tried}:\n" + "\n".join(found.wrong[:40])


def told(error: BaseException) -> str:
    """An exception with the places it came through, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename.rpartition('/prbench/')[2]}:{frame.lineno}" for frame in frames]
    return f"{type(error).__name__}: {str(error)[:200]} {' < '.join(places[:-7:-1])}"


def peak_mb(process: int | None = None) -> float:
    """The most memory that a process (this one) has had since `campaign` began; 0 where it is gone."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path(f"/proc/{process or 'self'}/status").read_text().splitlines()
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)
    return 0.0 if process else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _reset_peak() -> None:
    with suppress(OSError):  # only Linux can, and only where it may
        Path("/proc/self/clear_refs").write_text("5")


def gathered(reports: Iterable[Any]) -> list[Mapping[str, Any]]:
    """The campaigns in the reports of tests, those of one name added up."""
    rows: dict[str, dict[str, Any]] = {}
    for report in reports:
        for name, row in getattr(report, "user_properties", ()):
            if name == PROPERTY and report.when == "call":
                sum_ = rows.setdefault(row["name"], {"name": row["name"], "peak_mb": 0.0, **dict.fromkeys(_COUNTS, 0)})
                sum_ |= {count: sum_[count] + row[count] for count in _COUNTS}
                sum_["peak_mb"] = max(sum_["peak_mb"], row["peak_mb"])
    return [rows[name] for name in sorted(rows)]


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """What all campaigns came to."""
    title = f"Attacks ({'the long profile' if LONG else 'about a tenth; PRBENCH_ATTACK=long runs all'})"
    columns = ["campaign", *_COUNTS, "peak memory"]
    cells = [[row["name"], *(f"{row[count]:,}" for count in _COUNTS), f"{row['peak_mb']:,.0f} MB"] for row in rows]
    total = ["all", *(f"{sum(row[count] for row in rows):,}" for count in _COUNTS)]
    return Table(title, columns, [*cells, [*total, f"{max(row['peak_mb'] for row in rows):,.0f} MB"]])
