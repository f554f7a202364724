"""The leaderboard of docs/leaderboard.md: every model that runs from the package index, under every context it reads.

    make leaderboard-page         # or: python studies/leaderboard.py [--suite …] [--only WORD]

Each row is one `prbench run` in a process of its own, one after another. What is finished is not asked again, so the
same command continues after any stop, and after a change of the suite makes everything anew (runs lie in a folder named
by the suite's fingerprint). Language models are slow here: all models also run on a small sample of whole couples, and
language models on it alone. At the end the runs are verified and the page is written.
"""

import argparse
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from prbench.data import load_pairs
from prbench.files import read_json, write_json, write_whole
from prbench.models import load_model
from prbench.report.leaderboard.board_tables import leaderboard_tables
from prbench.report.leaderboard.boards import read_board_folder
from prbench.results import load_run
from prbench.show import render

ROOT = Path(__file__).resolve().parents[1]
POSTS = "none,profile,retrieved@5,recent@4,diluted@12,other,opposite"
SAMPLE = 12
"""Pairs of the sample: whole couples, the same for all models."""


class BoardRow(NamedTuple):
    """One run: a model, its contexts, and the sample where it has one."""

    address: str
    contexts: str = "none"
    limit: int | None = None
    options: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Name of its run folder."""
        kept = "".join(letter if letter.isalnum() else "-" for letter in self.address).strip("-")
        kept = f"{kept}-pairs" if "pairs@" in self.contexts else kept
        return f"{kept}-{self.limit}" if self.limit else kept


CHEAP = (
    BoardRow("random"),
    BoardRow("longer"),
    BoardRow("shorter"),
    BoardRow("overlap"),
    BoardRow("embed:minilm", POSTS),
    BoardRow("personal:reference", f"{POSTS},oracle"),
)
JUDGED = BoardRow("personal:reference", "none,profile,pairs@4")
"""A run of its own: the pairs that it shows are set aside under all contexts."""
READINGS = {"compare": "other,opposite,", "rate": "", "rank": "", "yes-no": "", "loglik": "", "pmi": ""}
"""Ways to read the language model, with contexts beside those that all are run under."""
ROWS = (
    *CHEAP,
    JUDGED,
    *(row._replace(limit=SAMPLE) for row in CHEAP),
    *(
        BoardRow(f"lm:smollm2#{reading}", f"none,profile,{more}oracle", SAMPLE, ("--window", "768"))
        for reading, more in READINGS.items()
    ),
    BoardRow("jury:personal:reference,embed:minilm,overlap", "none,profile", SAMPLE),
)


def make(
    rows: Sequence[BoardRow], work: Path, page: Path, suite: str = "mirror", say: Callable[[str], None] = print
) -> None:
    """Run what is missing, one model after another, and write the page."""
    fingerprint = load_pairs(suite, split="test").record.fingerprint
    folder = work / fingerprint[:12]
    times = folder / "seconds.json"
    taken: dict[str, float] = read_json(times) if times.exists() else {}
    for number, row in enumerate(rows, 1):
        out = folder / "runs" / row.folder
        if _is_made(row, out):
            continue
        say(f"{number} of {len(rows)}: {row.address}, {row.contexts}" + (f", {row.limit} pairs" if row.limit else ""))
        taken[row.folder] = taken.get(row.folder, 0.0) + _run(row, out, suite)
        write_json(times, taken)
    write_whole(page, _page(folder / "runs", taken).encode())
    say(f"page: {page}")


def _run(row: BoardRow, out: Path, suite: str) -> float:
    """One run; returns its processor seconds."""
    limit = ["--limit", str(row.limit)] if row.limit else []
    command = ["-m", "prbench", "run", "-m", row.address, "-s", suite, "-c", row.contexts, "-o", str(out), "--quiet"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command, *limit, *row.options], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def _is_made(row: BoardRow, out: Path) -> bool:
    """Whether the run is there, of the model as it is now; one of another revision is set aside."""
    if not (out / "result.json").exists():
        return False
    if load_run(out).result.model.revision == load_model(row.address).card.revision:
        return True
    aside = out.parents[1] / "before" / f"{datetime.now(UTC):%Y%m%d%H%M%S}-{out.name}"
    aside.parent.mkdir(exist_ok=True)
    out.rename(aside)
    return False


def _page(runs: Path, taken: dict[str, float]) -> str:
    found = read_board_folder(runs)
    tables = render([table for table in leaderboard_tables(found) if table.title != "Not listed"], "md")
    left_out = "\n".join(f"- `{item.path.name}`: {item.reason}" for item in found.left_out)
    boards = "\n".join(
        f"- **{board.counts.pairs:,} pairs**, {board.counts.users} users, fingerprint `{board.fingerprint[:8]}`: "
        f"{len({line.entry.name for section in board.sections for line in section.lines})} models"
        for board in found.boards
    )
    load = "not known" if not hasattr(os, "getloadavg") else f"{os.getloadavg()[1]:.1f}"
    return f"""# Leaderboard

Every model that runs here without a key, a GPU or a download from a model hub, under every context that it reads.
Made by `make leaderboard-page` and by nothing else; the commands of all runs are in the run folders that it leaves
in `runs/leaderboard`.

| | |
|---|---|
| made at | {datetime.now(UTC):%Y-%m-%d %H:%M} UTC |
| machine | {os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()} |
| load while it was written | {load} (of the last five minutes; other work ran beside it where this is above 1) |
| processor time of all runs | {sum(taken.values()) / 60:.0f} minutes of one core, model files loaded from disk |

There are two boards, because language models are slow on a plain processor: they judge a small sample of whole
couples (`--limit {SAMPLE}`, posts that fit 768 tokens), on which intervals are wide and nothing short of a
landslide shows. All other models judge the whole test split too.

{boards}

Not here: `plan` and `profile+plan` (a planner that is worth reading does not run here), `hf:`, `dpo:` and `chat:`
(no real weights or endpoint can be had here; their tests use tiny checkpoints and scripted servers). A row under
`oracle` is shown the true rubric and leaks. Ranks are ranges that the data leave open; rows that share a letter are
not told apart.

{tables.rstrip()}
{"" if not left_out else f"{chr(10)}## Not listed{chr(10)}{left_out}{chr(10)}"}"""


def main() -> None:
    """Make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="mirror")
    parser.add_argument("--only", default="", help="rows whose address holds this; the page shows all finished runs")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "leaderboard")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "leaderboard.md")
    asked = parser.parse_args()
    make([row for row in ROWS if asked.only in row.address], asked.work, asked.page, asked.suite)


if __name__ == "__main__":
    main()
