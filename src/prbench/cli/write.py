"""The commands `prbench build aspects` and `prbench build pairs`: a suite out of users' histories."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prbench.cli.app import Dtype

if TYPE_CHECKING:
    from prbench.build.written import AspectsCard, PairsCard
    from prbench.build.written.publish import Publication
    from prbench.models import Generator

ModelOption = Annotated[str, typer.Option("--model", "-m", help="Who writes: chat:MODEL@BASE_URL or lm:NAME.")]
ColumnOption = Annotated[list[str] | None, typer.Option(help="FIELD=COLUMN of your file; repeatable.")]
LimitOption = Annotated[int | None, typer.Option(min=1, help="At most so many questions.")]
TriesOption = Annotated[int, typer.Option(min=1, help="How often an unreadable reply is asked for in all.")]
TemperatureOption = Annotated[float, typer.Option(min=0, help="Of the first try; later ones sample at 0.7 or more.")]
MaxTokensOption = Annotated[int, typer.Option(min=1, help="Most tokens of a reply.")]
SeedOption = Annotated[int, typer.Option(help="Of sampling.")]
ConcurrencyOption = Annotated[int, typer.Option(min=1, help="Requests under way at once.")]
TimeoutOption = Annotated[float, typer.Option(min=0.001, help="Seconds to wait for a reply.")]
RetriesOption = Annotated[int, typer.Option(min=0, help="How often a passing fault is tried again.")]
PriceOption = Annotated[str | None, typer.Option(help="IN,OUT in US dollars per million tokens.")]
MaxCostOption = Annotated[float | None, typer.Option(min=0, help="Most US dollars to spend; needs --price.")]
WindowOption = Annotated[int | None, typer.Option(min=1, help="Most tokens of a prompt.")]
DtypeOption = Annotated[Dtype, typer.Option(help="Precision of local weights.")]
SkipOption = Annotated[
    bool, typer.Option("--skip-failed", help="Count requests without an answer as rejects; else stop, to be continued.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print requests, tokens and cost; ask nothing.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the card as JSON.")]

EXIT_NOTHING = 1
"""A build that ended without a single result."""


def aspects(
    history: Annotated[Path, typer.Argument(help="Posts (user, text), or questions with narrative.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File of questions with aspects, .jsonl.")],
    model: ModelOption,
    column: ColumnOption = None,
    limit: LimitOption = None,
    max_per_user: Annotated[int, typer.Option(min=1, help="Most questions of a user.")] = 20,
    max_posts: Annotated[int, typer.Option(min=1, help="Most posts in a profile.")] = 100,
    min_posts: Annotated[int, typer.Option(min=0, help="Least posts in a profile.")] = 1,
    by_sentence: Annotated[
        bool, typer.Option("--by-sentence", help="Ask about one sentence of a story at a time, for small models.")
    ] = False,
    tries: TriesOption = 3,
    temperature: TemperatureOption = 0.0,
    max_tokens: MaxTokensOption = 1024,
    seed: SeedOption = 0,
    concurrency: ConcurrencyOption = 8,
    timeout: TimeoutOption = 120.0,
    retries: RetriesOption = 4,
    price: PriceOption = None,
    max_cost: MaxCostOption = None,
    window: WindowOption = None,
    dtype: DtypeOption = Dtype.float32,
    skip_failed: SkipOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find out what users expect of an answer, from what they wrote: rubric aspects with evidence."""
    from prbench.build.written import Bounds, Decoding, SpendingLimits, build_aspects
    from prbench.cli.commands import read_columns

    found = build_aspects(
        history,
        out,
        _generator(model, _reaching(concurrency, timeout, retries, price, window, dtype)),
        columns=read_columns(column or []),
        bounds=Bounds(max_posts, min_posts, max_per_user, limit),
        decoding=Decoding(max_tokens=max_tokens, temperature=temperature, seed=seed, tries=tries),
        limits=SpendingLimits(max_cost_usd=max_cost, skip_failed=skip_failed),
        by_sentence=by_sentence,
        dry_run=dry_run,
        say=_voice(quiet and not dry_run),
    )
    if found.card is not None:
        typer.echo(found.card.model_dump_json(indent=2) if as_json else _aspects_summary(found.card, out))
        _refuse_none(found.card.kept, f"none of {found.card.questions:,} questions got aspects", found.card.rejected)


