"""A stress test as a table: one line for each change."""

from prbench.show import Table, count, interval, points
from prbench.stress.stress import StressResult


def stress_tables(found: StressResult) -> list[Table]:
    """Everything that is printed of a stress test."""
    rows = [
        [name, one.what, count(one.pairs), interval(one.flips), points(one.difference)]
        for name, one in found.changes.items()
    ]
    title = (
        f"{found.model.address} on {found.suite.name} · context {found.context} · accuracy {interval(found.accuracy)}"
    )
    notes = [
        "Verdicts changed: share of the changed pairs whose winner changes, to or from a tie counting ½. None of these "
        "changes should matter.",
    ]
    columns = ["change", "what", "pairs changed", "verdicts changed [95 %]", "accuracy (points)"]
    return [Table(title, columns, rows, notes, first_numeric=2)]
