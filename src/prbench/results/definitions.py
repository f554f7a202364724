"""Meaning of every column, metric and effect, in one place: `prbench explain` prints it, docs/metrics.md shows it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike

from prbench.results.credits import Credit, CreditRows
from prbench.results.effects import EFFECTS
from prbench.results.verdict import RULE
from prbench.stats import Estimate
from prbench.types import CONTEXTS, context_names

Mean = Callable[[Sequence[Credit], ArrayLike], Estimate]
"""Mean of shares, one for each pair, with the clustered interval that all metrics have."""


class Metric(NamedTuple):
    """Meaning of a metric and, where that is all it takes, its formula over the credits of one context."""

    definition: str
    compute: Callable[[Sequence[Credit], Mean], Estimate | None] | None = None
    """Function of the metric; None where `results.measure` computes it. A metric that these pairs cannot have returns
    None."""


def _strict(rows: Sequence[Credit], mean: Mean) -> Estimate:
    return mean(rows, rows.strict if isinstance(rows, CreditRows) else [row.strict for row in rows])


METRICS: dict[str, Metric] = {
    "accuracy": Metric("mean credit; per category and per `--by TAG`, with the worst group"),
    "strict": Metric("share of pairs with every verdict right, in every order and repeat", _strict),
    "users covered": Metric(
        "share of users for whom the model is better than a coin: one-sided sign test per user (ties "
        "dropped), Holm-corrected; users with fewer than 10 pairs are not testable and left out"
    ),
    "users above ½": Metric("share of users with a mean credit above ½, without a test"),
    "couples": Metric(
        "share of couples with *both* halves above ½: exactly 0 for every model that does not see the user"
    ),
    "mirror consistency": Metric("share of mirrored pairs with both halves right"),
    "no verdict": Metric(
        "share of pairs without a verdict in some order or repeat; left out of the mean, counted and bounded"
    ),
    "group": Metric(
        "letters: two lines that share one cannot be told apart (Holm-corrected, clustered by user and question)"
    ),
    "ties": Metric("share of pairs on which the model has no preference; each counts ½"),
    "flips, first wins": Metric(
        "Comparers: share of pairs whose verdict changes with the order; share of verdicts for the first position"
    ),
    "longer wins": Metric(
        "how often the longer answer wins, among pairs of unequal length; also Pearson's r with the log "
        "ratio of lengths"
    ),
    "ECE, Brier": Metric("calibration of σ(score difference), or of a Comparer's log-odds"),
    "two jurors agree, all jurors agree": Metric(
        "juries: how often two jurors say the same of a pair in the same order; share of pairs on which all of them "
        "do, in every order"
    ),
    "verdicts changed": Metric(
        "`prbench stress`: share of the pairs in which a change shows whose winner changes with it; to or from a tie "
        "counts ½"
    ),
    "as published": Metric(
        "what the formula of the benchmark that a suite is gives (RewardBench 2, RM-Bench, JudgeBench, "
        "RMGAP), or best-of-N where rows have several answers; the table says the formula, and what these "
        "records do not give"
    ),
    "worst decile": Metric("mean over the tenth of users with the lowest accuracy"),
}
"""Metrics by the names that tables use. One with `compute` and no field of its own stands in `ContextResult.metrics`.
"""


def definitions() -> dict[str, str]:
    """All definitions by name, in lower case; names that belong together are joined by a comma.

    Example:
        >>> definitions()["gain"]
        "own − none. What the user's own posts add to no posts."
    """
    contexts = {
        written.lower(): f"a context: {kind.shows.format('K')}. It tells {kind.tells.replace('*', '')}."
        for written, kind in zip(context_names(), CONTEXTS.values(), strict=True)
    }
    effects = {effect.name: f"{effect.formula}. {effect.sentence}" for effect in EFFECTS}
    metrics = {name.lower(): metric.definition for name, metric in METRICS.items()}
    return {**metrics, **contexts, **effects, "verdict": RULE}
