"""Order in which calls are sent: prompts that begin alike follow each other, for a server's prefix cache.

The order looks at nothing but what is shown, so it cannot tell a model which answer is the chosen one.
"""

from collections.abc import Iterator, Sequence

from prbench.types import AnswerView, ListView, Outcome, PairView


def prefix_order(views: Sequence[AnswerView | PairView | ListView]) -> list[int]:
    """Positions of views: those with the same posts together, and among them those with the same plan and question.

    What comes first stays first, so a run that is stopped early has asked what it was handed early.

    Example:
        >>> views = [AnswerView(question, "Yes.") for question in ("Tea?", "Milk?", "Tea?")]
        >>> prefix_order(views)
        [0, 2, 1]
    """
    seen: dict[object, int] = {}
    places = [
        (seen.setdefault(view.posts, position), seen.setdefault((view.posts, view.plan, view.question), position))
        for position, view in enumerate(views)
    ]
    return sorted(range(len(views)), key=places.__getitem__)


def restored(order: Sequence[int], replies: Iterator[tuple[int, Outcome]]) -> Iterator[tuple[int, Outcome]]:
    """Replies by place in `order`, as replies by the position that the place stands for.

    Example:
        >>> list(restored([1, 0], iter([(0, Outcome.failed("?"))])))[0][0]
        1
    """
    for place, outcome in replies:
        yield order[place], outcome
