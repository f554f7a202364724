"""What every column, metric and effect means, in one place: `prbench explain` prints it, docs/metrics.md shows it."""

from prbench.results.effects import EFFECTS
from prbench.results.verdict import RULE

METRICS = {
    "accuracy": "mean credit; per category and per `--by TAG`, with the worst group",
    "strict": "share of pairs with every verdict right, in every order and repeat",
    "users covered": "share of users for whom the model is better than a coin: one-sided sign test per user (ties "
    "dropped), Holm-corrected; users with fewer than 10 pairs are not testable and left out",
    "users above ½": "share of users with a mean credit above ½, without a test",
    "couples": "share of couples with *both* halves above ½: exactly 0 for every model that does not see the user",
    "mirror consistency": "share of mirrored pairs with both halves right",
    "no verdict": "share of pairs without a verdict in some order or repeat; left out of the mean, counted and bounded",
    "group": "letters: two lines that share one cannot be told apart (Holm-corrected, clustered by user and question)",
    "ties": "share of pairs on which the model has no preference; each counts ½",
    "flips, first wins": "Comparers: share of pairs whose verdict changes with the order; share of verdicts for the "
    "first position",
    "longer wins": "how often the longer answer wins, among pairs of unequal length; also Pearson's r with the log "
    "ratio of lengths",
    "ECE, Brier": "calibration of σ(score difference), or of a Comparer's log-odds",
    "two jurors agree, all jurors agree": "juries: how often two jurors say the same of a pair in the same order; "
    "share of pairs on which all of them do, in every order",
    "verdicts changed": "`prbench stress`: share of the pairs in which a change shows whose winner changes with it; to "
    "or from a tie counts ½",
    "as published": "what the formula of the benchmark that a suite is gives (RewardBench 2, RM-Bench, JudgeBench, "
    "RMGAP), or best-of-N where rows have several answers; the table says the formula, and what these "
    "records do not give",
    "worst decile": "mean over the tenth of users with the lowest accuracy",
    "recent@k": "a context: only the last K of the user's own posts",
    "diluted@k": "a context: the user's own posts among K everyday posts that show nothing, by other people of the "
    "same split; the same K for both halves of a couple and all their pairs, by seed: how much noise a model stands",
    "pairs@k": "a context: up to K other pairs that the user has judged, as text or through `fit_user`; never a pair "
    "that is scored, nor a question that is scored for that user",
}
"""By the names that tables use."""


def definitions() -> dict[str, str]:
    """All definitions by name, in lower case; names that belong together are joined by a comma.

    Example:
        >>> definitions()["gain"]
        "own − none. What the user's own posts add to no posts."
    """
    effects = {effect.name: f"{effect.formula}. {effect.sentence}" for effect in EFFECTS}
    return {**{name.lower(): text for name, text in METRICS.items()}, **effects, "verdict": RULE}
