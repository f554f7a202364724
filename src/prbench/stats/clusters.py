"""Clusters of observations that belong together: by user (or whatever unit is independent) and by question.

Where one label is nested in the other (each user asks one question, as in the paper, or each question has one user),
only the coarser one is a source of dependence, and only it is resampled.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from prbench.stats.arrays import Codes

Label = TypeVar("Label", bound=Hashable)


def encode(labels: "Iterable[Label] | NDArray[Any]") -> tuple[Codes, list[Label]]:
    """Number the labels in sorted order, so that the numbers do not depend on the order of the rows.

    Example:
        >>> codes, names = encode(["b", "a", "b"])
        >>> codes.tolist(), names
        ([1, 0, 1], ['a', 'b'])
    """
    if isinstance(labels, np.ndarray):
        found, numbers = np.unique(labels, return_inverse=True)
        return numbers.astype(np.int64, copy=False), found.tolist()
    labels = list(labels)
    distinct = set(labels)
    plain = set(map(type, distinct)) == {str}
    names = sorted(distinct) if plain else sorted(distinct, key=lambda label: (type(label).__name__, label))  # type: ignore[type-var]
    number = {name: code for code, name in enumerate(names)}
    return np.array(list(map(number.__getitem__, labels)), dtype=np.int64), names


@dataclass(frozen=True, eq=False)
class Clusters:
    """The two labels of every row as integer codes.

    Example:
        >>> clusters = Clusters.of(users=["ann", "ann", "bob"], questions=["tea", "cake", "tea"])
        >>> clusters.n, clusters.nested, clusters.units
        (3, False, 2)
        >>> Clusters.of(users=["ann", "ann", "bob"], questions=["tea", "cake", "jam"]).nested
        True
    """

    users: Codes
    questions: Codes

    @classmethod
    def of(cls, users: Sequence[Hashable], questions: Sequence[Hashable]) -> "Clusters":
        """Group rows by their labels.

        Args:
            users: The independent unit of each row: the user, or on mirrored suites the couple of users.
            questions: The question of each row.
        """
        if len(users) != len(questions):
            raise ValueError(f"{len(users)} users but {len(questions)} questions")
        return cls(encode(users)[0], encode(questions)[0])

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.users)

    @cached_property
    def cells(self) -> Codes:
        """The code of each row's (user, question)."""
        pairs = self.users * (int(self.questions.max(initial=0)) + 1) + self.questions
        return _dense(pairs)

    @cached_property
    def dimensions(self) -> tuple[Codes, ...]:
        """The codes to resample by: two where users and questions are crossed, the coarser one where nested."""
        users, questions, cells = count(self.users), count(self.questions), count(self.cells)
        if cells == questions:
            return (self.users,)
        if cells == users:
            return (self.questions,)
        return (self.users, self.questions)

    @property
    def nested(self) -> bool:
        """Whether one label is nested in the other."""
        return len(self.dimensions) == 1

    @property
    def size(self) -> int:
        """Number of cells whose rows always get the same weight: of user and question, or of the coarser one."""
        return count(self.dimensions[0] if self.nested else self.cells)

    @cached_property
    def units(self) -> int:
        """Number of clusters, in the resampled dimension that has fewest."""
        return min(count(codes) for codes in self.dimensions)

    def take(self, rows: NDArray[np.bool_] | Codes) -> "Clusters":
        """The clusters of some of the rows, given as a mask or as positions."""
        return Clusters(_dense(self.users[rows]), _dense(self.questions[rows]))


def count(codes: Codes) -> int:
    """Return the number of clusters of a dense code."""
    return int(codes.max(initial=-1)) + 1


_SPARSE = 4
"""Largest code for each row up to which codes are numbered by a table of all of them, and not by sorting."""


def _dense(codes: Codes) -> Codes:
    """Number codes anew from 0, in their order, without those that do not occur."""
    if len(codes) and (most := int(codes.max())) < _SPARSE * len(codes):
        there = np.zeros(most + 1, dtype=np.int64)
        there[codes] = 1
        numbered: Codes = (np.cumsum(there) - 1)[codes]
        return numbered
    return np.unique(codes, return_inverse=True)[1].astype(np.int64, copy=False)
