"""Metrics of the server, in the text form that Prometheus reads. A handful of numbers does not need a library."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

Labels = tuple[tuple[str, str], ...]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Count:
    """A number that only grows, by label.

    Example:
        >>> count = Count("eggs", "Eggs found.")
        >>> count.add(2, colour="brown")
        >>> list(count.lines())[-1]
        'eggs{colour="brown"} 2'
    """

    def __init__(self, name: str, help: str) -> None:
        self._head = _head(name, help, "counter")
        self._name = name
        self._lock = threading.Lock()
        self._values: Counter[Labels] = Counter()

    def add(self, amount: int = 1, **labels: str) -> None:
        """Add an amount to the count under these labels."""
        with self._lock:
            self._values[tuple(labels.items())] += amount

    def value(self, **labels: str) -> int:
        """Return the count under these labels."""
        return self._values[tuple(labels.items())]

    def lines(self) -> Iterator[str]:
        """Yield the lines that Prometheus reads."""
        yield from self._head
        with self._lock:
            values = sorted(self._values.items())
        for labels, value in values or [((), 0)]:
            yield f"{self._name}{_braces(labels)} {value}"


class Histogram:
    """Counts of a value by buckets.

    Example:
        >>> histogram = Histogram("wait", "Waiting.", (1, 2))
        >>> histogram.observe(1.5)
        >>> list(histogram.lines())[2:]
        ['wait_bucket{le="1"} 0', 'wait_bucket{le="2"} 1', 'wait_bucket{le="+Inf"} 1', 'wait_sum 1.5', 'wait_count 1']
    """

    def __init__(self, name: str, help: str, bounds: Sequence[float]) -> None:
        self._head = _head(name, help, "histogram")
        self._name = name
        self._bounds = tuple(bounds)
        self._lock = threading.Lock()
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Add a value to its bucket."""
        with self._lock:
            self._counts[bisect_left(self._bounds, value)] += 1
            self._sum += value

    def lines(self) -> Iterator[str]:
        """Yield the lines that Prometheus reads: buckets count everything up to their bound."""
        yield from self._head
        with self._lock:
            counts, total = list(self._counts), self._sum
        so_far = 0
        for bound, count in zip([*map(str, self._bounds), "+Inf"], counts, strict=True):
            so_far += count
            yield f'{self._name}_bucket{{le="{bound}"}} {so_far}'
        yield f"{self._name}_sum {total:g}"
        yield f"{self._name}_count {so_far}"


class Metrics:
    """All that is counted."""

    def __init__(self) -> None:
        self.requests = Count("prbench_requests_total", "Requests answered.")
        self.items = Count("prbench_items_total", "Items scored.")
        self.errors = Count("prbench_errors_total", "Items without a score and requests refused, by kind.")
        self.shared = Count("prbench_items_shared_total", "Items that took the score of an equal one in their batch.")
        self.batches = Histogram("prbench_batch_items", "Items in a batch.", _SIZES)
        self.request_seconds = Histogram("prbench_request_seconds", "From a request to its answer.", _SECONDS)
        self.model_seconds = Histogram("prbench_model_seconds", "Of one call of the model.", _SECONDS)

    def text(self, gauges: Mapping[str, Callable[[], float]]) -> str:
        """Return the whole page of metrics.

        Args:
            gauges: What is read off at this moment, by name.
        """
        lines: list[str] = []
        for counted in vars(self).values():
            lines += counted.lines()
        for name, value in gauges.items():
            lines += [*_head(name, "At this moment.", "gauge"), f"{name} {value():g}"]
        return "\n".join(lines) + "\n"


def _head(name: str, help: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {help}", f"# TYPE {name} {kind}"


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
