"""The commands below `prbench annotate`: people judge pairs on a web page, and what that carries."""

import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from prbench.cli import options as shared
from prbench.cli.options import Format, read_columns, whole

if TYPE_CHECKING:
    from prbench.annotate.study import Opened
    from prbench.data import Suite

DEFAULT_ANNOTATORS = 3


class ServeByDefault(TyperGroup):
    """`prbench annotate SUITE` is `prbench annotate serve SUITE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command's name where only its words stand."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["serve", *args]
        return super().parse_args(ctx, args)


annotate_app = typer.Typer(
    name="annotate",
    help="Let people judge pairs on a web page: prbench annotate SUITE [OPTIONS] (see serve --help).",
    cls=ServeByDefault,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


class ModeName(StrEnum):
    """Modes of a study: for whom people judge."""

    pairs = "pairs"
    self = "self"


StudyArgument = Annotated[Path, typer.Argument(help="The study's file.", metavar="ANNOTATIONS.sqlite")]


@annotate_app.callback()
def _root() -> None:
    """Let people judge pairs on a web page."""


@annotate_app.command()
def serve(
    suite: Annotated[str, typer.Argument(help="Suite name, file or folder.", metavar="SUITE")],
    port: shared.PortOption = 8765,
    db: Annotated[Path, typer.Option(help="The study's file; one that is there is continued.")] = Path(
        "annotations.sqlite"
    ),
    annotators: Annotated[int | None, typer.Option(min=1, help="How many people; default: 3.")] = None,
    names: Annotated[str | None, typer.Option(help="Their names instead, as in ann,bob.")] = None,
    pairs: Annotated[int, typer.Option(min=0, help="At most so many pairs; 0: all of them.")] = 50,
    overlap: Annotated[int | None, typer.Option(min=1, help="How many annotators see each pair; default: all.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sample, who sees what, and the orders.")] = 0,
    mode: Annotated[
        ModeName, typer.Option(help="pairs: for the user who asked; self: with posts of their own, for themselves.")
    ] = ModeName.pairs,
    split: shared.SplitOption = "all",
    column: shared.ColumnOption = None,
    new_links: Annotated[
        bool, typer.Option("--new-links", help="New invitation links; the old ones stop working.")
    ] = False,
    host: Annotated[str, typer.Option(help="Listen on this address instead of this machine only.")] = "127.0.0.1",
    url: Annotated[str | None, typer.Option(help="How people reach the server, if not http://HOST:PORT.")] = None,
) -> None:
    """Serve the page and print one invitation link for each annotator."""
    from prbench.annotate import serve as server
    from prbench.annotate.study import AnnotationConfig, open_study

    server.require_extra()
    options = AnnotationConfig.of(
        "--", mode=mode.value, names=_names(annotators, names), pairs=pairs or None, overlap=overlap, seed=seed
    )
    place = server.listen(host, port, url)
    try:
        opened = open_study(db, _load(suite, split, column or []), options)
        _announce(opened, place, host, new_links)
        with suppress(KeyboardInterrupt):  # raised again once the server has shut down
            server.serve(opened.store, place)
        print("\nstopped; the same command continues", file=sys.stderr)
    finally:
        place.listener.close()


@annotate_app.command()
def report(
    study: StudyArgument,
    margin: Annotated[float, typer.Option(min=0.01, max=4, help="Ratings this close count as equal quality.")] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    resamples: shared.ResamplesOption = 2000,
    out: shared.JsonFileOption = None,
    format: shared.FormatOption = Format.table,
) -> None:
    """Say what the annotations carry: quality, preference, agreement, and whether the paper's claim holds here."""
    import json
    from typing import cast

    from prbench import annotate
    from prbench.show import Format as Shown
    from prbench.show import render

    found = annotate.find(annotate.Store.existing(study), margin=margin, seed=seed, resamples=resamples)
    text = json.dumps(found.to_json(), ensure_ascii=False, indent=2, allow_nan=False)
    typer.echo(text if format is Format.json else render(annotate.tables(found), cast(Shown, format.value)))
    if out is not None:
        from prbench.files import write_whole

        write_whole(out, text + "\n")
        print(f"\nwritten: {out}", file=sys.stderr)


@annotate_app.command()
def export(
    study: StudyArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder.")],
) -> None:
    """Write the annotations; of mode self also what `prbench build mirror` reads."""
    from prbench import annotate

    for path, rows in annotate.export(annotate.Store.existing(study), out).items():
        typer.echo(f"{path}    {rows:,} rows")
    if (out / "judgments.jsonl").is_file():
        typer.echo(f"\nprbench build mirror {out}/judgments.jsonl --items {out}/items.jsonl -o SUITE")


def _names(annotators: int | None, names: str | None) -> tuple[str, ...]:
    from prbench.errors import ConfigError

    if names is None:
        return tuple(f"annotator-{number + 1}" for number in range(annotators or DEFAULT_ANNOTATORS))
    listed = tuple(name.strip() for name in names.split(","))
    if annotators not in (None, len(listed)):
        raise ConfigError(f"--annotators {annotators}, but --names has {len(listed)}", hint="give one of the two")
    return listed


def _load(suite: str, split: str, column: list[str]) -> "Suite":
    from prbench.data import load_pairs

    built = [Path(suite, name) for name in ("pairs.parquet", "pairs.jsonl")]
    source = next((str(path) for path in built if path.is_file()), suite)  # a folder that `prbench build` made
    return load_pairs(source, split=whole(split), columns=read_columns(column))


def _announce(opened: "Opened", place: Any, host: str, new_links: bool) -> None:
    from prbench.annotate import serve as server
    from prbench.annotate.study import renew_invitations
    from prbench.web import is_loopback

    study = opened.study
    if not is_loopback(host) and not place.url.startswith("https:"):
        print(
            f"warning: {host} can be reached from other machines, and links and answers travel unencrypted; "
            "better put a TLS proxy before this server and name it with --url https://…",
            file=sys.stderr,
        )
    shown = f"{study.pairs} pairs of {study.dataset.name}, each seen by {study.overlap}"
    invitations = opened.invitations or (renew_invitations(opened.store) if new_links else ())
    if invitations:
        typer.echo(f"study: {opened.store.path}    ({shown})\none link for each person, for that person alone:")
        typer.echo("\n".join(server.links(place, invitations)))
    else:
        typer.echo(f"study continued: {opened.store.path}    ({shown})")
        typer.echo(f"the links that were printed first still work at {place.url} (--new-links makes new ones)")
    typer.echo(f"listening on {place.url}    (Ctrl-C stops; the same command continues)")
    sys.stdout.flush()
