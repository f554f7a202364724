"""The commands `prbench build aspects` and `prbench build pairs`: a suite out of users' histories."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from prbench.cli import options as shared
from prbench.cli.options import Dtype, grouped, model_options, read_columns

if TYPE_CHECKING:
    from prbench.build.written import AspectsCard, PairsCard
    from prbench.build.written.publish import Publication
    from prbench.config import ModelOptions

ModelOption = Annotated[str, typer.Option("--model", "-m", help="Who writes: chat:MODEL@BASE_URL or lm:NAME.")]
LimitOption = Annotated[int | None, typer.Option(min=1, help="At most so many questions.")]


class WriterOptions(NamedTuple):
    """Options of both commands: how the writer is reached and asked, and what it may cost."""

    tries: Annotated[int, typer.Option(min=1, help="How often an unreadable reply is asked for in all.")] = 3
    temperature: Annotated[float, typer.Option(min=0, help="Of the first try; later ones sample at 0.7 or more.")] = 0.0
    max_tokens: shared.MaxTokensOption = 1024
    seed: Annotated[int, typer.Option(help="Of sampling.")] = 0
    concurrency: shared.ConcurrencyOption = 8
    timeout: shared.TimeoutOption = 120.0
    retries: shared.RetriesOption = 4
    price: shared.PriceOption = None
    max_cost: shared.MaxCostOption = None
    window: shared.WindowOption = None
    dtype: shared.DtypeOption = Dtype.float32
    skip_failed: Annotated[
        bool,
        typer.Option("--skip-failed", help="Count requests without an answer as rejects; else stop, to be continued."),
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print requests, tokens and cost; ask nothing.")] = False
    quiet: shared.QuietOption = False
    as_json: Annotated[bool, typer.Option("--json", help="Print the card as JSON.")] = False

    def reaching(self) -> "ModelOptions":
        """Return the options by which a model is reached or loaded."""
        from prbench.config import ModelOptions

        names = ("concurrency", "timeout", "retries", "price", "window", "dtype")
        return ModelOptions.of("--", **model_options(self._asdict(), *names))

    def rest(self) -> dict[str, Any]:
        """Return what both builds take beside their own settings."""
        from prbench.build.written import Decoding, SpendingLimits

        silent = self.quiet and not self.dry_run
        return {
            "decoding": Decoding(
                max_tokens=self.max_tokens, temperature=self.temperature, seed=self.seed, tries=self.tries
            ),
            "limits": SpendingLimits(max_cost_usd=self.max_cost, skip_failed=self.skip_failed),
            "dry_run": self.dry_run,
            "say": (lambda line: None) if silent else (lambda line: print(line, file=sys.stderr, flush=True)),
        }


EXIT_NOTHING = 1
"""A build that ended without a single result."""


@grouped
def aspects(
    history: Annotated[Path, typer.Argument(help="Posts (user, text), or questions with narrative.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File of questions with aspects, .jsonl.")],
    model: ModelOption,
    column: shared.ColumnOption = None,
    limit: LimitOption = None,
    max_per_user: Annotated[int, typer.Option(min=1, help="Most questions of a user.")] = 20,
    max_posts: Annotated[int, typer.Option(min=1, help="Most posts in a profile.")] = 100,
    min_posts: Annotated[int, typer.Option(min=0, help="Least posts in a profile.")] = 1,
    by_sentence: Annotated[
        bool, typer.Option("--by-sentence", help="Ask about one sentence of a story at a time, for small models.")
    ] = False,
    *,
    writer: WriterOptions,
) -> None:
    """Find out what users expect of an answer, from what they wrote: rubric aspects with evidence."""
    from prbench.build.written import Bounds, build_aspects
    from prbench.models import load_generator

    found = build_aspects(
        history,
        out,
        load_generator(model, writer.reaching()),
        columns=read_columns(column),
        bounds=Bounds(max_posts, min_posts, max_per_user, limit),
        by_sentence=by_sentence,
        **writer.rest(),
    )
    if found.card is not None:
        typer.echo(found.card.model_dump_json(indent=2) if writer.as_json else _aspects_summary(found.card, out))
        _refuse_none(found.card.kept, f"none of {found.card.questions:,} questions got aspects", found.card.rejected)


@grouped
def pairs(
    aspects: Annotated[str, typer.Argument(help="What `build aspects` wrote, or lamp-qa=DIR.")],
    out: shared.SuiteFolderOption,
    model: ModelOption,
    mirror: Annotated[
        bool, typer.Option("--mirror", help="Pair all both ways: a model that ignores the user scores exactly 50 %.")
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
    column: shared.ColumnOption = None,
    limit: LimitOption = None,
    *,
    writer: WriterOptions,
) -> None:
    """Write two answers for each question, hold them against gates, and publish a suite."""
    from prbench.build.written import PairsConfig, build_pairs
    from prbench.graders import load_judge
    from prbench.models import load_generator

    reaching = writer.reaching()
    found = build_pairs(
        aspects,
        out,
        load_generator(model, reaching),
        options=PairsConfig.of(
            "--",
            mirror="all" if mirror else "found" if mirror_found else "none",
            near=near,
            words=words,
            posts=posts,
            limit=limit,
            gates=tuple(gate or ()),
            license=license,
            title=title,
        ),
        columns=read_columns(column),
        judges=[load_judge(address, reaching) for address in judge or ()],
        rater=load_generator(rater, reaching) if rater else None,
        **writer.rest(),
    )
    if found.publication is not None and (card := found.publication.card) is not None:
        typer.echo(card.model_dump_json(indent=2) if writer.as_json else _pairs_summary(card, found.publication, out))
        reasons = {why: count for stage in card.rejected.values() for why, count in stage.items()}
        _refuse_none(card.pairs, f"no pair was made of {card.questions:,} questions", reasons)


def _refuse_none(kept: int, message: str, rejected: Mapping[str, int]) -> None:
    """Exit with 1 where nothing came of it, with the reason that most often stood in the way."""
    if kept:
        return
    why = max(rejected, key=lambda reason: rejected[reason], default="nothing was read")
    print(f"error: {message}; most often: {why}", file=sys.stderr)
    raise typer.Exit(EXIT_NOTHING)


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
