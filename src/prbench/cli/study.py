"""The commands below `prbench study`: whether the benchmark's ranking carries over to downstream use."""

import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from prbench.cli.best_of_n import best_of_n
from prbench.cli.options import Format, FormatOption, JsonFileOption, PageOption, ResamplesOption, settings_of
from prbench.cli.ppo import ppo

_ENOUGH = 0.8
"""The power from which on a study is worth its hours."""

study_app = typer.Typer(
    name="study",
    help="Does a better score give a better policy?",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@study_app.callback()
def _root() -> None:
    """Does a better score give a better policy?"""


class ListOptions(TyperCommand):
    """A command without arguments, whose repeatable options take all words up to the next: `--benchmark runs/*`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its words."""
        lists = {name for parameter in self.params if getattr(parameter, "multiple", False) for name in parameter.opts}
        return super().parse_args(ctx, list(spread(args, lists)))


def spread(words: Sequence[str], lists: Collection[str]) -> Iterator[str]:
    """Put the name of a list option before every one of its values.

    Example:
        >>> list(spread(["--runs", "a", "b", "--seed", "3"], {"--runs"}))
        ['--runs', 'a', '--runs', 'b', '--seed', '3']
    """
    option, filled = None, False
    for word in words:
        if word.startswith("-"):
            option, filled = (word if word in lists else None), False
        elif option is not None:
            if filled:
                yield option
            filled = True
        yield word


study_app.command("best-of-n", cls=ListOptions)(best_of_n)
study_app.command("ppo", cls=ListOptions)(ppo)


@study_app.command(cls=ListOptions)
def correlate(
    benchmark: Annotated[list[Path], typer.Option(help="Runs on one suite, or a folder of them.", metavar="RUNS…")],
    downstream: Annotated[list[Path], typer.Option(help="study.json files or folders.", metavar="STUDIES…")],
    baseline: Annotated[
        list[Path] | None, typer.Option(help="Runs of the same models on rival suites.", metavar="RUNS…")
    ] = None,
    context: Annotated[str, typer.Option(help="Of the benchmark, where a study does not say.")] = "profile",
    baseline_context: Annotated[
        str | None, typer.Option(help="Of the rivals; default: the benchmark's, else none.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")] = 0,
    resamples: ResamplesOption = 2000,
    permutations: Annotated[int, typer.Option(min=100, help="Orders drawn for p, beyond 8 models.")] = 10_000,
    describe: Annotated[bool, typer.Option("--describe", help="Figures only, without a verdict.")] = False,
    out: JsonFileOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Correlate a benchmark's ranking of reward models with what they did downstream, with its uncertainty."""
    given = locals()
    import json
    from typing import cast

    from prbench import show
    from prbench.studies import CorrelateConfig, correlation_tables
    from prbench.studies import correlate as compute

    options = CorrelateConfig.typed(**settings_of(CorrelateConfig, given))
    found = compute(benchmark, downstream, baseline or (), options)
    text = json.dumps(found.to_json(), ensure_ascii=False, indent=2, allow_nan=False)
    typer.echo(
        text if format is Format.json else show.render(correlation_tables(found), cast(show.Format, format.value))
    )
    if out is not None:
        from prbench.files import write_whole

        write_whole(out, text + "\n")
        print(f"\nwritten: {out}", file=sys.stderr)


@study_app.command()
def power(
    models: Annotated[int, typer.Option(min=4, help="Reward models that read the user.")] = 24,
    spread: Annotated[float, typer.Option(min=0, help="Standard deviation of their accuracy, in points.")] = 7.0,
    couples: Annotated[int, typer.Option(min=2, help="Couples of users that the benchmark rests on.")] = 40,
    items: Annotated[int, typer.Option(min=2, help="Questions of users on which gains are measured.")] = 480,
    gain_spread: Annotated[float, typer.Option(min=0, help="Standard deviation of the models' true gains.")] = 0.048,
    lineages: Annotated[
        int | None, typer.Option(min=1, help="Families of models that share half of their variance.")
    ] = None,
    couple_sd: Annotated[float, typer.Option(min=0, help="Of a couple's accuracy, in points.")] = 6.9,
    item_sd: Annotated[float, typer.Option(min=0, help="Of an item's gain, on the judge's scale of 0 to 2.")] = 0.62,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulation.")] = 0,
    format: FormatOption = Format.table,
) -> None:
    """Say how likely a study of this size is to see a true correlation; to be run before the study is."""
    import json
    import math
    from typing import cast

    import numpy as np

    from prbench import show
    from prbench.stats.correlation import LEAST_LINEAGES, Design, lineage_power, simulated_power

    errors = couple_sd / math.sqrt(couples), item_sd / math.sqrt(items)
    design = Design(models, spread, errors[0], gain_spread, errors[1], lineages)
    found = {true: simulated_power(design, true, np.random.default_rng(seed)) for true in (0.5, 0.7, 0.8, 0.9, 0.95)}
    drawn = lineages is not None and lineages >= LEAST_LINEAGES
    whole = {true: lineage_power(design, true, np.random.default_rng(seed)) for true in found} if drawn else {}
    rows = [
        [
            f"{true:g}",
            f"{one.power:.0%}",
            *([f"{whole[true]:.0%}"] if drawn else []),
            f"{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]",
        ]
        for true, one in found.items()
    ]
    columns = ["true ρ", "seen (p < .05)", *(["lineages drawn whole"] if drawn else []), "ρ that it would print [90 %]"]
    enough = min(found[0.9].power, whole.get(0.9, 1.0)) >= _ENOUGH
    share = f" ({errors[1] / gain_spread:.2f} of it)" if gain_spread else ""
    notes = [
        f"error of an accuracy: {errors[0]:.1f} points, at a spread of {spread:g}",
        f"error of a gain: {errors[1]:.3f}, at a spread of {gain_spread:g}{share}",
        f"a true ρ of .9 is seen with {found[0.9].power:.0%}: " + ("run it" if enough else "too little to run it"),
    ]
    title = f"Power · {models} models, {couples} couples, {items} items" + (
        f", {lineages} lineages" if lineages else ""
    )
    table = show.Table(title, columns, rows, notes)
    data = {"design": design._asdict(), "power": {str(true): one._asdict() for true, one in found.items()}}
    data["lineage_power"] = {str(true): share for true, share in whole.items()}
    shown = (
        json.dumps(data, indent=2) if format is Format.json else show.render([table], cast(show.Format, format.value))
    )
    typer.echo(shown)


@study_app.command()
def report(
    studies: Annotated[list[Path], typer.Argument(help="Folders of finished studies.", metavar="STUDY…")],
    out: PageOption = Path("study.html"),
) -> None:
    """Make one self-contained HTML file of downstream studies; `prbench report --study` shows them beside runs."""
    from prbench.files import write_whole
    from prbench.studies.sections import study_page

    page = study_page(studies)
    write_whole(out, page)
    typer.echo(f"{out} ({len(page.encode()) / 1e6:.1f} MB): open it in a browser; it needs no network")
