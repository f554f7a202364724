"""The command `prbench scorecard`: models side by side, on general quality and on the person."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from prbench.cli.options import Format, FormatOption, QuietOption, RunsFolderOption, settings_of

if TYPE_CHECKING:
    from prbench.scorecard import CurveSheet, Scorecard

EXIT_FAILED = 1


def scorecard(
    model: Annotated[list[str] | None, typer.Option("--model", "-m", help="Model address; repeatable.")] = None,
    oracle: Annotated[
        list[str] | None, typer.Option(help="Model that gets a row with the true rubric shown (leaks); repeatable.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--from", help="TOML file with models and settings.")] = None,
    suite: Annotated[str | None, typer.Option("--suite", "-s", help="Personal pairs; default mirror.")] = None,
    generic: Annotated[
        str | None, typer.Option(help="Pairs of general quality; default generic+posts, or 'none'.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Part of both suites; 'all' for all of it. Default test.")] = None,
    generic_split: Annotated[str | None, typer.Option(help="Part of the generic suite, if it is another one.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many pairs of each suite.")] = None,
    curves: Annotated[
        bool, typer.Option("--curves", help="Also measure accuracy by number of judged pairs and of posts.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Of resampling, of samples and of shots; default 0.")] = None,
    resamples: Annotated[int | None, typer.Option(min=100, help="Bootstrap resamples behind each interval.")] = None,
    latency_pairs: Annotated[int | None, typer.Option(min=0, help="Pairs to time each model on; 0: none.")] = None,
    retime: Annotated[bool, typer.Option("--retime", help="Measure latency anew.")] = False,
    no_baselines: Annotated[
        bool, typer.Option("--no-baselines", help="Leave the content-blind baselines out.")
    ] = False,
    out: RunsFolderOption = None,
    page: Annotated[
        Path | None,
        typer.Option(
            help="Also write a Markdown page with command, machine and date, and its numbers as JSON beside it."
        ),
    ] = None,
    quiet: QuietOption = False,
    format: FormatOption = Format.table,
) -> None:
    """Put models on one scorecard: generic and personalized accuracy, coverage, latency, verdict."""
    typed = locals()
    from prbench import scorecard as room
    from prbench.files import write_whole

    given = settings_of(room.ScorecardConfig, typed) | {"baselines": False if no_baselines else None}
    values = room.read_settings_file(file) if file else {}
    values |= {name: value for name, value in given.items() if value is not None}
    entries = [*room.entries_of(model or []), *room.entries_of(oracle or [], "oracle")]
    settings = room.ScorecardConfig.of(str(file or ""), **{**values, "models": [*values.get("models", []), *entries]})
    where = out or Path("runs") / "scorecard" / f"{Path(settings.suite).stem}-{settings.split}"
    tell = _silent if quiet else _tell
    card = room.make_scorecard(settings, where, quiet=quiet, retime=retime, tell=tell)
    sheet = room.make_curves(settings, where, quiet=quiet, tell=tell) if curves else None
    if page:
        write_whole(page, room.document(card, sheet, _command()))
        write_whole(page.with_suffix(".json"), _json(card, sheet) + "\n")
    _print(card, sheet, format)
    _end(card, where, quiet)


def _print(card: "Scorecard", sheet: "CurveSheet | None", format: Format) -> None:
    from prbench import scorecard as room
    from prbench import show

    if format is Format.json:
        typer.echo(_json(card, sheet))
        return
    tables = [*room.scorecard_tables(card), *(room.curve_tables(sheet) if sheet else [])]
    if format.value in ("table", "md"):
        typer.echo("\n\n".join(row.sentence for row in card.rows if row.sentence) + "\n")
    typer.echo(show.render(tables, cast(show.Format, format.value)))


def _json(card: "Scorecard", sheet: "CurveSheet | None") -> str:
    import json

    data = {**card.model_dump(mode="json"), "curves": sheet and sheet.model_dump(mode="json")}
    return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)


def _end(card: "Scorecard", where: Path, quiet: bool) -> None:
    for row in card.failed:
        if row.trace:
            typer.echo(f"\n{row.name}:\n{row.trace}", err=True)
    if not quiet:
        typer.echo(f"\nscorecard: {where}    (the same command continues it)", err=True)
    if card.failed:
        raise typer.Exit(EXIT_FAILED)


def _command() -> str:
    """Return the command as it was typed."""
    import shlex
    import sys

    return shlex.join(["prbench", *sys.argv[1:]])


def _tell(line: str) -> None:
    typer.echo(f"— {line}", err=True)


def _silent(line: str) -> None:
    pass
