"""Tables of a leaderboard for the command line: the rankings it lists, and what it does not list."""

from prbench.report.leaderboard.boards import Board, BoardFolder, BoardSection
from prbench.report.leaderboard.page import rank
from prbench.show import Table, bar, count, interval


def leaderboard_tables(found: BoardFolder) -> list[Table]:
    """One ranking for each board and context, then the runs that were left out."""
    tables = [_ranking(board, section) for board in found.boards for section in board.sections]
    if found.left_out:
        rows = [[str(item.path), item.reason] for item in found.left_out]
        tables.append(Table("Not listed", ["run", "why"], rows, first_numeric=2))
    return tables


def _ranking(board: Board, section: BoardSection) -> Table:
    rows = [
        [
            line.entry.name,
            line.entry.kind,
            bar(line.measured.accuracy.value),
            interval(line.measured.accuracy),
            rank(line.standing),
            "".join(line.standing.letters) if line.standing else "",
            count(line.measured.accuracy.n),
        ]
        for line in section.lines
    ]
    leaks = " (leaks)" if section.leaks else ""
    title = f"{board.suite} · {board.split} · {board.fingerprint[:8]} · {section.context}{leaks}"
    columns = ["model", "kind", "", "accuracy [95 %]", "rank", "group", "pairs"]
    return Table(title, columns, rows, first_numeric=3)
