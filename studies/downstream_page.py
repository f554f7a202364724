"""Tables and drawing of the second downstream study, from what its last step wrote: docs/lab/downstream-2-tables.md.

python studies/downstream_2.py page
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from people.worlds import write_whole

TABLES = {
    "correlate-endpoint": "The endpoint",
    "best-of-16": "Best of 16",
    "correlate-best-of-4": "Best of 4",
    "correlate-poles-judged": "Answers written under poles, graded by the judge",
    "correlate-poles-instructed": "Answers written under poles, graded by what was asked for",
    "poles-instructed": "Best of 16 by what was asked for",
    "ppo": "PPO",
    "grpo": "GRPO",
}
"""Files of the study's folder, in the order of the page."""
_WIDTH, _HEIGHT, _LEFT, _TOP = 640, 400, 64, 20
_COLOURS = {"contrast": "#1f6feb", "other": "#c2571a"}


def write_pages(folder: Path, page: Path) -> list[Path]:
    """Write the tables that are there, and the drawing of the endpoint beside them."""
    found = {name: folder / f"{name}.md" for name in TABLES if (folder / f"{name}.md").is_file()}
    parts = ["# Tables of [the second downstream study](downstream-2.md)"]
    for name, file in found.items():
        parts += ["", f"## {TABLES[name]}", file.read_text("utf-8").strip()]
    write_whole(page, "\n".join(parts) + "\n")
    drawing = page.with_name("downstream-2.svg")
    (study,) = json.loads((folder / "correlate-endpoint.json").read_text("utf-8"))["studies"]
    write_whole(drawing, scatter([one for one in study["models"] if one["context"] != "none"]))
    return [page, drawing]


def scatter(models: Sequence[Mapping[str, Any]]) -> str:
    """Draw each model by its accuracy on the benchmark and its gain in best-of-16."""
    across = [100 * one["benchmark"] for one in models]
    up = [one["downstream"] - 1 for one in models]
    low, high = min(*across, 48.0) - 1, max(across) + 1
    least, most = min(*up, -0.02) - 0.005, max(up) + 0.005

    def place(x: float, y: float) -> tuple[float, float]:
        right = _LEFT + (x - low) / (high - low) * (_WIDTH - _LEFT - 20)
        return round(right, 1), round(_TOP + (most - y) / (most - least) * (_HEIGHT - _TOP - 50), 1)

    parts = [*_axes(place, low, high, least, most)]
    for one, x, y in zip(models, across, up, strict=True):
        right, down = place(x, y)
        name = one["name"].rpartition("/")[2]
        colour = _COLOURS["contrast" if name.startswith("contrast") else "other"]
        told = escape(f"{name}: {x:.1f} %, {y:+.3f}")
        parts.append(
            f'<circle cx="{right}" cy="{down}" r="5" fill="{colour}" fill-opacity=".75"><title>{told}</title></circle>'
        )
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    font = 'font-family="sans-serif" font-size="13" fill="#57606a"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} role="img">{"".join(parts)}</svg>\n'


def _axes(place: Any, low: float, high: float, least: float, most: float) -> Iterator[str]:
    """Grid, ticks, and what they are of."""
    line = '<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="#8c959f" stroke-opacity=".4"/>'
    for tick in range(-2, 8):
        if least <= tick / 100 <= most:
            start, end = place(low, tick / 100), place(high, tick / 100)
            yield line.format(*start, *end)
            yield f'<text x="{_LEFT - 8}" y="{start[1] + 4}" text-anchor="end">{tick / 100:+.2f}</text>'
    for tick in range(45, 100, 5):
        if low <= tick <= high:
            right, _ = place(tick, least)
            yield f'<text x="{right}" y="{_HEIGHT - 30}" text-anchor="middle">{tick}</text>'
    yield f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">accuracy on mirror, test, in percent</text>'
    yield (
        f'<text x="14" y="{_HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 {_HEIGHT / 2})">'
        "gain of best of 16 over a random answer (0 to 2)</text>"
    )
    for number, (colour, words) in enumerate(zip(_COLOURS.values(), ("contrast", "other methods"), strict=True)):
        yield f'<circle cx="{_LEFT + 20}" cy="{_TOP + 10 + 18 * number}" r="5" fill="{colour}"/>'
        yield f'<text x="{_LEFT + 32}" y="{_TOP + 14 + 18 * number}">{words}</text>'
