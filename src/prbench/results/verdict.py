"""The verdict on a run in one sentence: whether the model uses the user, and whether it is this user.

A grade follows from intervals by the rule below, and from nothing else, so that it agrees with the effects, the groups
and the scorecard, which read the same intervals. Terminal, report, scorecard and leaderboard all open with it.
"""

from enum import StrEnum
from typing import NamedTuple

from prbench.results.effects import GAIN, REVERSAL, SPECIFICITY, own_context, shown_context
from prbench.results.result import Result, Soundness
from prbench.stats import Estimate

KNOWS_FROM = 0.75
"""Accuracy that the whole interval must reach: about that of the best reward model of the paper (75.94 %)."""
NOTHING = 0.05
"""An effect whose interval holds 0 and stays within this many points either way is taken for none."""
LITTLE = 0.1
"""A model whose gain stays below this many points, by its whole interval, follows the user a little."""


class UserGrade(StrEnum):
    """Grade of a model's use of the user, from worst to best; the first two say that a run cannot tell."""

    UNSHOWN = "was not tested for use of the user"
    OPEN = "does not clearly use the user"
    IGNORES = "ignores the user"
    SWAYED = "is swayed by any user"
    FOLLOWS = "follows this user"
    KNOWS = "knows what this user wants"


RULE = f"""\
All by 95 % intervals; own, none, other, opposite: accuracy with the user's own posts, without posts, with another
user's, and with those of the user who wants the opposite.
  {UserGrade.KNOWS}: follows this user (below), and the interval of own begins at {KNOWS_FROM:.0%} or higher
  {UserGrade.FOLLOWS}: own is above other, above none, and above opposite where the suite has one;
    "a little" where the interval of own less none ends below {100 * LITTLE:.0f} points
  {UserGrade.SWAYED}: own differs from none, other or opposite, but does not follow this user
  {UserGrade.IGNORES}: own differs from none of them, and each interval stays within ±{100 * NOTHING:.0f} points
  {UserGrade.OPEN}: none of these; more pairs would tell
  {UserGrade.UNSHOWN}: the run lacks `profile` (or `retrieved@K`), `none` or `other`, no pair was
    answered, or every one is a tie
On `generic+posts` a sentence on soundness stands in place of a grade: lost or gained where its interval lies below or
above 0, kept where it holds 0 and stays within ±{100 * NOTHING:.0f} points."""


class RunVerdict(NamedTuple):
    """A grade and the sentence that gives its numbers."""

    grade: UserGrade
    sentence: str


def verdict(result: Result) -> RunVerdict:
    """Return the verdict on a run.

    Example:
        >>> print(RULE.splitlines()[2].strip()[:45])
        knows what this user wants: follows this user
    """
    if (soundness := result.effects.soundness) is not None:  # no user's own wishes decide these pairs
        return RunVerdict(UserGrade.OPEN, f"{result.model.address} {_soundness(result, soundness)}.")
    if (nothing := _no_verdicts(result)) is not None:
        return RunVerdict(UserGrade.UNSHOWN, f"{result.model.address} {nothing}.")
    grade = _grade(result)
    how = " a little" if grade is UserGrade.FOLLOWS and _little(result.effects.gain) else ""
    return RunVerdict(grade, f"{result.model.address} {grade.value}{how}{_numbers(result)}{_clause(result, grade)}.")


def _no_verdicts(result: Result) -> str | None:
    """Say why there is nothing to grade: no pair was answered, or none was decided."""
    found = result.contexts.values()
    if found and not any(context.accuracy.n for context in found):
        return "was not judged: no pair was answered"
    if not found or any(context.ties.value != 1 for context in found if context.accuracy.n):
        return None
    if any(context.position is not None and context.position.flip_rate.value == 1 for context in found):
        return "decides by the order alone: swapping the answers turns every verdict round, so every pair is a tie"
    return "decides nothing: both answers of every pair get the same score, so every pair is a tie"


def _little(gain: Estimate | None) -> bool:
    return gain is not None and gain.high is not None and gain.high < LITTLE


def _soundness(result: Result, change: Soundness) -> str:
    if _below(change):
        said = "loses soundness"
    elif _above(change):
        said = "gains soundness"
    elif _nothing(change):
        said = "keeps its soundness"
    else:
        said = "neither clearly loses nor keeps its soundness"
    shown, none = (_percent(result.contexts[str(name)].accuracy) for name in (shown_context(result.contexts), "none"))
    return f"{said} where a user's posts are shown: {shown} % of pairs right with posts, {none} without"


def _grade(result: Result) -> UserGrade:
    own = own_context(result.contexts)
    if own is None or result.effects.gain is None or result.effects.specificity is None:
        return UserGrade.UNSHOWN
    effects = [found for effect in (GAIN, SPECIFICITY, REVERSAL) if (found := result.effects.of(effect)) is not None]
    if all(map(_above, effects)):
        low = result.contexts[own].accuracy.low
        return UserGrade.KNOWS if low is not None and low >= KNOWS_FROM else UserGrade.FOLLOWS
    if any(_above(one) or _below(one) for one in effects):
        return UserGrade.SWAYED
    return UserGrade.IGNORES if all(map(_nothing, effects)) else UserGrade.OPEN


def _above(effect: Estimate) -> bool:
    return effect.low is not None and effect.low > 0


def _below(effect: Estimate) -> bool:
    return effect.high is not None and effect.high < 0


def _nothing(effect: Estimate) -> bool:
    return effect.low is not None and effect.high is not None and effect.low >= -NOTHING and effect.high <= NOTHING


def _numbers(result: Result) -> str:
    own = own_context(result.contexts)
    said = []
    if own is not None:
        found = result.contexts[own].accuracy
        spread = "" if found.low is None or found.high is None else f" [{100 * found.low:.1f}, {100 * found.high:.1f}]"
        said.append(f"{_percent(found)} %{spread} with the user's own posts")
    for name, words in (
        ("none", "without"),
        ("other", "with another user's"),
        ("opposite", "with the opposite user's"),
    ):
        if name in result.contexts:
            said.append(f"{_percent(result.contexts[name].accuracy)} {words}")
    return f": {', '.join(said)}" if said else ""


def _percent(estimate: Estimate) -> str:
    return "–" if estimate.value is None else f"{100 * estimate.value:.1f}"


def _clause(result: Result, grade: UserGrade) -> str:
    if grade is UserGrade.UNSHOWN:
        if "posts" not in result.model.reads:
            return "; it reads no posts"
        if result.unsupported:
            return f"; these pairs have nothing to show under {', '.join(result.unsupported)}"
        reversal = result.effects.of(REVERSAL)
        turned = "it turns round with the opposite user, and " if reversal is not None and _above(reversal) else ""
        return f"; {turned}--context none,profile,other tells {'the rest' if turned else 'what it makes of the user'}"
    if grade is UserGrade.OPEN:
        return "; the intervals are too wide to tell more, so judge more pairs"
    if grade is UserGrade.IGNORES:
        return "; showing the user changes nothing that can be told from chance"
    if grade is UserGrade.SWAYED:
        specificity = result.effects.specificity
        if specificity is not None and _below(specificity):
            return "; another user's posts serve it better than the user's own"
        return "; that it is this user cannot be told from chance"
    return "; it is this user that counts, not any user"
