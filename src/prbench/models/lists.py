"""Lists of answers: how a Ranker is asked about one, and models of one kind asked as another.

A Rater ranks a list by its scores, a Ranker compares lists of two, and a model that sees answers together is asked
about one alone. A Ranker that may favour places in a list is asked in every rotation, so that each answer stands in
each place once, and an answer's score is the mean over the rotations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple, cast

from prbench.errors import ModelError
from prbench.models.protocols import Comparer, ModelCard, Positional, Ranker, Rater, can_rate, is_ranker, is_rater
from prbench.types import AnswerView, Choice, ListView, Message, Outcome, PairView, Prompt

PAIR = "pair"
"""Role of the turn before each pair of a list that is ranked by comparisons."""


class OneByOne:
    """A model that is asked about one answer at a time, whatever else it can do; ranks a list by these scores.

    Example:
        >>> from prbench.models import load_model
        >>> view = ListView("Tea?", ("Green.", "Black, with milk."))
        >>> [outcome.scores for _, outcome in OneByOne(load_model("shorter")).rank([view])]
        [(-1.0, -3.0)]
    """

    def __init__(self, rater: Rater) -> None:
        self._rater = rater

    @property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        return self._rater.card

    def render(self, view: Any) -> Prompt:
        """Render one answer as the model does; of a list, all its answers one after another."""
        if isinstance(view, ListView):
            return Prompt(tuple(turn for answer in view.each() for turn in self._rater.render(answer).messages))
        return self._rater.render(view)

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Ask the model for ratings."""
        return self._rater.rate(views)

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, Outcome]]:
        """Score each answer of each list alone; an answer without a score leaves its list without scores."""
        check_lists(views)
        found = dict(self.rate([answer for view in views for answer in view.each()]))
        start = 0
        for place, view in enumerate(views):
            outcomes = [found[start + index] for index in range(len(view.answers))]
            start += len(view.answers)
            bad = next((outcome for outcome in outcomes if outcome.score is None), None)
            scores = tuple(outcome.score for outcome in outcomes if outcome.score is not None)
            yield place, _with_usage(Outcome.ranked(scores) if bad is None else bad, outcomes)


