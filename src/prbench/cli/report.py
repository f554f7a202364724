"""The command `prbench report`: one self-contained page from runs."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders on the same suite, one model each.", metavar="RUN…")],
    study: Annotated[
        list[Path] | None, typer.Option(help="Folder of a downstream study to show as well; may be repeated.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("report.html"),
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
