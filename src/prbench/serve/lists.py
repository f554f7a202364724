"""POST /rank: the answers to one question, scored together by a model that can rank, else one by one.

A list is asked whole, in the model's thread and between batches. Answers that say nothing are not shown to the model
and stand below all others.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from prbench.models import ListQuestion, Ranker
from prbench.serve.batching import OverloadedError
from prbench.serve.items import FloorScore, ItemBounds, ItemError, Scored, ScoreItem
from prbench.serve.jobs import discreet, logged
from prbench.serve.views import Views
from prbench.texts import is_degenerate


class RankRequest(ScoreItem):
    """The body of POST /rank: an item with `answers` in place of `answer`.

    Example:
        >>> RankRequest(question="Tea?", answers=["Green.", "Black."]).each()[1].answer
        'Black.'
    """

    answer: str = ""
    answers: tuple[str, ...] = Field(fail_fast=True)

    @field_validator("answers", mode="before")
    @classmethod
    def _few(cls, answers: object, info: ValidationInfo) -> object:
        if isinstance(answers, list | tuple) and isinstance(info.context, ItemBounds):
            answers = answers[: info.context.items + 1]
        if isinstance(answers, list | tuple) and len(answers) < 2:
            raise ValueError("a list to be ranked has two answers or more; one alone is scored by POST /score")
        return answers

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.answer:
            raise ValueError("a list has 'answers', not 'answer'")
        return self

    def each(self) -> list[ScoreItem]:
        """One item for each answer."""
        first = ScoreItem(question=self.question, answer="", user=self.user, posts=self.posts, plan=self.plan)
        return [first.model_copy(update={"answer": answer}) for answer in self.answers]


def rank_list(
    ranker: Ranker, views: Views, items: Sequence[ScoreItem], judged: Mapping[str, object], until: float
) -> list[Scored]:
    """The scores of a list, or the same error for every answer; in the model's thread.

    Raises:
        OverloadedError: If its turn comes too late.
    """
    if time.monotonic() > until:
        raise OverloadedError("the request was not reached before its deadline")
    try:
        shown = views.show_list(items, judged)
        if isinstance(shown, ItemError):
            return [shown] * len(items)
        question = ListQuestion.of(ranker, shown)
        found = dict(ranker.rank(question.asked)) if question.asked else {}
        outcome = discreet(question.outcome([found[place] for place in range(len(question.asked))]))
    except Exception as error:
        return [ItemError("failed", logged(error))] * len(items)
    if outcome.status != "ok":
        return [ItemError("failed" if outcome.status == "failed" else "invalid", outcome.reason)] * len(items)
    return list(outcome.scores)


def sound_places(items: Sequence[ScoreItem], floor: str | float) -> list[int]:
    """The answers that the model is shown: all but those that say nothing, where these have a floor."""
    return [place for place, item in enumerate(items) if floor == "off" or not is_degenerate(item.answer)]


def with_floor(scored: Sequence[Scored], sound: Sequence[int], count: int) -> list[Scored]:
    """The scores of a whole list: what was not shown stands as far below the lowest as the others lie apart.

    Example:
        >>> with_floor([1.0, 3.0], [0, 2], 3)
        [1.0, -1.0, 3.0]
    """
    known = dict(zip(sound, scored, strict=True))
    numbers = [one for one in scored if isinstance(one, float)]
    spread = max(numbers) - min(numbers) if numbers else 0.0
    floor = FloorScore((min(numbers) if numbers else 0.0) - max(spread, 1e-3))
    return [known.get(place, floor) for place in range(count)]