class PairsByRank:
    """A Ranker as a Comparer: a pair is a list of two."""

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker

    @property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        return self._ranker.card

    def render(self, view: PairView | ListView) -> Prompt:
        """Render the list as the Ranker does."""
        return self._ranker.render(ListView.of(view) if isinstance(view, PairView) else view)

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, Outcome]]:
        """Ask the Ranker for scores."""
        check_lists(views)
        return self._ranker.rank(views)

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Judge each pair by the scores of its two answers; in log-odds, their difference is the margin."""
        return compare_by_rank(self, views, margins=self.card.units == "log-odds")


def comparing(ranker: Ranker) -> Comparer:
    """A Ranker as a Comparer, with whatever else it offers."""
    return cast(Comparer, _extended(PairsByRank, ranker, "_ranker"))


def alone(model: Rater | Comparer | Ranker) -> Rater | None:
    """The model as a Rater that sees one answer at a time; None where it can only compare or rank."""
    if is_rater(cast(Rater, model)):
        return cast(Rater, model)
    return _without_compare(model) if can_rate(model) else None


def _without_compare(model: Rater) -> OneByOne:
    """Hide that a model can compare, and hand on whatever else it offers."""
    return cast(OneByOne, _extended(OneByOne, model, "_rater", "compare"))


def _extended(kind: type[Any], model: object, inner: str, *hidden: str) -> Any:
    """A model of this kind that hands on what else the inner one offers, so that `isinstance` finds its abilities."""

    def handed_on(name: str) -> property:
        return property(lambda self: getattr(getattr(self, inner), name))

    own = {*hidden, *dir(kind)}
    others = {name: handed_on(name) for name in dir(model) if name not in own and not name.startswith("_")}
    return type(kind.__name__, (kind,), others)(model)


def as_ranker(model: Rater | Comparer | Ranker) -> Ranker:
    """A model as a Ranker: itself, or by the scores of a Rater; a model that only compares is refused."""
    if is_ranker(model):
        return model
    if can_rate(model):
        return OneByOne(model)
    raise ModelError(
        f"{model.card.address!r} compares two answers and cannot rank a list",
        hint="name a Rater or a Ranker, for example chat:…#rank or lm:…#rank",
    )


def check_lists(views: Sequence[ListView]) -> None:
    """Refuse a list of fewer than two answers, before anything is asked.

    Example:
        >>> check_lists([ListView("Tea?", ("Green.",))])
        Traceback (most recent call last):
        prbench.errors.ModelError: there is 1 answer to 'Tea?', and nothing to rank
        <BLANKLINE>
        hint: give two or more answers to a question, or rate each alone
    """
    for view in views:
        if len(view.answers) < 2:
            count = f"{len(view.answers)} answer" + ("" if len(view.answers) == 1 else "s")
            raise ModelError(
                f"there is {count} to {view.question[:60]!r}, and nothing to rank",
                hint="give two or more answers to a question, or rate each alone",
            )


class ListQuestion(NamedTuple):
    """One list, and the lists that a Ranker must be asked about to score it.

    Equal answers are shown once. Where all are equal nothing is asked, and all have the score 0.
    """

    view: ListView
    asked: tuple[ListView, ...]

    @classmethod
    def of(cls, ranker: Ranker, view: ListView) -> "ListQuestion":
        """The distinct answers of a list, in every rotation where the Ranker may favour places."""
        distinct = replace(view, answers=tuple(dict.fromkeys(view.answers)))
        count = len(distinct.answers)
        turns = count if isinstance(ranker, Positional) and ranker.favours_places else min(1, count)
        return cls(view, tuple(map(distinct.rotated, range(turns))) if count > 1 else ())

    def outcome(self, outcomes: Sequence[Outcome]) -> Outcome:
        """Return the result of the asked lists: a score for each answer of the list, in its order.

        A rotation without scores leaves the whole list without: a mean over the others would favour places.
        """
        for found, shown in zip(outcomes, self.asked, strict=True):
            if found.status != "ok" or len(found.scores) != len(shown.answers):
                bad = found if found.status != "ok" else Outcome.invalid("the model did not score every answer")
                return _with_usage(bad, outcomes)
        sums = dict.fromkeys(self.view.answers, 0.0)
        for found, shown in zip(outcomes, self.asked, strict=True):
            for answer, score in zip(shown.answers, found.scores, strict=True):
                sums[answer] += score / len(self.asked)
        return _with_usage(Outcome.ranked([sums[answer] for answer in self.view.answers]), outcomes)


def _with_usage(outcome: Outcome, outcomes: Sequence[Outcome]) -> Outcome:
    """An outcome with what several calls took together."""
    names = ("tokens_in", "tokens_out", "tokens_cached", "tokens_stored", "latency_ms", "cost_usd")
    return outcome.model_copy(update={name: sum(getattr(one, name) for one in outcomes) for name in names})


def compare_by_rank(
    ranker: Ranker, views: Sequence[PairView], *, margins: bool = True
) -> Iterator[tuple[int, Outcome]]:
    """A Ranker as a Comparer: each pair is a list of two.

    Args:
        ranker: Model that ranks.
        views: Pairs, each asked as it stands.
        margins: Whether a difference of scores is in log-odds, and so a margin.
    """
    for place, outcome in ranker.rank([ListView.of(view) for view in views]):
        if outcome.status != "ok":
            yield place, outcome
            continue
        first, second = outcome.scores
        margin = first - second
        verdict: Choice = "first" if margin > 0 else "second" if margin < 0 else "tie"
        judged = {"scores": (), "verdict": verdict, "margin": margin if margins else None}
        yield place, outcome.model_copy(update=judged)


def rank_by_comparisons(comparer: Comparer, views: Sequence[ListView]) -> Iterator[tuple[int, Outcome]]:
    """A Comparer with margins as a Ranker: every two answers of a list in both orders, each answer by its mean margin.

    A list of N answers takes N × (N - 1) calls.
    """
    check_lists(views)
    for place, view in enumerate(views):
        couples = list(permutations(range(len(view.answers)), 2))
        found = dict(comparer.compare(_pairs(view)))
        outcomes = [found[index] for index in range(len(couples))]
        yield place, _with_usage(_by_margins(dict(zip(couples, outcomes, strict=True)), len(view.answers)), outcomes)


def _by_margins(judged: dict[tuple[int, int], Outcome], answers: int) -> Outcome:
    sums = [0.0] * answers
    for (one, two), outcome in judged.items():
        if outcome.margin is None:
            return outcome if outcome.status != "ok" else Outcome.invalid("the model gave no margin")
        sums[one] += outcome.margin
        sums[two] -= outcome.margin
    return Outcome.ranked([total / (2 * (answers - 1)) for total in sums])


def render_pairs(comparer: Comparer, view: ListView) -> Prompt:
    """Return a Comparer's prompt for a list: the prompts of every two answers, each after a turn of the role `pair`."""
    turns: list[Message] = []
    for number, pair in enumerate(_pairs(view), 1):
        turns += [Message(PAIR, str(number)), *comparer.render(pair).messages]
    return Prompt(tuple(turns))


def pair_prompts(prompt: Prompt) -> list[Prompt]:
    """The prompts of a list's pairs; of any other prompt, itself."""
    starts = [place for place, turn in enumerate(prompt.messages) if turn.role == PAIR]
    if not starts:
        return [prompt]
    ends = [*starts[1:], len(prompt.messages)]
    return [Prompt(prompt.messages[start + 1 : end]) for start, end in zip(starts, ends, strict=True)]


def _pairs(view: ListView) -> list[PairView]:
    shown = (view.posts, view.plan, view.user, view.turns)
    return [PairView(view.question, one, two, *shown) for one, two in permutations(view.answers, 2)]
