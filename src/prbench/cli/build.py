"""The commands below `prbench build`: suites out of what teams already have."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prbench.cli.options import ColumnOption, SuiteFolderOption, read_columns, settings_of
from prbench.cli.write import aspects, pairs

if TYPE_CHECKING:
    from prbench.build import MirrorCard

build_app = typer.Typer(
    name="build", help="Make a suite of your own.", no_args_is_help=True, rich_markup_mode=None, add_completion=False
)


@build_app.callback()
def _root() -> None:
    """Make a suite of your own."""


build_app.command()(aspects)
build_app.command()(pairs)


@build_app.command()
def mirror(
    log: Annotated[Path, typer.Argument(help="Ratings (user, item, rating) or judgments (user, a, b, choice).")],
    items: Annotated[Path, typer.Option("--items", help="The texts: id, text, perhaps topic and stance.")],
    out: SuiteFolderOption,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    min_gap: Annotated[
        float | None, typer.Option(help="How far two ratings lie apart in a preference; default: a fifth of the range.")
    ] = None,
    question: Annotated[
        str | None, typer.Option(help="The question asked; {topic} and {stance} are filled in.")
    ] = None,
    column: ColumnOption = None,
    splits: Annotated[str, typer.Option(help="Shares of train, validation and test.")] = "60/20/20",
    max_pairs: Annotated[int, typer.Option(min=0, help="Most pairs in all; 0: no bound.")] = 20_000,
    max_per_user: Annotated[int, typer.Option(min=0, help="Most pairs of a user in a split; 0: no bound.")] = 100,
    max_posts: Annotated[int, typer.Option(min=1, help="Most posts in a profile.")] = 40,
    context_share: Annotated[float, typer.Option(help="Part of a user's judgments that becomes the profile.")] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the data card as JSON.")] = False,
) -> None:
    """Make a mirrored suite out of a log: a model that ignores the user scores exactly 50 %."""
    given = locals()
    from prbench.build import MirrorConfig, build_mirror, parse_splits

    unbounded = {"max_pairs": max_pairs or None, "max_per_user": max_per_user or None}
    read = {"columns": read_columns(column), "splits": parse_splits(splits)}
    options = MirrorConfig.of("--", **settings_of(MirrorConfig, given) | unbounded | read)
    card = build_mirror(log, items, out, options).card
    typer.echo(card.model_dump_json(indent=2) if as_json else _summary(card, out))


def _summary(card: "MirrorCard", out: Path) -> str:
    from prbench.show import Table, render

    splits = [
        [name, *(f"{count:,}" for count in (split.pairs, split.users, split.items, split.item_pairs))]
        for name, split in card.splits.items()
    ]
    dropped = [[reason, f"{count:,}"] for reason, count in card.dropped.items()]
    mirrorable, least = card.mirrorable, "at least " if card.kind == "ratings" else ""
    notes = [
        f"read {card.log.rows:,} {card.kind} of {card.users:,} users; before context and splits, {least}"
        f"{mirrorable['judgments']:,} judgments on {mirrorable['disputed']:,} disputed item pairs could be mirrored",
        "a model that ignores the user scores exactly 50 % in every split "
        f"(counted with {card.exactness.scorers} scorers)",
    ]
    train, validation, test = card.options.splits
    wanted = dict(zip(card.splits, (train, validation, test, train * test), strict=True))
    if empty := [name for name, split in card.splits.items() if wanted[name] and not split.pairs]:
        notes.append(f"empty: {', '.join(empty)}; more judgments per user, or other --splits, would fill it")
    tables = [Table("Mirrored suite", ["split", "pairs", "users", "items", "item pairs"], splits, notes)]
    if dropped:
        tables.append(Table("Left out", ["what", "count"], dropped))
    return render(tables, "table") + f"\n\nsuite: {out / 'pairs.parquet'}    (prbench run --suite {out}/pairs.parquet)"
