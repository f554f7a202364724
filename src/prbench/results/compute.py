"""Computing a run's result from nothing but what lies in the run's folder.

`prbench run` writes what `compute_result` returns, and `prbench verify` computes it again: the same function, so a
number that cannot be recomputed from the records cannot be in the file. Timing stands apart: it is measured.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from prbench import stats
from prbench._version import __version__
from prbench.columns import ModelColumns
from prbench.config import RunConfig
from prbench.data import DatasetRecord
from prbench.models import ModelCard
from prbench.plan import HeldPlans, Plan, summarise
from prbench.results.credits import CreditRows, Credits, credits_by_context
from prbench.results.measure import Measure
from prbench.results.published import published_scores
from prbench.results.records import Records, Use
from prbench.results.result import BaselineResult, ContextResult, PlansResult, Result, Usage
from prbench.results.rows import PairRow, PairRows
from prbench.types import ContextName, Count, Frozen, Record


class BaselineScore(Frozen):
    """One line of `baselines.jsonl`: a content-blind baseline's scores for one pair."""

    baseline: str
    pair: str
    chosen_score: float
    rejected_score: float


class BaselineScores(ModelColumns[BaselineScore]):
    """Scores of all baselines, by column."""

    def __init__(self, scores: Iterable[BaselineScore] = ()) -> None:
        super().__init__(BaselineScore)
        self.extend(scores)

    @classmethod
    def of(cls, scores: Iterable[BaselineScore]) -> "BaselineScores":
        """The same scores as columns; those that are columns already as they are."""
        return scores if isinstance(scores, BaselineScores) else cls(scores)


class RunFacts(Frozen):
    """Facts that a result needs besides rows and records; kept in `run.json`."""

    card: ModelCard
    dataset: DatasetRecord
    stances: Mapping[str, Mapping[str, str]] = {}
    """Pole that each user of the whole suite wants on each axis, where the suite says."""
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
    rows: Iterable[PairRow],
    records: Iterable[Record],
    baselines: Iterable[BaselineScore],
    plans: Iterable[Plan] = (),
    held: HeldPlans | None = None,
) -> Result:
    """All aggregates of a run; timing, which is measured, is not among them."""
    rows, records, plans = PairRows.of(rows), Records.of(records), list(plans)
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
    blind = baseline_credits(rows, baselines)
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
        warnings=(*_warnings(facts, contexts, scored), *_unresampled(credits.values())),
        baselines=scored,
    )


def _context(measure: Measure, suite: str, name: str, rows: PairRows, credits: Credits) -> ContextResult:
    found = measure.context(name, credits)
    published = published_scores(suite, rows, credits, name, measure.mean)
    return found if published is None else found.model_copy(update={"published": published})


def baseline_credits(rows: Iterable[PairRow], scores: Iterable[BaselineScore]) -> dict[str, Credits]:
    """Return the credits of each baseline: the answer with the higher score wins, equal scores are a tie."""
    pairs, kept = PairRows.of(rows), BaselineScores.of(scores)
    whose = np.array(kept.column("baseline"), dtype=object)
    places = np.array([pairs.place.get(pair, -1) for pair in kept.column("pair")], dtype=np.int64)
    margin = kept.numbers("chosen_score") - kept.numbers("rejected_score")
    found = {}
    for name in dict.fromkeys(kept.column("baseline")):
        mine = np.flatnonzero((whose == name) & (places >= 0))
        mine = mine[np.argsort(places[mine], kind="stable")]
        credit = (1 + np.sign(margin[mine])) / 2
        nothing = np.empty((len(mine), 0), dtype=np.int64)
        right = (credit == 1.0).astype(np.float64)
        earned = CreditRows(pairs, places[mine], credit, right, margin[mine], Records(), nothing)
        found[name] = Credits(earned, 0, 0, Counter(), len(pairs) - len(mine))
    return found


def _usage(records: Records, plans: Iterable[Plan]) -> Usage:
    """Return what all answers took, each distinct call and plan once; what was spent today is in the timing."""
    dropped = sum(map(len, records.column("dropped")))
    posts = dropped + sum(records.column("posts"))
    calls = list(records.uses().values())
    written = list({plan.key: plan for plan in plans}.values())
    uses: list[Use | Plan] = [*calls, *written]
    return Usage(
        records=len(records),
        distinct_calls=len(calls),
        calls_without_sharing=sum(map(len, records.column("calls"))),
        plans=len(written),
        tokens_in=sum(use.tokens_in for use in uses),
        tokens_out=sum(use.tokens_out for use in uses),
        **({"tokens_cached": cached} if (cached := sum(call.tokens_cached for call in calls)) else {}),
        cost_usd=round(sum(use.cost_usd for use in uses), 9),
        posts_dropped=stats.wilson(dropped, posts),
    )


def _plans(config: RunConfig, plans: Sequence[Plan], held: HeldPlans | None) -> PlansResult:
    """Return the number of plans and, where it was measured, their quality; a plan without a line is none."""
    written = {plan.key: plan for plan in plans}.values()
    return PlansResult(
        plans=len(written),
        statuses=dict(sorted(Counter(plan.status for plan in written).items())),
        quality=None if held is None else summarise(held, seed=config.seed, resamples=config.resamples),
    )


def _unresampled(credits: Iterable[Credits]) -> Iterator[str]:
    """Say so where intervals are not resampled."""
    cells = max((found.rows.clusters.size for found in credits if len(found.rows)), default=0)
    if cells > stats.MANY_CELLS:
        yield (
            f"{cells:,} cells of user and question: intervals are those of the clustered standard error, "
            f"as always above {stats.MANY_CELLS:,}, and not resampled"
        )


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