def pairs(
    aspects: Annotated[str, typer.Argument(help="What `build aspects` wrote, or lamp-qa=DIR.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the suite.")],
    model: ModelOption,
    mirror: Annotated[
        bool, typer.Option("--mirror", help="Pair everything both ways: whoever ignores the user scores exactly 50 %.")
    ] = False,
    mirror_found: Annotated[
        bool, typer.Option("--mirror-found", help="The same, only where two users asked nearly the same question.")
    ] = False,
    near: Annotated[float, typer.Option(min=0.01, max=1, help="Shared words that make two questions the same.")] = 0.8,
    words: Annotated[int, typer.Option(min=5, help="Most words of an answer.")] = 100,
    posts: Annotated[int, typer.Option(min=0, help="Most posts that the writer is shown.")] = 10,
    gate: Annotated[list[str] | None, typer.Option(help="NAME=THRESHOLD, or no:NAME; repeatable.")] = None,
    judge: Annotated[
        list[str] | None, typer.Option(help="Grades answers by the rubric, for gates; one or two.")
    ] = None,
    rater: Annotated[str | None, typer.Option(help="Rates answers blind to the user, for the gate 'quality'.")] = None,
    license: Annotated[str, typer.Option(help="Of the suite, as the hub names it.")] = "other",
    title: Annotated[str, typer.Option(help="Of the suite; default: the folder's name.")] = "",
    column: ColumnOption = None,
    limit: LimitOption = None,
    tries: TriesOption = 3,
    temperature: TemperatureOption = 0.0,
    max_tokens: MaxTokensOption = 1024,
    seed: SeedOption = 0,
    concurrency: ConcurrencyOption = 8,
    timeout: TimeoutOption = 120.0,
    retries: RetriesOption = 4,
    price: PriceOption = None,
    max_cost: MaxCostOption = None,
    window: WindowOption = None,
    dtype: DtypeOption = Dtype.float32,
    skip_failed: SkipOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write two answers for each question, hold them against gates, and publish a suite."""
    from prbench.build.written import Decoding, PairsConfig, SpendingLimits, build_pairs
    from prbench.cli.commands import read_columns
    from prbench.graders import load_judge

    reaching = _reaching(concurrency, timeout, retries, price, window, dtype)
    found = build_pairs(
        aspects,
        out,
        _generator(model, reaching),
        options=PairsConfig(
            mirror="all" if mirror else "found" if mirror_found else "none",
            near=near,
            words=words,
            posts=posts,
            limit=limit,
            gates=tuple(gate or ()),
            license=license,
            title=title,
        ),
        columns=read_columns(column or []),
        judges=[load_judge(address, reaching) for address in judge or ()],
        rater=_generator(rater, reaching) if rater else None,
        decoding=Decoding(max_tokens=max_tokens, temperature=temperature, seed=seed, tries=tries),
        limits=SpendingLimits(max_cost_usd=max_cost, skip_failed=skip_failed),
        dry_run=dry_run,
        say=_voice(quiet and not dry_run),
    )
    if found.publication is not None and (card := found.publication.card) is not None:
        typer.echo(card.model_dump_json(indent=2) if as_json else _pairs_summary(card, found.publication, out))
        reasons = {why: count for stage in card.rejected.values() for why, count in stage.items()}
        _refuse_none(card.pairs, f"no pair was made of {card.questions:,} questions", reasons)


def _refuse_none(kept: int, message: str, rejected: Mapping[str, int]) -> None:
    """Exit with 1 where nothing came of it, with the reason that most often stood in the way."""
    if kept:
        return
    why = max(rejected, key=lambda reason: rejected[reason], default="nothing was read")
    print(f"error: {message}; most often: {why}", file=sys.stderr)
    raise typer.Exit(EXIT_NOTHING)


def _reaching(
    concurrency: int, timeout: float, retries: int, price: str | None, window: int | None, dtype: Dtype
) -> Any:
    """Return the options by which a model is reached or loaded."""
    from prbench.cli.commands import read_price
    from prbench.config import ModelOptions

    return ModelOptions(
        concurrency=concurrency,
        timeout_s=timeout,
        retries=retries,
        price=read_price(price),
        window=window,
        dtype=dtype.value,
    )


def _generator(address: str, options: Any) -> "Generator":
    from prbench.models import load_generator

    return load_generator(address, options)


def _voice(quiet: bool) -> Any:
    return (lambda line: None) if quiet else (lambda line: print(line, file=sys.stderr, flush=True))


def _aspects_summary(card: "AspectsCard", out: Path) -> str:
    from prbench.show import Table, render

    rows = [
        ["questions", f"{card.questions:,}"],
        ["with aspects", f"{card.kept:,}"],
        *([f"rejected: {reason}", f"{count:,}"] for reason, count in card.rejected.items()),
    ]
    notes = [f"read {card.posts:,} posts of {card.users:,} users", _spent(card.spent)]
    tables = [Table("Aspects", ["what", "count"], rows, notes)]
    if card.left_out:
        left = [[reason, f"{count:,}"] for reason, count in card.left_out.items()]
        tables.append(Table("In the history", ["what", "count"], left))
    return render(tables, "table") + f"\n\naspects: {out}    (prbench build pairs {out} -o pairs/ --model …)"


def _pairs_summary(card: "PairsCard", publication: "Publication", out: Path) -> str:
    from prbench.show import Table, render

    rows = [
        ["questions", f"{card.questions:,}"],
        ["pairs", f"{card.pairs:,}"],
        ["users", f"{card.users:,}"],
        ["mirrored pairs", f"{card.mirrored_pairs:,} ({card.mirrored_share:.0%})"],
    ]
    rows += [
        [f"rejected at {stage}: {reason}", f"{count:,}"]
        for stage, reasons in card.rejected.items()
        for reason, count in reasons.items()
    ]
    notes = [_spent(card.spent), *([f"gates: {_spent(card.spent_on_gates)}"] if card.spent_on_gates.calls else [])]
    notes += [f"fingerprint {card.fingerprint[:16]}"]
    if card.gates_left_out:
        notes.append(f"gates that did not look: {', '.join(card.gates_left_out)} (see --judge, --rater)")
    gates = Table(
        "Gates",
        ["gate", "passes", "checked", "rejected", "unmeasured", "with its half", "passed"],
        publication.report.table(),
        first_numeric=2,
    )
    tables = [Table("Suite", ["what", "count"], rows, notes), gates]
    return render(tables, "table") + f"\n\nsuite: {out}    (prbench audit {out} · prbench run --suite {out} --model …)"


def _spent(spent: Any) -> str:
    cost = f", ${spent.cost_usd:.4f}" if spent.cost_usd else ""
    return f"{spent.calls:,} replies behind it: {spent.tokens_in:,} tokens in, {spent.tokens_out:,} out{cost}"
