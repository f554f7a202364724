"""The command `prbench leaderboard`: a static site from a folder of runs."""

import json
import sys
from pathlib import Path
from typing import Annotated, cast

import typer

from prbench.cli.app import Format, FormatOption


def leaderboard(
    results: Annotated[Path, typer.Argument(help="A folder of run folders.", metavar="RESULTS")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The site's folder.")],
    format: FormatOption = Format.table,
) -> None:
    """Make a static leaderboard of all runs in a folder that can be computed again; says which cannot, and why."""
    from prbench.report.leaderboard import write_site
    from prbench.report.leaderboard.board_tables import leaderboard_tables
    from prbench.report.leaderboard.site import rows
    from prbench.show import Format as Shown
    from prbench.show import render

    found = write_site(results, out, lambda path: print(f"verifying {path} …", file=sys.stderr))
    if format is Format.json:
        not_listed = [{"run": str(item.path), "why": item.reason} for item in found.left_out]
        typer.echo(json.dumps({"rows": rows(found.boards), "not_listed": not_listed}, ensure_ascii=False, indent=2))
    else:
        typer.echo(render(leaderboard_tables(found), cast(Shown, format.value)))
    print(f"\nsite: {out / 'index.html'}", file=sys.stderr)
