"""Checks of the tags of pairs that belong together, by column: mirrors, couples and stances."""

from collections.abc import Callable

from prbench.columns import ModelColumns
from prbench.errors import DataError
from prbench.types import Pair, read_stances

Where = Callable[[Pair], str]
"""Function that names a pair in a message."""


def by_id(pair: Pair) -> str:
    """A pair by its id."""
    return repr(pair.id)


class Mirrors:
    """Pairs that share a mirror tag: two halves that meet the same two answers and want opposite ones.

    Args:
        pairs: All pairs.
        where: How a message names a pair.
    """

    def __init__(self, pairs: ModelColumns[Pair], where: Where = by_id) -> None:
        import numpy as np

        self._pairs, self._where = pairs, where
        self._tags = pairs.entries("tags", "mirror")
        numbers: dict[str, int] = {}
        mirrors = [numbers.setdefault(tag, len(numbers)) if tag else -1 for tag in self._tags]
        codes = np.array(mirrors, dtype=np.int64)
        order = np.argsort(codes, kind="stable")
        self._places = order[codes[order] >= 0]
        """Places of halves, mirror by mirror in the order in which these first appear."""
        self._counts = np.bincount(codes[self._places], minlength=len(numbers))
        self._begin = np.cumsum(self._counts) - self._counts

    @property
    def whole(self) -> bool:
        """Whether every pair is a half and its other half is there."""
        return bool(len(self._counts)) and len(self._places) == len(self._pairs) and bool((self._counts == 2).all())

    def check(self) -> None:
        """Refuse a mirror tag whose pairs are not two halves of one couple; a lone half may be what a filter left."""
        import numpy as np

        couples = self._begin[self._counts == 2]
        first, second = self._places[couples].tolist(), self._places[couples + 1].tolist()
        column, split = self._pairs.column, self._pairs.entries("tags", "split")
        asked, user, chosen, rejected = (column(name) for name in ("question", "user", "chosen", "rejected"))
        images = np.array(
            [
                asked[i] == asked[j]
                and user[i] != user[j]
                and chosen[i] == rejected[j]
                and rejected[i] == chosen[j]
                and split[i] == split[j]
                for i, j in zip(first, second, strict=True)
            ],
            dtype=np.bool_,
        )
        broken = self._counts > 2
        broken[np.flatnonzero(self._counts == 2)[~images]] = True
        if broken.any():
            self._refuse(int(np.argmax(broken)))

    def check_whole(self) -> None:
        """Refuse a source that has one half of a couple without the other."""
        self.check()
        if (alone := self._counts == 1).any():
            place = int(self._places[self._begin[alone][0]])
            raise DataError(
                f"mirror tag {self._tags[place]!r} is broken: {self._where(self._pairs[place])} has no other half",
                hint="add the pair with the swapped answers, or remove the tag",
            )

    def _refuse(self, mirror: int) -> None:
        begin = int(self._begin[mirror])
        places = self._places[begin : begin + min(int(self._counts[mirror]), 5)].tolist()
        raise DataError(
            f"mirror tag {self._tags[places[0]]!r} is broken: "
            f"{', '.join(self._where(self._pairs[place]) for place in places)} are not one question with "
            "swapped answers for two users in one split",
            hint="give each couple its own mirror tag, or remove the tag",
        )


def check_structure(pairs: ModelColumns[Pair], where: Where = by_id) -> None:
    """Refuse tags that would end a run after everything was paid for: what loads must be able to finish."""
    _check_stances(pairs, where)
    users: dict[str, dict[str, int]] = {}
    first_of: dict[str, int] = {}
    couples = pairs.entries("tags", "couple")
    for place, (couple, user) in enumerate(zip(couples, pairs.column("user"), strict=True)):
        if not couple:
            continue
        known = users.setdefault(couple, {})
        known.setdefault(user, place)
        if len(known) > 2:
            raise DataError(
                f"{where(pairs[place])}: couple {couple!r} has {len(known)} users ({', '.join(map(repr, known))})",
                hint="a couple is two users who want the opposite of each other; give the third another couple tag",
            )
        if couples[first := first_of.setdefault(user, place)] != couple:
            raise DataError(
                f"{where(pairs[place])}: user {user!r} is in couple {couple!r}, but in {couples[first]!r} "
                f"at {where(pairs[first])}",
                hint="a user belongs to one couple",
            )


def _check_stances(pairs: ModelColumns[Pair], where: Where) -> None:
    known: set[tuple[str | None, str | None]] = set()
    both = zip(pairs.entries("tags", "axis"), pairs.entries("tags", "pole"), strict=True)
    for place, (axis, pole) in enumerate(both):
        if (axis, pole) in known:
            continue
        known.add((axis, pole))
        try:
            read_stances({"axis": axis or "", "pole": pole or ""})
        except DataError as error:
            raise DataError(f"{where(pairs[place])}: {error.message}", hint=error.hint) from None
