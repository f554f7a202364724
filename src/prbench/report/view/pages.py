"""Which pages `prbench view` has: a report for each suite, and a leaderboard of the runs that are finished."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from prbench.data import DatasetRecord
from prbench.errors import ConfigError
from prbench.report.leaderboard import find_runs, gather, leaderboard_page
from prbench.report.page import report_page
from prbench.results import RunFolder

LEADERBOARD = "/leaderboard"


def expand(paths: Sequence[Path]) -> list[Path]:
    """Run folders as given; of any other folder the runs in it."""
    found: list[Path] = []
    for path in paths:
        if (path / "config.toml").is_file():
            found.append(path)
        elif runs := find_runs(path):
            found.extend(runs)
        else:
            raise ConfigError(f"there is no run in {str(path)!r}", hint="`prbench run … -o FOLDER` makes one")
    return list(dict.fromkeys(found))


def build_pages(runs: Sequence[Path]) -> Mapping[str, str]:
    """All pages by address; the first is the one to open.

    Runs on different suites do not stand on one page, so each suite has its own report.
    """
    suites: dict[str, list[Path]] = {}
    for path in runs:
        suites.setdefault(_suite(path), []).append(path)
    board = gather(runs)
    ranked = leaderboard_page(board.boards, board.left_out, files=None, live=True)
    if len(suites) == 1:
        return {"/": report_page(runs), LEADERBOARD: ranked}
    reports = {f"/report/{name}": report_page(paths) for name, paths in suites.items()}
    return {"/": ranked, **reports}


def _suite(path: Path) -> str:
    """A short name of the suite a run is on, of letters that an address holds as they are."""
    dataset = RunFolder.existing(path).read_model("dataset.json", DatasetRecord)
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in dataset.name)
    return f"{name}-{dataset.fingerprint[:8]}"
