"""Contexts: from a pair to what a model is shown of its user. The only place where a `Pair` becomes a `PairView`."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from prbench.contexts.budget import FittedList, PromptBudget, Unfit
from prbench.contexts.posts import POSTS, SuitePosts
from prbench.models import Model, Ranker
from prbench.rank import BM25, PostRanker
from prbench.types import AnswerView, Aspect, Context, Judgment, ListView, Pair, PairView


class ShownView(NamedTuple):
    """View that a model is shown for a pair: the chosen answer stands first, the run swaps where it must."""

    view: PairView
    dropped: tuple[str, ...]


class ShownAnswers(NamedTuple):
    """Views that a Rater is shown of some answers to a pair's question: all of them with the same posts."""

    views: tuple[AnswerView, ...]
    dropped: tuple[str, ...]


class ContextBuilder:
    """Builds views for one suite and one model.

    Args:
        pairs: The whole suite, so that `other` does not change with what is left out of a run.
        model: Whose window must be kept.
        ranker: Chooses posts for `retrieved@k` and where not all fit.
        seed: Of the derangement behind `other`, and of what `diluted@k` adds.
        plans: Inferred aspects by pair id, for `plan` and `profile+plan`.
        judged: Labelled pairs by user, for `pairs@K`.
        adapts: Whether the model was fitted to these pairs, so that they are not shown as text.

    Example:
        >>> from prbench.models import load_model
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")
        >>> builder = ContextBuilder([pair], load_model("longer"))
        >>> builder.show(pair, Context.parse("none")).view.first
        'Green.'
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        model: Model | Ranker,
        *,
        ranker: PostRanker | None = None,
        seed: int = 0,
        plans: Mapping[str, tuple[str, ...]] | None = None,
        judged: Mapping[str, Sequence[Judgment]] | None = None,
        adapts: bool = False,
    ) -> None:
        ranker = ranker or BM25()
        self._suite = SuitePosts(pairs, ranker, seed, judged or {}, adapts=adapts)
        self._plans = {} if plans is None else plans
        jurors: Sequence[Model | Ranker] = getattr(model, "jurors", (model,))
        self._budgets = [PromptBudget(juror, ranker) for juror in jurors]  # all jurors are shown the same

    @property
    def unlimited(self) -> bool:
        """Whether the model has no window, so that every view fits."""
        return all(budget.unlimited for budget in self._budgets)

    def show(self, pair: Pair, context: Context) -> ShownView | Unfit:
        """Return the view of this pair in this context, or the reason why there is none."""
        view = self._view(pair, context)
        return view if isinstance(view, Unfit) else self.fit(view)

    def fit(self, view: PairView) -> ShownView | Unfit:
        """Return a view without the posts for which the model's window has no room, or the reason why there is none."""
        dropped: tuple[str, ...] = ()
        for budget in self._budgets:
            fitted = budget.fit(view)
            if isinstance(fitted, Unfit):
                return fitted
            view, dropped = fitted.view, dropped + fitted.dropped
        return ShownView(view, dropped)

    def show_answers(self, pair: Pair, context: Context, answers: Sequence[str]) -> ShownAnswers | Unfit:
        """Return a Rater's views of other answers to the pair's question, made as those of the pair's own."""
        view = self._view(pair, context)
        fitted = view if isinstance(view, Unfit) else self._budgets[0].fit_all(view, answers)
        if isinstance(fitted, Unfit):
            return fitted
        shown = fitted.view
        known = (shown.posts, shown.plan, shown.user, shown.turns)
        return ShownAnswers(tuple(AnswerView(shown.question, answer, *known) for answer in answers), fitted.dropped)

    def show_list(self, pair: Pair, context: Context, answers: Sequence[str]) -> FittedList | Unfit:
        """Return a Ranker's view of other answers to the pair's question, all at once."""
        view = self._view(pair, context)
        if isinstance(view, Unfit):
            return view
        listed = ListView(view.question, tuple(answers), view.posts, view.plan, view.user, view.turns)
        return self._budgets[0].fit_list(listed)

    def _view(self, pair: Pair, context: Context) -> PairView | Unfit:
        user, posts = POSTS[context.name](self._suite, pair, context)
        plan = self._plan(pair, context)
        if isinstance(plan, Unfit):
            return plan
        fitted = context.kind.source == "judgments" and self._suite.adapts
        if "posts" in context.needs and not posts and not fitted:
            return Unfit(f"user {user!r} has no {context.kind.counts} to show")
        return PairView(pair.question, pair.chosen, pair.rejected, posts, plan, user, pair.turns)

    def _plan(self, pair: Pair, context: Context) -> tuple[str, ...] | Unfit:
        if context.leaks:
            return tuple(map(aspect_line, pair.rubric_aspects)) or Unfit("the pair has no rubric aspects")
        if "plan" in context.needs:
            return self._plans.get(pair.id) or Unfit("there is no plan for the pair", "failed")
        return ()


def aspect_line(aspect: Aspect) -> str:
    """An aspect as one line of a plan.

    Example:
        >>> aspect_line(Aspect(aspect="Keep it short", reason="reads on the bus"))
        'Keep it short (reads on the bus)'
    """
    return f"{aspect.aspect} ({aspect.reason})" if aspect.reason else aspect.aspect
