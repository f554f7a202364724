"""The leaderboard as one page: plain tables that read without JavaScript, which adds only sorting and filters."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from prbench._version import __version__
from prbench.report.leaderboard.boards import Board, BoardLine, LeftOut
from prbench.report.leaderboard.published import published
from prbench.results import GAIN, SPECIFICITY
from prbench.show import Number, count, interval, percent, points
from prbench.show.page import asset, fill, masthead, shell
from prbench.stats import Estimate, Standing

TITLE = "Leaderboard · prbench"
EFFECTS = (GAIN, SPECIFICITY)
"""Effects that the table has columns for."""
_WIDTH = 92
_ROOM = "prbench.report"
_HEIGHT = 20
_NOT_HERE = Number("", None)
"""An effect compares contexts: it stands beside the user's own profile, and nowhere else."""


def leaderboard_page(
    boards: Sequence[Board], left_out: Sequence[LeftOut] = (), *, files: str | None = "runs", live: bool = False
) -> str:
    """Return the whole page as HTML.

    Args:
        boards: Boards to show.
        left_out: What the page says is not there yet; a public site says nothing of it.
        files: Where the runs' files lie beside the page; None where they do not.
        live: Whether the page may ask its own server.
    """
    links = {f"#{board.slug}": f"{board.suite} · {board.counts.pairs:,} pairs" for board in boards}
    body = fill(
        "leaderboard.html.jinja",
        _ROOM,
        masthead=masthead("#top", {**links, "#published": "Published"}),
        boards=boards,
        left_out=left_out,
        files=files,
        published=published(),
        version=__version__,
        runs=sum(len(board.entries) for board in boards),
        choices=_choices(boards),
        effects=EFFECTS,
        dot=dot,
        rank=rank,
        figures=figures,
        interval=interval,
        percent=percent,
        count=count,
    )
    scripts, styles = [asset("page/js/leaderboard.js", _ROOM)], [asset("page/leaderboard.css", _ROOM)]
    return shell(TITLE, body, scripts, styles, live=live)


def _choices(boards: Sequence[Board]) -> dict[str, list[str]]:
    """Return the fields that can be filtered by, each with the values there are."""
    lines = [line for board in boards for section in board.sections for line in section.lines]
    contexts = dict.fromkeys(section.context for board in boards for section in board.sections)
    return {
        "suite": sorted({board.suite for board in boards}),
        "context": list(contexts),
        "kind": sorted({line.entry.kind for line in lines}),
        "weights": sorted({line.entry.weights for line in lines}),
    }


def rank(standing: Standing | None) -> str:
    """A rank, or the range of ranks that the data leave open.

    Example:
        >>> rank(Standing("a", 0.7, ("a",), 1, 2)), rank(Standing("a", 0.7, ("a",), 1, 1)), rank(None)
        ('1–2', '1', '–')
    """
    if standing is None:
        return "–"
    best, worst = standing.best_rank, standing.worst_rank
    return f"{best}–{worst}" if best < worst else str(best)


def figures(line: BoardLine) -> list[dict[str, Any]]:
    """The cells of a line, after accuracy: text, and what to sort by."""
    measured, effects = line.measured, line.effects
    coverage, couples = measured.coverage, measured.couple_coverage
    cells = [
        *((effect.name, points(effects.of(effect)) if effects else _NOT_HERE) for effect in EFFECTS),
        ("users covered", percent(coverage.covered.value if coverage else None)),
        ("couples", percent(couples.value if couples else None)),
        ("no verdict", percent(measured.without_verdict.value)),
        ("pairs", count(measured.accuracy.n)),
    ]
    return [{"label": label, "text": cell, "value": cell.value} for label, cell in cells]


def dot(estimate: Estimate) -> Markup:
    """A share with its interval on a line from 0 to 100 with chance marked: decoration, the numbers stand beside it."""
    value, low, high = estimate.value, estimate.low, estimate.high
    middle = _HEIGHT / 2
    parts = [
        f'<line class="grid" x1="0" x2="{_WIDTH}" y1="{middle}" y2="{middle}"/>',
        f'<line class="chance" x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="1" y2="{_HEIGHT - 1}"/>',
    ]
    if value is not None:
        tone = "below" if high is not None and high < 0.5 else "quiet" if low is None or low <= 0.5 else ""
        if low is not None and high is not None:
            ends = f'x1="{_WIDTH * low:.1f}" x2="{_WIDTH * high:.1f}"'
            parts.append(f'<line class="whisker {tone}" {ends} y1="{middle}" y2="{middle}"/>')
        parts.append(f'<circle class="mark {tone}" cx="{_WIDTH * value:.1f}" cy="{middle}" r="4"/>')
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return Markup(f'<svg class="dot" {size} aria-hidden="true">{"".join(parts)}</svg>')  # noqa: S704  (numbers only)
