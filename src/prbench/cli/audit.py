"""The command `prbench audit`: checks whether a suite is sound."""

from pathlib import Path
from typing import Annotated, cast

import typer

from prbench.cli.options import ColumnOption, Format, FormatOption, RevisionOption, SplitOption, read_columns, whole

EXIT_FAILED = 1


def audit(
    suite: Annotated[str, typer.Argument(help="Suite name, file, or NAME=FOLDER.", metavar="SUITE")] = "mirror",
    split: SplitOption = "all",
    people: Annotated[
        Path | None, typer.Option(help="TOML, JSON or CSV with attributes of users, to test stances against.")
    ] = None,
    rater: Annotated[
        list[str] | None, typer.Option(help="Also ask this model without showing the user; repeatable.")
    ] = None,
    check: Annotated[
        list[str] | None, typer.Option(help="Only this check, by the name it has in the table; repeatable.")
    ] = None,
    settings: Annotated[Path | None, typer.Option(help="TOML with thresholds and exemptions of axes.")] = None,
    examples: Annotated[int, typer.Option(min=0, help="How many offences to show of each figure.")] = 3,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also write the audit to this JSON file.")] = None,
    column: ColumnOption = None,
    revision: RevisionOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Check a suite: balance, duplicates, leaks, evidence, splits, stances; exit 1 if a check fails."""
    import json

    from prbench import audit as room
    from prbench.data import load_pairs
    from prbench.show import Format as Shown
    from prbench.show import render

    pairs = load_pairs(suite, split=whole(split), columns=read_columns(column), revision=revision)
    found = room.audit(
        pairs,
        settings=room.load_settings(settings) if settings else None,
        people=room.load_people(people, {pair.user for pair in pairs}) if people else None,
        raters=rater or (),
        checks=check or (),
    )
    data = json.dumps(found.to_json(examples), ensure_ascii=False, indent=2, allow_nan=False)
    if out:
        from prbench.files import write_whole

        write_whole(out, data + "\n")
    typer.echo(data if format is Format.json else render(room.audit_tables(found, examples), cast(Shown, format.value)))
    if found.failed:
        raise typer.Exit(EXIT_FAILED)
