"""The command `prbench view`: look at runs in the browser while they go on."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def view(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of them.", metavar="RUN…")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="A free one is taken if this one is not.")] = 7357,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only say where the pages are.")] = False,
) -> None:
    """Serve report and leaderboard on this machine only, and keep them up to date while a run goes on."""
    import threading
    import webbrowser

    from prbench.report.view import LivePages, build_pages, expand, serve

    print("making the pages …", file=sys.stderr)
    live = LivePages(expand(runs), build_pages)
    try:
        with serve(live, port) as server:
            if port not in (0, server.port):
                print(f"note: port {port} is taken", file=sys.stderr)
            typer.echo(f"{server.url}    (Ctrl-C stops it)")
            if not no_browser:
                webbrowser.open(server.url)
            threading.Event().wait()
    except KeyboardInterrupt:  # also one that comes while the pages are just up
        print("\nstopped", file=sys.stderr)
