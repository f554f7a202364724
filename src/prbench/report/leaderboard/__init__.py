"""LEADERBOARD: a static site from a folder of runs, the same for a laptop and for the public.

A run that `prbench verify` cannot recompute is not listed, and the command says why. Runs on different pairs stand on
different boards. Figures published by others have a table of their own.
"""

from prbench.report.leaderboard.boards import Board, Gathered, LeftOut, find_runs, gather
from prbench.report.leaderboard.page import leaderboard_page
from prbench.report.leaderboard.published import Published, published
from prbench.report.leaderboard.site import write_site

__all__ = [
    "Board",
    "Gathered",
    "LeftOut",
    "Published",
    "find_runs",
    "gather",
    "leaderboard_page",
    "published",
    "write_site",
]
