"""The paper's claim (equal quality, different preference) on a study's data, in words that the data carry.

"Equal" needs an equivalence test, "follows the label" an interval above one half; whatever is merely not significant is
"not shown". Below a least amount of data no verdict is given at all. Equality is tested by two one-sided tests
(Schuirmann 1987) with clustered errors: it is shown where the 90 % interval of the difference lies inside ±margin.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from prbench.stats import Clusters, Estimate
from prbench.stats.arrays import as_floats
from prbench.stats.variance import clustered_error

MIN_ANNOTATORS = 2
MIN_PAIRS = 20

Quality = Literal["equal", "different", "not shown"]
Leaning = Literal["follows the label", "goes against the label", "not shown"]
Holds = Literal["holds", "does not hold", "not shown", "too few annotations"]


LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Result of two one-sided tests on a mean difference."""

    margin: float
    p: float | None
    """The larger of the two one-sided p-values; None where there is only one cluster."""
    interval: Estimate
    """The mean with its 90 % interval, which lies inside ±margin exactly where p is below 5 %."""

    @property
    def shown(self) -> bool:
        """Whether the difference is surely inside the margin."""
        return self.p is not None and self.p < LEVEL

    def to_json(self) -> dict[str, object]:
        """Margin, p, the 90 % interval, the verdict."""
        return {"margin": self.margin, "p": self.p, "interval_90": self.interval.to_json(), "shown": self.shown}


def tost(differences: ArrayLike, clusters: Clusters, margin: float) -> Equivalence:
    """Test that a mean difference lies inside ±margin.

    Args:
        differences: One paired difference per row.
        clusters: The annotator and the pair of each row; t has as many degrees of freedom as there are clusters of the
            rarer kind, less one.
        margin: The largest difference that does not matter.

    Example:
        >>> clusters = Clusters.of(users=range(6), questions=range(6))
        >>> found = tost([0.1, -0.2, 0.0, 0.2, -0.1, 0.0], clusters, 0.5)
        >>> found.shown, round(found.p, 5)
        (True, 0.00017)
        >>> tost([1.0, -1.0, 0.0, 2.0, -2.0, 0.0], clusters, 0.5).shown
        False
    """
    from scipy.special import stdtr, stdtrit

    values = as_floats("differences", differences, clusters.n)
    if clusters.n == 0:
        return Equivalence(margin, None, Estimate.undefined())
    mean = float(values.mean())
    if clusters.units < 2:
        return Equivalence(margin, None, Estimate(mean, None, None, clusters.n))
    error, freedom = clustered_error(values, clusters), clusters.units - 1
    if error == 0:
        # All clusters say exactly the same. That is not certainty: so many equal signs happen by chance, too.
        p = 0.5 ** len(np.unique(clusters.questions)) if abs(mean) < margin else 1.0
        return Equivalence(margin, p, Estimate(mean, mean, mean, clusters.n))
    above, below = (mean + margin) / error, (mean - margin) / error
    p = max(1 - float(stdtr(freedom, above)), float(stdtr(freedom, below)))
    reach = float(stdtrit(freedom, 1 - LEVEL)) * error
    return Equivalence(margin, p, Estimate(mean, mean - reach, mean + reach, clusters.n))


@dataclass(frozen=True, slots=True)
class StudyClaim:
    """The verdict, and what it rests on."""

    holds: Holds
    quality: Mapping[str, Quality]
    preference: Leaning
    text: str

    def to_json(self) -> dict[str, object]:
        """Return the claim as JSON values."""
        quality = dict(self.quality)
        return {"holds": self.holds, "quality": quality, "preference": self.preference, "text": self.text}


def judge_quality(difference: Estimate, equivalence: Equivalence) -> Quality:
    """Return what the data say of one dimension.

    Example:
        >>> judge_quality(Estimate(0.9, 0.7, 1.1, 60), Equivalence(0.5, 0.99, Estimate(0.9, 0.75, 1.05, 60)))
        'different'
    """
    if equivalence.shown:
        return "equal"
    low, high = difference.low, difference.high
    return "different" if low is not None and high is not None and (low > 0 or high < 0) else "not shown"


def judge_preference(agreement: Estimate) -> Leaning:
    """Return what the data say of the label."""
    if agreement.low is not None and agreement.low > 0.5:
        return "follows the label"
    return "goes against the label" if agreement.high is not None and agreement.high < 0.5 else "not shown"


def judge(
    annotators: int, pairs: int, quality: Mapping[str, Quality], preference: Leaning, margin: float
) -> StudyClaim:
    """The claim as a whole.

    Example:
        >>> judge(1, 50, {"factuality": "equal"}, "follows the label", 0.5).holds
        'too few annotations'
        >>> judge(3, 50, {"factuality": "equal"}, "follows the label", 0.5).holds
        'holds'
    """
    if annotators < MIN_ANNOTATORS or pairs < MIN_PAIRS:
        text = (
            f"{_count(pairs, 'pair')} judged by {_count(annotators, 'annotator')}: too few for a verdict, which needs "
            f"{MIN_PAIRS} pairs and {MIN_ANNOTATORS} annotators at least. The figures are what they are."
        )
        return StudyClaim("too few annotations", quality, preference, text)
    equal = [name for name, state in quality.items() if state == "equal"]
    different = [name for name, state in quality.items() if state == "different"]
    if len(equal) == len(quality) and preference == "follows the label":
        text = f"The claim holds here: quality is equal (within ±{margin:g}), and preference follows the label."
        return StudyClaim("holds", quality, preference, text)
    reasons = _reasons(quality, preference, margin)
    broken = bool(different) or preference == "goes against the label"
    holds: Holds = "does not hold" if broken else "not shown"
    words = "The claim does not hold here" if broken else "The claim is not shown here, nor is its contrary"
    return StudyClaim(holds, quality, preference, f"{words}: {'; '.join(reasons)}.")


def _reasons(quality: Mapping[str, Quality], preference: Leaning, margin: float) -> list[str]:
    different = [name for name, state in quality.items() if state == "different"]
    open_ones = [name for name, state in quality.items() if state == "not shown"]
    reasons = []
    if different:
        reasons.append(f"{_listed(different)} differ{'s' if len(different) == 1 else ''} between chosen and rejected")
    if open_ones:
        reasons.append(f"{_listed(open_ones)} may differ by more than ±{margin:g}")
    if preference == "goes against the label":
        reasons.append("people prefer the rejected answer")
    elif preference == "not shown":
        reasons.append("preference is not surely different from a coin's")
    return reasons


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
