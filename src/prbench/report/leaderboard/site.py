"""The leaderboard as a folder: the page, each run's configuration and result, and all rows as JSON.

The site is made whole beside its place and then put there, so a reader never meets half of one. A folder that is not
a site of ours is left alone, and so is what others have put beside a site (`CNAME`, `.git`).
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from prbench.errors import ConfigError
from prbench.files import read_bytes, replacing_folder, write_json, write_whole
from prbench.report.leaderboard.boards import Board, BoardFolder, BoardLine, read_board_folder
from prbench.report.leaderboard.entry import BoardEntry
from prbench.report.leaderboard.page import leaderboard_page

INDEX = "index.html"
ROWS = "leaderboard.json"
RUNS = "runs"
_FILES = ("config.toml", "result.json", "dataset.json")


def write_site(results: Path, out: Path, listener: Callable[[Path], None] | None = None) -> BoardFolder:
    """Make a site of a folder of runs; returns what was listed and what was not.

    Args:
        results: A folder of run folders.
        out: The site's folder; a former site there is replaced.
        listener: Hears of each run before it is verified.
    """
    _refuse_foreign(out)
    found = read_board_folder(results, listener)
    if not found.boards and not found.left_out:
        raise ConfigError(f"there is no run in {str(results)!r}", hint="`prbench run … -o FOLDER` makes one")
    with replacing_folder(out, ours=(INDEX, ROWS, RUNS)) as made:
        _fill(made, found)
    return found


def _refuse_foreign(out: Path) -> None:
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / ROWS).is_file())):
        raise ConfigError(
            f"{str(out)!r} is not empty and not a leaderboard: nothing in it was touched",
            hint="give the site a folder of its own with -o",
        )


def _fill(folder: Path, found: BoardFolder) -> None:
    entries = [entry for board in found.boards for entry in board.entries]
    for entry in entries:
        _copy(entry, folder / RUNS / entry.slug)
    write_json(folder / ROWS, rows(found.boards), indent=1)
    write_whole(folder / INDEX, leaderboard_page(found.boards))


def _copy(entry: BoardEntry, folder: Path) -> None:
    for name in _FILES:
        write_whole(folder / name, read_bytes(entry.run.loaded.path / name))


def rows(boards: Iterable[Board]) -> list[dict[str, Any]]:
    """Every line of every board as JSON values."""
    return [
        _row(board, section.context, section.leaks, line)
        for board in boards
        for section in board.sections
        for line in section.lines
    ]


def _row(board: Board, context: str, leaks: bool, line: BoardLine) -> dict[str, Any]:
    entry, standing = line.entry, line.standing
    return {
        "suite": board.suite,
        "split": board.split,
        "suite_fingerprint": board.fingerprint,
        "context": context,
        "leaks": leaks,
        "model": entry.result.model.address,
        "name": entry.name,
        "revision": entry.result.model.revision,
        "kind": entry.kind,
        "weights": entry.weights,
        "accuracy": line.measured.accuracy.to_json(),
        "best_rank": standing.best_rank if standing else None,
        "worst_rank": standing.worst_rank if standing else None,
        "group": "".join(standing.letters) if standing else None,
        "effects": line.effects.model_dump(mode="json", exclude_unset=True) if line.effects else {},
        "records_fingerprint": entry.run.records_fingerprint,
        "command": entry.command,
        "config": f"{RUNS}/{entry.slug}/config.toml",
        "finished": entry.result.finished,
    }
