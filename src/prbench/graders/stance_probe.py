"""A stance probe: for each axis of taste or value, which of its two poles a text takes.

Trained on answers whose poles follow from the tags of their pairs. How sharp its probabilities are is learnt on
questions that were left out of each fit, so that 0.9 means nine in ten on questions it has not seen.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from prbench.data import Passage
from prbench.errors import DataError
from prbench.graders.logistic import Floats, fit, minimise, sigmoid
from prbench.types import Pair

_PENALTY = 1.0
_FOLDS = 5


class Features(Protocol):
    """Features that a probe reads of a text."""

    name: str

    @property
    def revision(self) -> str:
        """Revision of the weights or the vocabulary."""
        ...

    def rows(self, texts: Sequence[str]) -> Any:
        """One row per text, dense or sparse."""
        ...

    def size(self, text: str) -> int:
        """Tokens of a text that a model has to read."""
        ...


class StanceExample(NamedTuple):
    """A text, where it stands on one axis, and what it is about."""

    text: str
    axis: str
    pole: str
    topic: str
    """Texts of one topic are left out together."""


def answer_examples(pairs: Iterable[Pair]) -> list[StanceExample]:
    """Each answer with its poles: the chosen one takes the user's, the rejected one the opposites."""
    pairs = list(pairs)
    poles = _poles(pairs)
    found: dict[tuple[str, str], StanceExample] = {}
    for pair in pairs:
        for axis, pole in pair.stances.items():
            one, two = poles[axis]
            opposite = two if pole == one else one
            found.setdefault((pair.chosen, axis), StanceExample(pair.chosen, axis, pole, pair.question))
            found.setdefault((pair.rejected, axis), StanceExample(pair.rejected, axis, opposite, pair.question))
    return sorted(found.values())  # whatever the order of the pairs, the probe is the same


def passage_examples(passages: Iterable[Passage], axes: Iterable[str]) -> list[StanceExample]:
    """The passages written as answers, on those axes."""
    known = set(axes)
    return [
        StanceExample(passage.text, passage.axis, passage.pole, f"passage {passage.axis} {passage.situation}")
        for passage in passages
        if passage.kind == "answer" and passage.axis in known
    ]


def _poles(pairs: Sequence[Pair]) -> dict[str, tuple[str, str]]:
    found: dict[str, set[str]] = {}
    for pair in pairs:
        for axis, pole in pair.stances.items():
            found.setdefault(axis, set()).add(pole)
    for axis, poles in found.items():
        if len(poles) != 2:
            raise DataError(
                f"axis {axis!r} has the poles {', '.join(sorted(poles))}: a stance probe tells two apart",
                hint="both poles of every axis must occur in the training pairs",
            )
    return {axis: (min(poles), max(poles)) for axis, poles in found.items()}


class _Axis(NamedTuple):
    """One axis: its poles, and where its examples stand among all."""

    poles: tuple[str, str]
    places: list[int]
    second: Any
    """Whether each example takes the second pole."""
    topics: list[str]


class StanceProbe:
    """Classifier of the pole that a text takes on each axis.

    Args:
        examples: Texts with their stances.
        features: How a text is read.

    Example:
        >>> from prbench.models.ngrams import NGrams
        >>> shown = [(pole, topic) for topic in ("tea", "hat") for pole in ("blue", "red")]
        >>> examples = [StanceExample(f"{pole} {topic}", "colour", pole, topic) for pole, topic in shown]
        >>> probe = StanceProbe(examples, NGrams(example.text for example in examples))
        >>> round(float(probe.shares("colour", "red", ["red boots", "blue boots", "boots"])[2]), 2)
        0.5
    """

    def __init__(self, examples: Sequence[StanceExample], features: Features) -> None:
        self.features = features
        texts = list(dict.fromkeys(example.text for example in examples))
        place = {text: row for row, text in enumerate(texts)}
        self._rows = features.rows(texts)
        self._axes = {axis: _axis(axis, examples, place) for axis in sorted({example.axis for example in examples})}
        grams = {axis: self._gram(found.places) for axis, found in self._axes.items()}
        fits = {axis: fit(grams[axis], found.second, _PENALTY) for axis, found in self._axes.items()}
        self._weights = {axis: self._rows[self._axes[axis].places].T @ fits[axis].weights for axis in fits}
        self._bias = {axis: fits[axis].bias for axis in fits}
        self.sharpness = _sharpness([_left_out(grams[axis], found) for axis, found in self._axes.items()])
        """Factor by which log-odds are stretched."""

    @property
    def axes(self) -> Mapping[str, tuple[str, str]]:
        """The axes that it knows, with their poles."""
        return {axis: found.poles for axis, found in self._axes.items()}

    def shares(self, axis: str, pole: str, texts: Sequence[str]) -> Floats:
        """Return the probability of each text that it takes this pole of the axis and not the other."""
        rows, weights = self.features.rows(texts), self._weights[axis]
        # Row by row: a share must not depend on what else is asked, and a dense product may round by its shape.
        products = rows @ weights if hasattr(rows, "tocsr") else (rows * weights).sum(axis=1)
        side = 1 if self._axes[axis].poles[1] == pole else -1
        return sigmoid(self.sharpness * side * (products + self._bias[axis]))

    def _gram(self, places: list[int]) -> Floats:
        inner = self._rows[places] @ self._rows[places].T
        return np.asarray(inner.toarray() if hasattr(inner, "toarray") else inner, dtype=np.float64)


def _axis(axis: str, examples: Sequence[StanceExample], place: Mapping[str, int]) -> _Axis:
    own = [example for example in examples if example.axis == axis]
    poles = sorted({example.pole for example in own})
    if len(poles) != 2:
        raise DataError(f"axis {axis!r} has the poles {', '.join(poles)}", hint="a stance probe tells two apart")
    second = np.array([example.pole == poles[1] for example in own])
    return _Axis((poles[0], poles[1]), [place[e.text] for e in own], second, [e.topic for e in own])


def _left_out(gram: Floats, axis: _Axis) -> tuple[Floats, Any]:
    """Log-odds of every example from a fit without the examples of its topic's fold."""
    topics = {topic: number % _FOLDS for number, topic in enumerate(dict.fromkeys(axis.topics))}
    folds = np.array([topics[topic] for topic in axis.topics])
    decisions = np.full(len(folds), np.nan)
    for fold in range(_FOLDS):
        out, kept = folds == fold, folds != fold
        if out.any() and axis.second[kept].any() and not axis.second[kept].all():
            without = fit(gram[np.ix_(kept, kept)], axis.second[kept], _PENALTY)
            decisions[out] = without.decide(gram[np.ix_(out, kept)])
    return decisions, axis.second


def _sharpness(left_out: Sequence[tuple[Floats, Any]]) -> float:
    """The factor under which log-odds of left-out examples are most likely; 1 where there are none to learn from.

    Every example enters with its mirror image, the poles' names changed over: no pole is the likelier one.
    """
    decisions = np.concatenate([found for found, _ in left_out])
    second = np.concatenate([found for _, found in left_out])
    known = np.isfinite(decisions)
    column = np.concatenate([decisions[known], -decisions[known]])
    labels = np.concatenate([second[known], ~second[known]])
    scale = float(np.abs(column).mean()) if len(column) else 0.0
    if scale == 0.0:
        return 1.0
    factor = minimise(column[:, None] / scale, labels.astype(np.float64), ridge=np.array([1.0]))
    return max(float(factor[0]) / scale, 0.0)
