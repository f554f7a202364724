"""LEADERBOARD: a static site from a folder of runs, the same for a laptop and for the public.

A run that `prbench verify` cannot recompute is not listed, and the command says why. Runs on different pairs stand on
different boards. Figures published by others have a table of their own.
"""

from prbench.report.leaderboard.boards import Board, BoardFolder, LeftOut, find_runs, read_boards
from prbench.report.leaderboard.page import leaderboard_page
from prbench.report.leaderboard.published import PublishedFigure, published
from prbench.report.leaderboard.site import write_site

__all__ = [
    "Board",
    "BoardFolder",
    "LeftOut",
    "PublishedFigure",
    "find_runs",
    "leaderboard_page",
    "published",
    "read_boards",
    "write_site",
]
