"""Judgments of users, read by the model a part at a time.

A personal model makes vectors of all that a user has judged before it can score anything for that user, and keeps
them. With hundreds of judgments that takes longer than any item, so the texts are put into the queue as items of their
own, in small parts: batches of other clients come between, and the user's own item finds the vectors there.
"""

import time
from collections.abc import Callable, Sequence

from prbench.serve.batching import Batcher
from prbench.serve.items import ScoreItem
from prbench.types import Judgment

_QUICKLY_READ = 2_000
"""Characters of judged answers that a batch may read beside its own."""
_PART = 16
"""Judged answers that are put into the queue at a time."""
_READ_AGAIN = 2_000
"""Items after which a model may have dropped what it made of judged answers, to make room."""


class JudgedTexts:
    """Knows how much of each user's judgments the model has read lately.

    Args:
        batcher: Batcher that asks the model.
        judged: What a user has judged, in order.
    """

    def __init__(self, batcher: Batcher, judged: Callable[[str], Sequence[Judgment]]) -> None:
        self._batcher = batcher
        self._judged = judged
        self._read: dict[str, int] = {}
        self._items = 0

    async def read(self, items: Sequence[ScoreItem], until: float) -> None:
        """Have the model read what the users of these items have judged and it has not read yet.

        Args:
            items: That will be scored next.
            until: The deadline of their request, by the monotonic clock.
        """
        self._items += len(items)
        if self._items > _READ_AGAIN:
            self.forget()
        for user in dict.fromkeys(item.user for item in items if item.user is not None):
            judged = self._judged(user)
            answers = [
                ScoreItem(question=one.question, answer=answer, posts=())
                for one in judged[self._read.get(user, 0) :]
                for answer in (one.chosen, one.rejected)
            ]
            if sum(len(item.answer) for item in answers) > _QUICKLY_READ:
                for start in range(0, len(answers), _PART):
                    await self._batcher.score(answers[start : start + _PART], left_s(until))
            if judged:
                self._read[user] = len(judged)

    def forget(self) -> None:
        """Mark everything as unread."""
        self._read.clear()
        self._items = 0


def length_of(judgment: Judgment) -> int:
    """Characters of a judgment."""
    return len(judgment.question) + len(judgment.chosen) + len(judgment.rejected)


def left_s(until: float) -> float:
    """Seconds until a time of the monotonic clock; never none at all."""
    return max(1e-3, until - time.monotonic())
