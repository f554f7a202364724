"""Views of the items of a request, made by the benchmark's own builder, so that both score the same thing.

Items of one request that ask the same question of the same user are shown together, as the two answers of a pair are:
all with the same posts, those that fit beside the longest.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from prbench.contexts import ContextBuilder, ShownAnswers, Unfit
from prbench.errors import ContextError, ModelError
from prbench.models import Ranker, Rater, as_ranker
from prbench.rank import BM25, PostRanker
from prbench.serve.gathering import Waiting, shown_length, waiting_of
from prbench.serve.items import ItemError, ScoreItem
from prbench.texts import sentences
from prbench.types import AnswerView, Context, ListView, Pair, Post

_LOG = logging.getLogger(__name__)
_RENEWED_AFTER = 20_000
"""Answers after which the builder is made anew: it remembers the length of every answer it has met, and a server meets
new ones for weeks."""

Shown = AnswerView | ItemError
_Group = tuple[str | None, str, tuple[Post, ...] | None, tuple[str, ...]]


class Views:
    """Makes views for one model, suite and context. Not for several threads at once.

    Args:
        pairs: The whole suite, every split.
        model: Who will be shown the views.
        context: What of a user is shown.
        ranker: Chooses posts; default as in the benchmark.
        seed: Of the derangement behind `other`, as in the benchmark.
        together: Who will be shown lists; default: the model, by its scores.

    Example:
        >>> from prbench.models import load_model
        >>> views = Views([], load_model("longer"), Context.parse("none"))
        >>> views.show([ScoreItem(question="Tea?", answer="Green.")])[0].answer
        'Green.'
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        model: Rater | Ranker,
        context: Context,
        *,
        ranker: PostRanker | None = None,
        seed: int = 0,
        together: Ranker | None = None,
    ) -> None:
        self.context, self._ranker = context, ranker
        self._plans: dict[str, tuple[str, ...]] = {}
        self._new_builder = partial(ContextBuilder, pairs, model, ranker=ranker, seed=seed, plans=self._plans)
        self._builder = self._new_builder()
        self._new_lists = partial(
            ContextBuilder, pairs, together or as_ranker(model), ranker=ranker, seed=seed, plans=self._plans
        )
        self._lists: ContextBuilder | None = None
        self._shown = 0
        self._lengths: dict[str, int] = {}
        self._by_user: dict[str, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
        for pair in pairs:
            self._by_user[pair.user][pair.question].append(pair)

    @property
    def users(self) -> int:
        """Number of users that the suite has."""
        return len(self._by_user)

    def renew(self) -> None:
        """Forget the texts that were shown."""
        self._plans.clear()
        if isinstance(self._ranker, BM25):
            self._ranker.forget()
        self._builder, self._lists, self._shown = self._new_builder(), None, 0

    def cost(self, item: ScoreItem) -> Waiting:
        """Return the cost of scoring an item: its own texts, and the posts of its user that are shown."""
        most = self.context.k if self.context.kind.picks == "own" else None
        found = waiting_of(item, None if item.posts and item.plan else most)  # beside a plan own posts are shown whole
        if item.posts is not None or item.user is None or not self.context.needs:
            return found
        if item.user not in self._lengths and item.user in self._by_user:
            [pair, *_] = next(iter(self._by_user[item.user].values()))
            self._lengths[item.user] = shown_length(pair.profile, most)
        return found._replace(shared=found.shared + self._lengths.get(item.user, 0))

    def sound_items(self, most: int) -> list[ScoreItem]:
        """Answers of the suite, from all over it, whole ones and first sentences: what a floor must lie below."""
        pairs = [pair for questions in self._by_user.values() for asked in questions.values() for pair in asked[:1]]
        step = max(1, 2 * len(pairs) // most)
        items = [
            ScoreItem(question=pair.question, answer=answer, user=pair.user)
            for pair in pairs[::step]
            for answer in (pair.chosen, next(iter(sentences(pair.rejected)), pair.rejected))
        ]
        return items[:most]

    def sample(self) -> AnswerView | None:
        """One view of the suite, of the kind that the model will be shown; None where the suite has none."""
        return next((view for view in self.show(self.sound_items(1)) if isinstance(view, AnswerView)), None)

    def show(self, items: Sequence[ScoreItem], judged: Mapping[str, object] | None = None) -> list[Shown]:
        """Return the model's view of each item, or the reason why there is none.

        Args:
            items: Items of one request.
            judged: Users who have judged pairs: such a user is shown by name also where there are no posts.
        """
        if self._shown > _RENEWED_AFTER:
            self.renew()
        self._shown += len(items)
        groups: dict[_Group, list[int]] = defaultdict(list)
        for place, item in enumerate(items):
            groups[item.user, item.question, item.posts, item.plan].append(place)
        shown: dict[int, Shown] = {}
        for places in groups.values():
            shown.update(zip(places, self._group([items[place] for place in places], judged or {}), strict=True))
        return [shown[place] for place in range(len(items))]

    def show_list(self, items: Sequence[ScoreItem], judged: Mapping[str, object]) -> ListView | ItemError:
        """Return a Ranker's view of answers to one question, or the reason why there is none."""
        self._shown += len(items)
        if self._shown > _RENEWED_AFTER:
            self.renew()
        self._lists = self._lists or self._new_lists()
        first, answers = self._known(items[0], judged), [item.answer for item in items]
        found = self._find(first, answers)
        if isinstance(found, ItemError):
            return found
        pair, context = found
        shown = self._lists.show_list(pair, context, answers)
        if isinstance(shown, Unfit):
            return ItemError("unfit", shown.reason)
        own = first.posts is not None and self.context.name != "none"
        return replace(shown.view, user=first.user) if own else shown.view

    def _known(self, item: ScoreItem, judged: Mapping[str, object]) -> ScoreItem:
        """Return the item; with no posts for a user who is known by judgments alone."""
        if item.user in judged and item.user not in self._by_user and item.posts is None:
            return item.model_copy(update={"posts": ()})
        return item

    def _group(self, items: Sequence[ScoreItem], judged: Mapping[str, object]) -> Sequence[Shown]:
        first, answers = self._known(items[0], judged), [item.answer for item in items]
        found = self._find(first, answers)
        if isinstance(found, ItemError):
            return [found] * len(items)
        pair, context = found
        return self._built(pair, context, answers, first)

    def _find(self, item: ScoreItem, answers: Sequence[str]) -> tuple[Pair, Context] | ItemError:
        """The pair to be shown with other answers, and the context to show it in."""
        if self.context.name == "none":
            return _pair(item, item.user or "nobody"), self.context
        if item.posts is not None:
            return self._own(item)
        if item.user is None or item.user not in self._by_user:
            wanted = (
                "no user and no posts" if item.user is None else f"no user {item.user!r} in the suite, and no posts"
            )
            return ItemError(
                "unknown-user", f"there is {wanted}, and context '{self.context}' shows them (\"posts\": [] shows none)"
            )
        if item.plan and "plan" not in self.context.needs:
            return ItemError("unfit", f"context '{self.context}' shows no plan, and the item has one")
        pair = self._of_suite(item.user, item.question, answers)
        if "plan" in self.context.needs and not self.context.leaks:
            self._plans[pair.id] = item.plan
        return pair, self.context

    def _own(self, item: ScoreItem) -> tuple[Pair, Context] | ItemError:
        """Return pair and context for a user whose posts come with the item: what was sent is what is shown."""
        if self.context.kind.picks == "suite":
            return ItemError("unfit", f"context '{self.context}' shows a user of the suite, and the item has posts")
        pair = _pair(item, item.user or "nobody")
        self._plans[pair.id] = item.plan
        if item.posts:
            chosen = self.context.kind.picks == "own" and not item.plan
            return pair, self.context if chosen else Context("profile+plan" if item.plan else "profile")
        return pair, Context("plan" if item.plan else "none")

    def _of_suite(self, user: str, question: str, answers: Sequence[str]) -> Pair:
        """The suite's pair with this question, the one with one of these answers first; else a new question."""
        questions = self._by_user[user]
        if question in questions:
            asked = questions[question]
            return next((pair for pair in asked if pair.chosen in answers or pair.rejected in answers), asked[0])
        # Of the user's other questions only the posts hold, and who is shown instead; never what was expected there.
        any_pair = next(iter(questions.values()))[0]
        return any_pair.model_copy(update={"question": question, "narrative": "", "rubric_aspects": ()})

    def _built(self, pair: Pair, context: Context, answers: Sequence[str], item: ScoreItem) -> Sequence[Shown]:
        try:
            shown = self._builder.show_answers(pair, context, answers)
        except (ContextError, ModelError) as error:  # perhaps in the words of a user's own model
            _LOG.warning("an item cannot be shown", exc_info=error)
            shown = Unfit(f"it cannot be shown under context '{context}'; the server's log says why")
        if not isinstance(shown, ShownAnswers):
            return [ItemError("unfit", shown.reason)] * len(answers)
        if item.posts is None or self.context.name == "none":
            return shown.views
        return [replace(view, user=item.user) for view in shown.views]


def _pair(item: ScoreItem, user: str) -> Pair:
    """Return a pair for a user outside the suite; its answers are never shown, the item's are."""
    return Pair(id="item", user=user, question=item.question, profile=item.posts or (), chosen="1", rejected="2")
