"""Pages of `prbench view`: a report for each suite, and a leaderboard of the runs that are finished."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from prbench.data import DatasetRecord
from prbench.errors import ConfigError, RunError
from prbench.report.leaderboard import find_runs, leaderboard_page, read_boards
from prbench.report.page import report_page
from prbench.results import RunFolder, require_verified

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

    Runs on different suites do not stand on one page, so each suite has its own report. A run whose numbers do not
    follow from its records stands in no report, and on the leaderboard's page only with the reason.
    """
    suites: dict[str, list[Path]] = {}
    for path in _sound(runs):
        suites.setdefault(_suite(path), []).append(path)
    board = read_boards(runs)
    ranked = leaderboard_page(board.boards, board.left_out, files=None, live=True)
    if len(suites) == 1:
        (paths,) = suites.values()
        return {"/": report_page(paths), LEADERBOARD: ranked}
    reports = {f"/report/{name}": report_page(paths) for name, paths in suites.items()}
    return {"/": ranked, **reports}


def _sound(runs: Sequence[Path]) -> list[Path]:
    """The runs that may be shown: those under way, and finished ones that verify; where none does, why."""
    sound: list[Path] = []
    refusals: list[RunError] = []
    for path in runs:
        try:
            if (path / "result.json").is_file():
                require_verified(path)
            sound.append(path)
        except RunError as error:
            refusals.append(error)
    if not sound and refusals:
        raise refusals[0]
    return sound


def _suite(path: Path) -> str:
    """A short name of the suite a run is on, of letters that an address holds as they are."""
    dataset = RunFolder.existing(path).read_model("dataset.json", DatasetRecord)
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in dataset.name)
    return f"{name}-{dataset.fingerprint[:8]}"
