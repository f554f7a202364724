"""The effects: what showing the user changes, each with its name, formula and sentence.

Every table, page and document that names an effect takes its words from here.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

EffectKey = Literal["gain", "specificity", "reversal", "headroom_closed", "soundness"]


class Effect(NamedTuple):
    """One comparison of contexts, in which `own` is the context that shows the user's own posts."""

    key: EffectKey
    """Key of the effect in `result.json`, and its attribute in Python."""
    name: str
    formula: str
    sentence: str
    """Meaning of the effect, in one sentence."""
    control: str
    """The context that `own` is compared with."""

    @property
    def title(self) -> str:
        """Name and formula, as a row or column is called.

        Example:
            >>> GAIN.title
            'gain (own − none)'
        """
        return f"{self.name} ({self.formula})"


GAIN = Effect("gain", "gain", "own − none", "What the user's own posts add to no posts.", "none")
SPECIFICITY = Effect(
    "specificity",
    "specificity",
    "own − other",
    "What the user's own posts add to another user's posts: whether it is this user that counts, or any user.",
    "other",
)
REVERSAL = Effect(
    "reversal",
    "reversal",
    "own − opposite",
    "What the user's own posts add to those of the user who wants the opposite: 1 for a model that follows the user.",
    "opposite",
)
HEADROOM = Effect(
    "headroom_closed",
    "headroom closed",
    "gain ÷ (oracle − none)",
    "The share of what the true rubric would add that the user's own posts add. "
    "It leans on a context that leaks, and is null unless the interval of the denominator lies above 0.",
    "oracle",
)
SOUNDNESS = Effect(
    "soundness",
    "soundness",
    "shown − none",
    "What a user's posts add to telling sound answers from flawed ones, on pairs that are the same for every user "
    "(`generic+posts`): below 0, following the user costs soundness.",
    "none",
)
DIFFERENCES = (GAIN, SPECIFICITY, REVERSAL)
"""Effects of the user's own posts, in percentage points."""
EFFECTS = (*DIFFERENCES, HEADROOM, SOUNDNESS)
HIGH_STAKES = ("medical", "legal", "money")
"""Categories for which soundness is told separately: a flawed answer there does harm."""
HIGH_STAKES_TOGETHER = ", ".join(HIGH_STAKES)


def own_context(contexts: Iterable[str]) -> str | None:
    """The context that shows the user's own posts: the profile, else the posts nearest to the question.

    Example:
        >>> own_context(["none", "retrieved@5", "other"])
        'retrieved@5'
    """
    names = list(contexts)
    return "profile" if "profile" in names else next((name for name in names if name.startswith("retrieved")), None)


def shown_context(contexts: Iterable[str]) -> str | None:
    """The context that shows a user where no posts are the user's own: as `own_context`, else the first that shows any.

    Example:
        >>> shown_context(["none", "other", "recent@5"])
        'recent@5'
    """
    names = list(contexts)
    controls = {effect.control for effect in EFFECTS}
    return own_context(names) or next((name for name in names if name not in controls), None)
