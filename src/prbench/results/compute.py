"""Computing a run's result from nothing but what lies in the run's folder.

`prbench run` writes what `compute_result` returns, and `prbench verify` computes it again: the same function, so a
number that cannot be recomputed from the records cannot be in the file. Timing stands apart: it is measured.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from prbench import stats
from prbench._version import __version__
from prbench.config import RunConfig
from prbench.data import DatasetRecord
from prbench.models import ModelCard
from prbench.plan import HeldPlans, Plan, summarise
from prbench.results.credits import Credits, PairRow, credits_by_context
from prbench.results.measure import Measure
from prbench.results.published import published_scores
from prbench.results.result import BaselineResult, ContextResult, PlansResult, Result, Usage
from prbench.types import CallUse, ContextName, Count, Frozen, Record


class BaselineScore(Frozen):
    """One line of `baselines.jsonl`: a content-blind baseline's scores for one pair."""

    baseline: str
    pair: str
    chosen_score: float
    rejected_score: float

    def record(self) -> Record:
        """As a record under `none`."""
        margin = self.chosen_score - self.rejected_score
        return Record(
            pair=self.pair,
            context="none",
            order="rated",
            status="ok",
            verdict="first" if margin > 0 else "second" if margin < 0 else "tie",
        )


class RunFacts(Frozen):
    """What a result needs besides rows and records; kept in `run.json`."""

    card: ModelCard
    dataset: DatasetRecord
    stances: Mapping[str, Mapping[str, str]] = {}
    """What each user of the whole suite wants on each axis, where the suite says."""
    contexts: tuple[ContextName, ...]
    """Contexts that were evaluated."""
    unsupported: tuple[ContextName, ...] = ()
    """Contexts that were asked for and that this model does not read."""
    expected: Count = 1
    """Records that make a pair complete in a context: orders × repeats."""
    one_order: bool = False
    """Whether a Comparer was shown each pair in one order only."""


def compute_result(
    config: RunConfig,
    facts: RunFacts,
    rows: Sequence[PairRow],
    records: Iterable[Record],
    baselines: Iterable[BaselineScore],
    plans: Iterable[Plan] = (),
    held: HeldPlans | None = None,
) -> Result:
    """All aggregates of a run; timing, which is measured, is not among them."""
    records, plans = list(records), list(plans)
    measure = Measure(
        config.seed,
        config.resamples,
        config.by,
        facts.stances,
        calibrated=facts.card.units == "log-odds",
        jurors=[juror["address"] for juror in facts.card.parameters.get("jurors", ())],
    )
    credits = credits_by_context(rows, records, facts.contexts, facts.expected)
    contexts = {name: _context(measure, facts.dataset.name, name, rows, credits[name]) for name in facts.contexts}
    blind = _baseline_credits(rows, baselines)
    scored = {name: measure.baseline(name, found) for name, found in blind.items()}
    written = {"plans": _plans(config, plans, held)} if plans else {}
    return Result(
        prbench=__version__,
        model=facts.card,
        suite=facts.dataset,
        split=config.split,
        contexts=contexts,
        unsupported=facts.unsupported,
        effects=measure.effects(credits),
        usage=_usage(records, plans),
        **written,
        groups=measure.groups({**{f"baseline {name}": found for name, found in blind.items()}, **credits}),
        warnings=tuple(_warnings(facts, contexts, scored)),
        baselines=scored,
    )


def _context(measure: Measure, suite: str, name: str, rows: Sequence[PairRow], credits: Credits) -> ContextResult:
    found = measure.context(name, credits)
    published = published_scores(suite, rows, credits, name, measure.mean)
    return found if published is None else found.model_copy(update={"published": published})


def _baseline_credits(rows: Sequence[PairRow], scores: Iterable[BaselineScore]) -> dict[str, Credits]:
    by_name: dict[str, list[Record]] = {}
    for score in scores:
        by_name.setdefault(score.baseline, []).append(score.record())
    return {name: credits_by_context(rows, records, ["none"], 1)["none"] for name, records in by_name.items()}


def _usage(records: Sequence[Record], plans: Iterable[Plan]) -> Usage:
    """What all answers took, each distinct call and plan once; what was spent today is in the timing."""
    dropped = sum(len(record.dropped) for record in records)
    posts = dropped + sum(record.posts for record in records)
    calls = distinct_calls(records)
    written = list({plan.key: plan for plan in plans}.values())
    uses: list[CallUse | Plan] = [*calls, *written]
    return Usage(
        records=len(records),
        distinct_calls=len(calls),
        calls_without_sharing=sum(len(record.calls) for record in records),
        plans=len(written),
        tokens_in=sum(use.tokens_in for use in uses),
        tokens_out=sum(use.tokens_out for use in uses),
        **({"tokens_cached": cached} if (cached := sum(call.tokens_cached for call in calls)) else {}),
        cost_usd=round(sum(use.cost_usd for use in uses), 9),
        posts_dropped=stats.wilson(dropped, posts),
    )


def _plans(config: RunConfig, plans: Sequence[Plan], held: HeldPlans | None) -> PlansResult:
    """How many plans there are and, where it was measured, how good they are; a plan without a line is none."""
    written = {plan.key: plan for plan in plans}.values()
    return PlansResult(
        plans=len(written),
        statuses=dict(sorted(Counter(plan.status for plan in written).items())),
        quality=None if held is None else summarise(held, seed=config.seed, resamples=config.resamples),
    )


def distinct_calls(records: Iterable[Record]) -> list[CallUse]:
    """The calls behind records, each once."""
    return list({call.key: call for record in records for call in record.calls}.values())


def _warnings(
    facts: RunFacts, contexts: Mapping[str, ContextResult], baselines: Mapping[str, BaselineResult]
) -> Iterator[str]:
    for name, scored in baselines.items():
        if scored.accuracy.low is not None and scored.accuracy.low > 0.5:
            yield (
                f"baseline {name!r} beats chance ({scored.accuracy.value:.1%}): "
                "this suite can partly be decided without reading for meaning or knowing the user"
            )
    for name, context in contexts.items():
        if context.bounds is not None and (context.without_verdict.value or 0) > 0.05:
            reason = next(iter(context.reasons), "no record")
            yield (
                f"context {name!r}: {context.without_verdict.value:.1%} of pairs have no verdict "
                f"(most often: {reason}); accuracy lies between {context.bounds.low:.1%} and "
                f"{context.bounds.high:.1%}"
            )
    if facts.one_order:
        yield "the answers were shown in one order only: position bias is not measured"
    if facts.dataset.derived_users:
        yield "the suite has no user ids: users were told apart by their profiles, or without them by their questions"
