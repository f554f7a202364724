"""A real Ray cluster of two nodes on this machine, as a process of its own; run as a script by `two_nodes`.

Prints its address and, when it reads a line, kills all processes of the second node and says so. Ends with its input.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
"""So that a dead node is noticed in seconds."""

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # otherwise loopback addresses are replaced by the machine's own
}


class TwoNodes:
    """A running cluster."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.address = self._hear()

    def kill_second_node(self) -> None:
        """Kill all processes of the second node."""
        self._process.stdin.write("kill\n")
        self._process.stdin.flush()
        assert self._hear() == "killed"

    def _hear(self) -> str:
        for line in self._process.stdout:
            if line.startswith("cluster: "):
                return line.removeprefix("cluster: ").strip()
        raise AssertionError(f"the cluster ended with code {self._process.wait()}")


@contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    """Start a cluster with one core on each of two nodes, and end it."""
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **ENVIRONMENT},
    )
    try:
        yield TwoNodes(process)
    finally:
        process.communicate(timeout=120)


def processes_of(node: Any) -> list[Any]:
    """All processes of a node, as they would all end if the machine did."""
    started = [psutil.Process(info.process.pid) for infos in node.all_processes.values() for info in infos]
    return [*started, *(child for process in started for child in process.children(recursive=True))]


def main() -> None:
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 100 << 20, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(
        initialize_head=True, head_node_args={**node, "include_dashboard": False, "_system_config": QUICK}
    )
    second = cluster.add_node(**node)
    cluster.wait_for_nodes()
    print(f"cluster: {cluster.address}", flush=True)
    try:
        for _ in sys.stdin:
            for process in processes_of(second):
                process.kill()
            print("cluster: killed", flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
