"""One process with all cores against worker processes and Ray actors with one core each, side by side on this machine.

Run: python benchmarks/workers.py [--model lm:smollm2] [--pairs 60] [--workers 2] [--repeats 3] [--ray] [--driver SUITE]

Every arm is a whole `prbench run` with an empty folder and no cache, on the same pairs of the mirror suite with their
profiles; arms take turns, figures are medians. Printed are the seconds of the whole command and of asking alone (their
difference is overhead: workers open the model once more each), and the peak memory of the process that was started.
What is compared is also checked: all arms must agree to 1e-4. With --ray a cluster of one node (started by the run) and
one of two local nodes are arms too. --driver runs `longer` on a large suite over Ray (benchmarks/growth.py writes
suites) and exits with 1 where the process that was started takes more than 1 GB.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from prbench.calls.worker import THREAD_VARIABLES
from prbench.calls.workers import cores

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

DRIVER_MB = 1000
"""Peak memory of the process that was started, in a run of 100,000 pairs over Ray."""


class Arm(NamedTuple):
    """One way to use the machine."""

    name: str
    workers: int
    threads: int
    """Of the process that asks, or of each worker."""
    nodes: int = 0
    """Nodes of a Ray cluster; 0 without Ray."""


class Timing(NamedTuple):
    """What one run took and gave."""

    seconds: float
    asking_s: float
    peak_mb: float
    computed: int
    margins: dict[str, float]


class Taken(NamedTuple):
    """What a command took."""

    seconds: float
    peak_mb: float


def arms(workers: int, ray: bool) -> list[Arm]:
    """One core, all cores in one process, one core for each of several workers, and the same on Ray."""
    each = max(1, cores() // workers)
    found = [
        Arm("1 process, 1 thread", 1, 1),
        Arm(f"1 process, {workers} threads", 1, workers),
        Arm(f"{workers} workers, 1 thread each", workers, each),
    ]
    on_ray = [Arm(f"Ray, 1 node, {workers} actors", workers, each, 1), Arm("Ray, 2 nodes, 1 actor each", 2, each, 2)]
    return found + (on_ray if ray else [])


def measured(arguments: Sequence[str], environment: Mapping[str, str]) -> Taken:
    """Run a command; its memory is that of the process that was started, or of the largest process it waited for."""
    began = time.perf_counter()
    with Path(os.devnull).open("wb") as nothing:
        actions = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), 1)]
        command = [sys.executable, "-m", "prbench", *arguments]
        process = os.posix_spawn(sys.executable, command, environment, file_actions=actions)
        _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(f"prbench {' '.join(arguments)} ended with {status}")
    return Taken(time.perf_counter() - began, usage.ru_maxrss / 1024)


@contextmanager
def cluster(nodes: int) -> Iterator[dict[str, str]]:
    """The variables of a run on so many nodes; two are started here, on loopback, and ended."""
    if nodes < 2:
        yield {}
        return
    from ray_cluster import ENVIRONMENT, two_nodes

    with two_nodes() as found:
        yield {"RAY_ADDRESS": found.address, **ENVIRONMENT}


def run(arm: Arm, model: str, pairs: int, folder: Path) -> Timing:
    """One whole run in a process of its own."""
    # The parent of workers is left its cores: they take their share of them by themselves.
    threads = {variable: str(arm.threads) for variable in THREAD_VARIABLES} if arm.workers == 1 else {}
    clean = {name: value for name, value in os.environ.items() if name not in (*THREAD_VARIABLES, "RAY_ADDRESS")}
    options = ["--limit", str(pairs), "--context", "profile", "--workers", str(arm.workers), "--resamples", "100"]
    options += ["--engine", "ray"] if arm.nodes else []
    with cluster(arm.nodes) as variables:
        taken = measured(
            ["run", "-q", "-m", model, *options, "--no-cache", "-o", str(folder)], {**clean, **threads, **variables}
        )
    timing = json.loads((folder / "result.json").read_text())["result"]["timing"]
    records = map(json.loads, (folder / "records.jsonl").read_text().splitlines())
    margins = {f"{record['pair']} {record['order']}": record["margin"] for record in records}
    return Timing(taken.seconds, timing["elapsed_s"], taken.peak_mb, timing["tokens_computed"] or 0, margins)


def show(found: Mapping[Arm, Sequence[Timing]]) -> None:
    """Print one row per arm; speed is that of asking, against one process with all cores."""
    print(f"{'':28}{'seconds':>9}{'asking':>9}{'speed':>8}{'peak MB':>9}{'tokens computed':>17}{'differs':>10}")
    base = next(iter(found.values()))[0]
    whole = statistics.median(timing.asking_s for timing in list(found.values())[1])
    for arm, timings in found.items():
        seconds, asking, peak = (statistics.median(column) for column in list(zip(*timings, strict=True))[:3])
        differs = max(abs(timings[0].margins[slot] - margin) for slot, margin in base.margins.items())
        print(
            f"{arm.name:28}{seconds:>9.1f}{asking:>9.1f}{whole / asking:>7.2f}×{peak:>9,.0f}"
            f"{timings[0].computed:>17,}{differs:>10.0e}",
            flush=True,
        )


def driver(suite: Path, workers: int, folder: Path) -> int:
    """Run a free model on a large suite over Ray; 1 where the process that was started needs too much memory."""
    options = ["--suite", str(suite), "--context", "none", "--engine", "ray", "--workers", str(workers), "--no-cache"]
    taken = measured(["run", "-q", "-m", "longer", *options, "-o", str(folder)], os.environ)
    print(f"{suite.name} over Ray: {taken.seconds:.0f} s, driver {taken.peak_mb:,.0f} MB, {DRIVER_MB:,} allowed")
    return int(taken.peak_mb > DRIVER_MB)


def main() -> int:
    """Measure all arms in turn, or the driver alone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="lm:smollm2", help="address of a local model")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ray", action="store_true", help="also Ray on one and on two local nodes")
    parser.add_argument("--driver", type=Path, metavar="SUITE", help="run this suite over Ray, and nothing else")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if options.driver is not None:
            return driver(options.driver, options.workers, Path(place) / "driver")
        found: dict[Arm, list[Timing]] = {arm: [] for arm in arms(options.workers, options.ray)}
        for repeat in range(options.repeats):
            for number, (arm, timings) in enumerate(found.items()):
                timings.append(run(arm, options.model, options.pairs, Path(place) / f"{repeat}-{number}"))
    print(f"{options.model}, {options.pairs} pairs under profile, {cores()} cores, load {os.getloadavg()[0]:.1f}")
    show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
