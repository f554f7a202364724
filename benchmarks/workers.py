"""One process with all cores against worker processes with one core each, side by side on this machine.

Run: python benchmarks/workers.py [--model lm:smollm2] [--pairs 60] [--workers 2] [--repeats 3]

Every arm is a whole `prbench run` with an empty folder and no cache, on the same pairs of the mirror suite with their
profiles; arms take turns, figures are medians. Opening the model is part of the time, since workers open it once more
each: the longer the run, the less it weighs. What is compared is also checked: all arms must agree to 1e-4.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from prbench.calls.worker import THREAD_VARIABLES
from prbench.calls.workers import cores


class Arm(NamedTuple):
    """One way to use the machine."""

    name: str
    workers: int
    threads: int
    """Of the process that asks, or of each worker."""


class Timing(NamedTuple):
    """What one run took and gave."""

    seconds: float
    computed: int
    margins: dict[str, float]


def arms(workers: int) -> list[Arm]:
    """One core, all cores in one process, and one core for each of several workers."""
    return [
        Arm("1 process, 1 thread", 1, 1),
        Arm(f"1 process, {workers} threads", 1, workers),
        Arm(f"{workers} workers, 1 thread each", workers, max(1, cores() // workers)),
    ]


def run(arm: Arm, model: str, pairs: int, folder: Path) -> Timing:
    """One whole run in a process of its own."""
    # The parent of workers is left its cores: they take their share of them by themselves.
    threads = {variable: str(arm.threads) for variable in THREAD_VARIABLES} if arm.workers == 1 else {}
    clean = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
    options = ["--limit", str(pairs), "--context", "profile", "--workers", str(arm.workers), "--resamples", "100"]
    subprocess.run(
        [sys.executable, "-m", "prbench", "run", "-q", "-m", model, *options, "--no-cache", "-o", str(folder)],
        env={**clean, **threads},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    timing = json.loads((folder / "result.json").read_text())["result"]["timing"]
    records = map(json.loads, (folder / "records.jsonl").read_text().splitlines())
    margins = {f"{record['pair']} {record['order']}": record["margin"] for record in records}
    return Timing(timing["elapsed_s"], timing["tokens_computed"] or 0, margins)


def main() -> None:
    """Print one row per arm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="lm:smollm2", help="address of a local model")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    found: dict[Arm, list[Timing]] = {arm: [] for arm in arms(options.workers)}
    with tempfile.TemporaryDirectory() as place:
        for repeat in range(options.repeats):
            for arm, timings in found.items():
                folder = Path(place) / f"{repeat}-{arm.workers}-{arm.threads}"
                timings.append(run(arm, options.model, options.pairs, folder))
    print(f"{options.model}, {options.pairs} pairs under profile, {cores()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'':28}{'seconds':>9}{'speed':>8}{'tokens computed':>17}{'differs':>10}")
    (base, *_), *_ = found.values()
    whole = statistics.median(timing.seconds for timing in found[arms(options.workers)[1]])
    for arm, timings in found.items():
        seconds = statistics.median(timing.seconds for timing in timings)
        differs = max(abs(timings[0].margins[slot] - margin) for slot, margin in base.margins.items())
        print(f"{arm.name:28}{seconds:>9.1f}{whole / seconds:>7.2f}×{timings[0].computed:>17,}{differs:>10.0e}")


if __name__ == "__main__":
    main()
