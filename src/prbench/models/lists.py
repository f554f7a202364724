"""Models of one kind asked as another.

A Rater ranks a list by its scores, a Ranker compares lists of two, and a model that sees answers together is asked
about one alone.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import cast

from prbench.errors import ModelError
from prbench.models.protocols import Comparer, ModelCard, Ranker, Rater, is_rater
from prbench.types import AnswerView, Choice, ListView, Outcome, PairView, Prompt


class OneByOne:
    """A model that is asked about one answer at a time, whatever else it can do; ranks a list by these scores.

    Example:
        >>> from prbench.models import load_model
        >>> view = ListView("Tea?", ("Green.", "Black, with milk."))
        >>> [[outcome.score for outcome in outcomes] for _, outcomes in OneByOne(load_model("shorter")).rank([view])]
        [[-1.0, -3.0]]
    """

    def __init__(self, rater: Rater) -> None:
        self._rater = rater

    @property
    def card(self) -> ModelCard:
        """Who answers."""
        return self._rater.card

    def render(self, view: AnswerView) -> Prompt:
        """As the model does."""
        return self._rater.render(view)

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Ask the model."""
        return self._rater.rate(views)

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Score each answer of each list alone."""
        found = dict(self.rate([answer for view in views for answer in view.each()]))
        start = 0
        for place, view in enumerate(views):
            yield place, tuple(found[start + index] for index in range(len(view.answers)))
            start += len(view.answers)


def alone(model: Rater | Comparer) -> Rater | None:
    """The model as a Rater that sees one answer at a time; None where it only compares."""
    if is_rater(model):
        return model
    return _without_compare(cast(Rater, model)) if hasattr(model, "rate") else None


def _without_compare(model: Rater) -> OneByOne:
    """Hide that a model can compare, and hand on whatever else it offers, so that `isinstance` finds its abilities."""
    own = {"compare", *dir(OneByOne)}
    others = {name: _handed_on(name) for name in dir(model) if name not in own and not name.startswith("_")}
    return cast(OneByOne, type("OneByOne", (OneByOne,), others)(model))


def _handed_on(name: str) -> property:
    return property(lambda self: getattr(self._rater, name))


def as_ranker(model: Rater | Comparer | Ranker) -> Ranker:
    """A model as a Ranker: itself, or by the scores of a Rater; a model that only compares is refused."""
    if hasattr(model, "rank"):
        return cast(Ranker, model)
    if hasattr(model, "rate"):
        return OneByOne(cast(Rater, model))
    raise ModelError(
        f"{model.card.address!r} compares two answers and cannot rank a list", hint="name a Rater or a Ranker"
    )


def compare_by_rank(ranker: Ranker, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
    """A Ranker as a Comparer: each pair is a list of two, and the difference of their scores is the margin."""
    for place, outcomes in ranker.rank([ListView.of(view) for view in views]):
        first, second = outcomes
        took = {"latency_ms": first.latency_ms + second.latency_ms}
        if first.score is None or second.score is None:
            bad = first if first.score is None else second
            yield place, bad.model_copy(update={"score": None, **took})
        else:
            margin = first.score - second.score
            verdict: Choice = "first" if margin > 0 else "second" if margin < 0 else "tie"
            yield place, Outcome.judged(verdict, margin, **took)


def rank_by_comparisons(comparer: Comparer, views: Sequence[ListView]) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
    """A Comparer with margins as a Ranker: every two answers of a list in both orders, each answer by its mean margin.

    A list of N answers takes N × (N - 1) calls.
    """
    for place, view in enumerate(views):
        couples = list(permutations(range(len(view.answers)), 2))
        pairs = [
            PairView(
                view.question, view.answers[one], view.answers[other], view.posts, view.plan, view.user, view.turns
            )
            for one, other in couples
        ]
        found = dict(comparer.compare(pairs))
        judged = {couple: found[index] for index, couple in enumerate(couples)}
        yield place, tuple(_mean_margin(judged, answer) for answer in range(len(view.answers)))


def _mean_margin(judged: dict[tuple[int, int], Outcome], answer: int) -> Outcome:
    own = {couple: outcome for couple, outcome in judged.items() if answer in couple}
    took = {"latency_ms": sum(outcome.latency_ms for outcome in own.values()) / 2}
    for outcome in own.values():
        if outcome.margin is None:
            return outcome.model_copy(update={"verdict": None, "score": None, **took})
    margins = [
        outcome.margin if couple[0] == answer else -outcome.margin
        for couple, outcome in own.items()
        if outcome.margin is not None
    ]
    return Outcome.scored(sum(margins) / len(margins), **took) if margins else Outcome.scored(0.0)
