"""`prbench plan`: what users expect of answers, inferred from their posts, and how good these plans are."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from prbench.cli import options as shared
from prbench.cli.options import Dtype, Format, model_options, read_columns, whole

if TYPE_CHECKING:
    from prbench.calls import Budget, CallCache, Spending
    from prbench.plan import PlanQuality
    from prbench.run import PlanFile

EXIT_INTERRUPTED = 130


def plan(
    model: Annotated[str, typer.Option("--model", "-m", help="Who plans: chat:…, lm:… or the folder of one trained.")],
    suite: shared.SuiteOption = "mirror",
    split: shared.SplitOption = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many plans, by whole questions.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File of plans; an interrupted one is continued.")] = Path(
        "plans.jsonl"
    ),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what it would take; ask nothing.")] = False,
    max_cost: shared.MaxCostOption = None,
    price: shared.PriceOption = None,
    threshold: Annotated[
        float | None, typer.Option(min=-1, max=1, help="Least cosine of a match; needed with another --matcher.")
    ] = None,
    matcher: Annotated[str, typer.Option(help="Encoder that matches lines and aspects.")] = "embed:minilm",
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of a plan.")] = 300,
    seed: Annotated[int, typer.Option(help="Of --limit, of resampling and of the other users.")] = 0,
    resamples: shared.ResamplesOption = 2000,
    column: shared.ColumnOption = None,
    revision: shared.RevisionOption = None,
    window: Annotated[int | None, typer.Option(min=1, help="Most tokens of prompt and plan together.")] = None,
    dtype: shared.DtypeOption = Dtype.float32,
    device: shared.DeviceOption = "auto",
    batch_tokens: shared.BatchTokensOption = 8192,
    concurrency: shared.ConcurrencyOption = 8,
    timeout: shared.TimeoutOption = 60.0,
    retries: shared.RetriesOption = 4,
    no_cache: shared.NoCacheOption = False,
    quiet: shared.QuietOption = False,
    format: shared.FormatOption = Format.table,
) -> None:
    """Write plans for a suite's questions and measure them; `prbench run --context plan --plans FILE` uses them."""
    given = locals()
    from contextlib import ExitStack, closing

    from prbench.calls import CallCache, refuse_over_budget
    from prbench.config import ModelOptions

    _check_matcher(matcher, threshold)
    reached = ("window", "device", "dtype", "batch_tokens", "concurrency", "timeout", "retries", "price")
    options = ModelOptions.of("--", **model_options(given, *reached))
    place = {"columns": read_columns(column) or None, "revision": revision}
    needs, everyone = _needs(suite, whole(split), limit, seed, place)
    file = _open(model, options, max_tokens, needs, out)
    with ExitStack() as stack:
        cache = None if no_cache else stack.enter_context(closing(CallCache()))
        estimate = file.forecast(cache)
        _say(_before(estimate), quiet and not dry_run)
        if dry_run:
            return
        budget = stack.enter_context(file.budget(max_cost))
        if estimate["to_write"]:
            refuse_over_budget("the plans are", estimate["cost_usd"], budget, "raise --max-cost or lower --limit")
        _write(file, cache, budget, quiet)
    quality = _quality(file, needs, everyone, matcher, threshold, seed, resamples)
    _finish(file, quality, budget.spending, format, quiet)


def _needs(suite: str, split: str | None, limit: int | None, seed: int, place: dict[str, Any]) -> tuple[Any, Any]:
    from prbench.data import load_pairs
    from prbench.errors import ConfigError
    from prbench.plan import limited, needs_of

    everything = load_pairs(suite, **place)
    chosen = [pair for pair in everything if split is None or pair.tags.get("split") in (split, None)]
    if not chosen:
        known = ", ".join(everything.record.splits)
        raise ConfigError(f"suite {suite!r} has no split {split!r}", hint=f"its splits: {known}")
    everyone = needs_of(everything)
    needs = [need for need in needs_of(chosen, everything) if need.pair.profile]
    if not needs:
        raise ConfigError(f"no user of {suite!r} has a post: there is nothing to plan from", hint="bring profiles")
    return limited(needs, limit, seed), everyone


def _open(model: str, options: Any, max_tokens: int, needs: Any, out: Path) -> "PlanFile":
    from prbench.models import load_generator
    from prbench.plan import Planner
    from prbench.run import PlanFile

    return PlanFile(out, Planner(load_generator(model, options), max_tokens=max_tokens), needs)


def _before(estimate: dict[str, Any]) -> str:
    cost = "no price known" if estimate["cost_usd"] is None else f"about ${estimate['cost_usd']:.4f}"
    return (
        f"{estimate['plans']:,} plans wanted, {estimate['to_write']:,} to write "
        f"({estimate['in_cache']:,} more in the cache): {estimate['tokens_in']:,} prompt tokens, {cost}"
    )


def _write(file: "PlanFile", cache: "CallCache | None", budget: "Budget", quiet: bool) -> None:
    def tell(left: int) -> None:
        if not quiet and (left % 10 == 0):
            _say(f"{left:,} plans left", quiet)

    try:
        file.write(cache, budget, tell)
    except KeyboardInterrupt:
        _say(f"\nstopped; the same command continues {file.path}", quiet=False)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _quality(
    file: "PlanFile", needs: Any, everyone: Any, matcher: str, threshold: float | None, seed: int, resamples: int
) -> "PlanQuality":
    from prbench.plan import hold, summarise
    from prbench.run import open_matcher

    held = hold(needs, file.by_need, open_matcher(matcher, threshold), everyone, seed)
    return summarise(held, seed=seed, resamples=resamples)


def _finish(file: "PlanFile", quality: "PlanQuality", spending: "Spending", format: Format, quiet: bool) -> None:
    import json

    from prbench.report import plan_table
    from prbench.show import Format as Shown
    from prbench.show import render

    found = {
        "plans": str(file.path),
        "spent_usd": spending.spent_usd,
        "retries": spending.retries,
        "quality": quality.model_dump(mode="json"),
    }
    data = json.dumps(found, ensure_ascii=False, indent=2)
    typer.echo(data if format is Format.json else render([plan_table(quality)], cast(Shown, format.value)))
    use = f"prbench run --context plan,profile+plan --plans {file.path}"
    _say(f"\nspent {spending.words()}; plans: {file.path}    ({use})", quiet)


def _check_matcher(matcher: str, threshold: float | None) -> None:
    from prbench.errors import ConfigError
    from prbench.plan import ENCODER

    if matcher != ENCODER and threshold is None:
        raise ConfigError(
            f"--matcher {matcher!r} needs a --threshold: the default one was chosen for {ENCODER}",
            hint="prbench.plan.calibrate chooses one on the training split",
        )


def _say(line: str, quiet: bool) -> None:
    if not quiet:
        print(line, file=sys.stderr, flush=True)
