"""Matching of a plan's lines with aspects: closeness of embeddings, one line to one aspect.

A line can stand for an aspect where the cosine of their vectors reaches a threshold. Among all ways to pair lines and
aspects one to one, the one with most matches counts, and among those the closest (an optimal assignment): saying one
aspect twice does not count twice. The threshold is chosen on aspects of the training split and paraphrases of them.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from prbench.errors import DataError
from prbench.rank import TextEncoder
from prbench.types import Pair

ENCODER = "embed:minilm"
THRESHOLD = 0.41
"""Threshold of `embed:minilm`: what `calibrate` finds on the mirror suite's training split, see docs/plan.md."""

_STEPS = np.round(np.arange(0.05, 0.96, 0.01), 2)


class Matcher:
    """Counts the aspects that a plan's lines match.

    Args:
        encoder: Embeds; its vectors have length 1.
        threshold: The least cosine of a match.
    """

    def __init__(self, encoder: TextEncoder, threshold: float = THRESHOLD) -> None:
        self.encoder = encoder
        self.threshold = threshold
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}

    def embed(self, texts: Iterable[str]) -> None:
        """Embed texts in one go, each distinct one once."""
        if new := list(dict.fromkeys(text for text in texts if text not in self._vectors)):
            self._vectors.update(zip(new, self.encoder.encode(new), strict=True))

    def similarities(self, lines: Sequence[str], aspects: Sequence[str]) -> npt.NDArray[np.float32]:
        """The cosine of each line with each aspect, (lines, aspects)."""
        self.embed([*lines, *aspects])
        left, right = (np.stack([self._vectors[text] for text in texts]) for texts in (lines, aspects))
        return np.asarray(left @ right.T, dtype=np.float32)

    def count(self, lines: Sequence[str], aspects: Sequence[str]) -> int:
        """Return the number of aspects that are matched by a line of their own."""
        if not lines or not aspects:
            return 0
        return assigned(self.similarities(lines, aspects), self.threshold)


def assigned(similarities: npt.ArrayLike, threshold: float) -> int:
    """Return the largest number of one-to-one matches at or above a threshold.

    Example:
        >>> assigned([[0.9, 0.8], [0.7, 0.1]], 0.5)
        2
        >>> assigned([[0.9], [0.9]], 0.5)
        1
    """
    from scipy.optimize import linear_sum_assignment

    found = np.asarray(similarities, dtype=np.float64)
    allowed = found >= threshold
    # More matches always outweigh closer ones: a match is worth more than all cosines together.
    rows, columns = linear_sum_assignment(np.where(allowed, min(found.shape) + 1 + found, 0.0), maximize=True)
    return int(allowed[rows, columns].sum())


class MatchCalibration(NamedTuple):
    """Quality of a threshold that tells an aspect in other words from other users' aspects of the same question."""

    threshold: float
    paraphrases: int
    found: float
    """Share of paraphrases at or above it."""
    others: int
    mistaken: float
    """Share of other users' aspects of the question at or above it."""
    separation: float
    """Share of cases in which a paraphrase is closer than one of the others (area under the ROC curve)."""


@cache
def paraphrases() -> Mapping[str, str]:
    """Aspects of the mirror suite's training split, in other words."""
    text = files("prbench.plan").joinpath("paraphrases.toml").read_text(encoding="utf-8")
    known: Mapping[str, str] = tomllib.loads(text)["paraphrases"]
    return known


def calibrate(train: Iterable[Pair], encoder: TextEncoder, known: Mapping[str, str] | None = None) -> MatchCalibration:
    """Choose the threshold that best tells paraphrases from other users' aspects of the same question.

    The best one has the largest difference between the share of paraphrases and the share of others at or above it
    (Youden's index); of equal ones the highest is taken, which forgives least.

    Args:
        train: Pairs of the training split, and of no other.
        encoder: Embeds.
        known: Aspect → paraphrase; default: those that ship with the package, of the mirror suite.
    """
    known = paraphrases() if known is None else known
    same, others = _similarities(train, Matcher(encoder), known)
    if not len(same) or not len(others):
        raise DataError(
            "none of the paraphrased aspects is in these pairs", hint="calibrate on the mirror suite's train"
        )
    index = [float((same >= step).mean() - (others >= step).mean()) for step in _STEPS]
    best = float(max(step for step, value in zip(_STEPS, index, strict=True) if value >= max(index) - 1e-9))
    return MatchCalibration(
        threshold=best,
        paraphrases=len(same),
        found=float((same >= best).mean()),
        others=len(others),
        mistaken=float((others >= best).mean()),
        separation=float((same[:, None] > others[None]).mean()),
    )


def _similarities(
    train: Iterable[Pair], matcher: Matcher, known: Mapping[str, str]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    by_question: dict[str, dict[str, None]] = {}
    for pair in train:
        by_question.setdefault(pair.question, {}).update((one.aspect, None) for one in pair.rubric_aspects)
    same: list[float] = []
    others: list[float] = []
    for aspects in by_question.values():
        for aspect in aspects.keys() & known.keys():
            names = list(aspects)
            row = matcher.similarities([known[aspect]], names)[0]
            same += [float(value) for name, value in zip(names, row, strict=True) if name == aspect]
            others += [float(value) for name, value in zip(names, row, strict=True) if name != aspect]
    return np.array(same, dtype=np.float32), np.array(others, dtype=np.float32)
