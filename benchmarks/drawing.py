"""Draws how time and memory grow, from what the other benchmarks kept.

    python benchmarks/drawing.py [--kept docs/performance.json] [--out docs/performance.svg]

`growth.py --keep FILE` and `engine.py --keep FILE` put their figures there. Each panel shows a cost for one unit (a
thousand pairs, a token, a candidate, a model), so that a level line is linear growth and a falling one is better.
"""

import argparse
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from prbench.show.charts.lines import ChartLine, LinePoint, line_chart, line_sheet

KEPT = Path("docs") / "performance.json"


class Panel(NamedTuple):
    """One chart: what was counted, and what one unit of it cost."""

    kept: str
    """Name under which a benchmark kept it: rows of a size and a cost in all."""
    title: str
    across: str
    unit: float
    """So many of what was counted are one unit."""
    scale: float
    """Factor from the cost that was kept to the one that is drawn."""
    digits: int


PANELS = (
    Panel("run: seconds by pairs", "run: seconds per 1,000 pairs", "pairs, thousands", 1_000, 1, 2),
    Panel("run: megabytes by pairs", "run: peak MB per 1,000 pairs", "pairs, thousands", 1_000, 1, 0),
    Panel("verify: seconds by pairs", "verify: seconds per 1,000 pairs", "pairs, thousands", 1_000, 1, 2),
    Panel("report: seconds by pairs", "report: seconds per 1,000 pairs", "pairs, thousands", 1_000, 1, 2),
    Panel("report: seconds by models", "report: seconds per model, 10,000 pairs", "models", 1, 1, 1),
    Panel("engine: seconds by profile", "engine: ms per token of a pair's prompt", "tokens", 1, 1_000, 2),
    Panel("engine: seconds by candidates", "engine: ms per candidate, one profile", "candidates", 1, 1_000, 0),
)


def keep(file: Path | None, **series: Sequence[tuple[float, float]]) -> None:
    """Put rows of size and cost into a file, beside those of other benchmarks; without a file do nothing."""
    if file is None:
        return
    known = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    now = {"measured": datetime.now(UTC).date().isoformat(), "load": round(os.getloadavg()[0], 1)}
    known |= {name: {**now, "rows": [[size, round(cost, 4)] for size, cost in rows]} for name, rows in series.items()}
    file.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", "utf-8")


def draw(kept: dict[str, dict[str, list[list[float]]]]) -> str:
    """All panels for which figures are there, as one drawing."""
    charts = []
    for panel in PANELS:
        if panel.kept in kept:
            rows = kept[panel.kept]["rows"]
            points = [LinePoint(size / panel.unit, panel.scale * cost * panel.unit / size) for size, cost in rows]
            highest = max(point.value for point in points)
            charts.append(
                line_chart(
                    panel.title,
                    [ChartLine(panel.kept, points)],
                    across=panel.across,
                    what="Growth",
                    logarithmic=True,
                    digits=panel.digits,
                    bounds=(0.0, highest),
                )
            )
    return line_sheet(charts)


def main() -> None:
    """Read what was kept and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kept", type=Path, default=KEPT)
    parser.add_argument("--out", type=Path, default=KEPT.with_suffix(".svg"))
    given = parser.parse_args()
    given.out.write_text(draw(json.loads(given.kept.read_text("utf-8"))), "utf-8")
    print(given.out)


if __name__ == "__main__":
    main()
