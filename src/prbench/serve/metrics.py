"""Metrics of the server, in the text form that Prometheus reads.

Each server has a registry of its own, so that several in one process do not add up and none shows in the registry of
the program that it is part of.
"""

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """All that is counted."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = self._counter("prbench_requests_total", "Requests answered.", "path", "status")
        self.items = self._counter("prbench_items_total", "Items scored.")
        self.errors = self._counter(
            "prbench_errors_total", "Items without a score and requests refused, by kind.", "kind"
        )
        self.shared = self._counter(
            "prbench_items_shared_total", "Items that took the score of an equal one in their batch."
        )
        self.batches = self._histogram("prbench_batch_items", "Items in a batch.", _SIZES)
        self.request_seconds = self._histogram("prbench_request_seconds", "From a request to its answer.", _SECONDS)
        self.model_seconds = self._histogram("prbench_model_seconds", "Of one call of the model.", _SECONDS)

    def watch(self, name: str, value: Callable[[], float]) -> None:
        """Show a value that is read off at the moment of asking."""
        Gauge(name, "At this moment.", registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """Return the whole page of metrics.

        Example:
            >>> metrics = Metrics()
            >>> metrics.items.inc(2)
            >>> b"prbench_items_total 2.0" in metrics.text().splitlines()
            True
        """
        return generate_latest(self._registry)

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(name, help, labels, registry=self._registry)

    def _histogram(self, name: str, help: str, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(name, help, buckets=bounds, registry=self._registry)
