"""Machine on which figures were measured: latency means nothing without it."""

import os
import platform
from pathlib import Path

from prbench.calls import cores
from prbench.types import Frozen


class Machine(Frozen):
    """Facts of the machine that latency depends on, as far as it tells them."""

    processor: str
    cores: int
    """Number of cores that this process may use."""
    system: str
    python: str
    threads: str = ""
    """`OMP_NUM_THREADS`, where it is set."""

    @classmethod
    def here(cls) -> "Machine":
        """Return the facts of this machine.

        Example:
            >>> Machine.here().cores >= 1
            True
        """
        return cls(
            processor=_processor(),
            cores=cores(),
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            threads=os.environ.get("OMP_NUM_THREADS", ""),
        )

    def __str__(self) -> str:
        threads = f", OMP_NUM_THREADS={self.threads}" if self.threads else ""
        return f"{self.processor}, {self.cores} cores, {self.system}, Python {self.python}{threads}"


def load_average() -> float | None:
    """Processes that wanted to run during the last minute; more than there are cores make latencies unfair."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


def _processor() -> str:
    """Return the processor's name, which Linux tells in a file and other systems through the standard library."""
    listing = Path("/proc/cpuinfo")
    if listing.is_file():
        for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine() or "unknown processor"
