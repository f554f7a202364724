"""The commands that show runs: `report`, `leaderboard`, `view`, and `export` for other tools."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

import typer

from prbench.cli.options import Format, FormatOption, PageOption


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders on the same suite, one model each.", metavar="RUN…")],
    study: Annotated[
        list[Path] | None, typer.Option(help="Folder of a downstream study to show as well; may be repeated.")
    ] = None,
    out: PageOption = Path("report.html"),
    texts: Annotated[bool, typer.Option(help="Whether questions, answers, posts and rubrics go into the page.")] = True,
    max_mb: Annotated[
        float, typer.Option(min=2, help="Longest posts and replies are cut to keep the file below.")
    ] = 24,
) -> None:
    """Make one self-contained HTML file: ranking, charts, every pair. Mail it, open it offline."""
    from prbench.files import write_whole
    from prbench.report.page import report_page

    sections = []
    if study:
        from prbench.studies.sections import study_sections

        sections = study_sections(study)
    page = report_page(runs, sections=sections, with_texts=texts, max_bytes=int(max_mb * 1e6))
    write_whole(out, page)
    typer.echo(f"{out} ({len(page.encode()) / 1e6:.1f} MB): open it in a browser; it needs no network")


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


class Target(StrEnum):
    """Forms of an export."""

    parquet = "parquet"
    csv = "csv"
    inspect = "inspect"
    hub_eval_results = "hub-eval-results"
    model_card = "model-card"


def export(
    run: Annotated[Path, typer.Argument(help="A finished run folder.", metavar="RUN")],
    to: Annotated[Target, typer.Option("--to", help="Which form.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File; for hub-eval-results the folder of the model's repository.")
    ],
    dataset_id: Annotated[
        str | None,
        typer.Option(help="For hub-eval-results: the benchmark's ORG/NAME on the hub, where the suite has none."),
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="For parquet and csv: question and answers in each row.")
    ] = False,
) -> None:
    """Write a finished run as Parquet, CSV, Inspect log, hub evaluation results or model-card section."""
    from prbench.report.export import export as write

    for path in write(run, to.value, out, dataset_id=dataset_id, texts=texts):
        typer.echo(f"wrote {path}")
