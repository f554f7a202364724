"""Which of the waiting items make the next batch: those that share the most, without letting anybody wait for ever.

Candidates for one question share user, posts and question, which a causal model then computes once; questions of one
user share the posts. So a batch is filled user by user and question by question, in the order in which the first of
each came. The item that has waited longest is always among them.
"""

from collections.abc import Hashable, Sequence


def gather(waiting: Sequence[tuple[Hashable, Hashable]], most: int) -> list[int]:
    """The places of at most `most` items, out of (user, question) in the order of arrival.

    A question's candidates are left together for the next batch, rather than cut, once a batch is half full.

    Example:
        >>> gather([("ann", 1), ("bob", 2), ("ann", 1), ("eve", 2), ("ann", 3)], most=4)
        [0, 2, 4, 1]
        >>> gather([("ann", 1), ("ann", 1), ("bob", 2), ("bob", 2), ("bob", 2)], most=4)
        [0, 1]
    """
    if len(waiting) <= most:
        return list(range(len(waiting)))
    users: dict[Hashable, dict[Hashable, list[int]]] = {}
    for place, (user, question) in enumerate(waiting):
        users.setdefault(user, {}).setdefault(question, []).append(place)
    taken: list[int] = []
    for questions in users.values():
        for places in questions.values():
            room = most - len(taken)
            if len(places) <= room or 2 * len(taken) < most:
                taken += places[:room]
    return taken
