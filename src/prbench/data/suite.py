"""A suite: pairs that are read once and never change, with the record of where they came from.

Whatever keeps a part of a mirrored suite must keep or drop whole couples, else its guarantee is lost: `limit` does.
`filter` follows its predicate, and a suite that it cuts through is no longer mirrored.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import overload

from pydantic import Field

from prbench.data.fingerprint import fingerprint
from prbench.data.sampling import stratified_order
from prbench.errors import DataError
from prbench.types import ITEM, Frozen, Pair, read_stances


class Counts(Frozen):
    """How large a suite is."""

    pairs: int
    users: int
    questions: int
    """Distinct question texts."""
    categories: int


class DatasetRecord(Frozen):
    """Where a suite came from and exactly what it holds: `dataset.json` of a run."""

    name: str
    """With the version, where a suite has versions: `mirror@2`."""
    source: str
    revision: str = ""
    """Commit of a hub dataset, version of an embedded suite; empty for files, which the fingerprint pins."""
    fingerprint: str
    splits: Mapping[str, int] = Field(default_factory=dict)
    """Pairs of each split."""
    counts: Counts
    derived_users: bool = False
    """Whether user ids were derived from profile content because the source has none."""
    columns: Mapping[str, str] = Field(default_factory=dict)
    """Fields that were read from a column of another name."""
    notes: tuple[str, ...] = ()
    """What was left out or ignored on the way, and how a part was taken."""

    @property
    def full_name(self) -> str:
        """The name with its version, also where a run was kept before the shipped suites had a second one."""
        old = self.source == "embedded" and self.name in ("mirror", "generic")
        return f"{self.name}@1" if old else self.name

    @property
    def version(self) -> str:
        """The version, empty where the suite has none."""
        return self.full_name.partition("@")[2] if self.source == "embedded" else ""


class Suite(Sequence[Pair]):
    """An immutable sequence of pairs with its record.

    Example:
        >>> suite = Suite.of([Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")])
        >>> len(suite), suite[0].user, suite.record.counts.users
        (1, 'ann', 1)
    """

    def __init__(self, pairs: Iterable[Pair], record: DatasetRecord) -> None:
        self._pairs = tuple(pairs)
        self._record = record

    @classmethod
    def of(
        cls,
        pairs: Iterable[Pair],
        *,
        name: str = "pairs",
        source: str = "memory",
        revision: str = "",
        derived_users: bool = False,
        columns: Mapping[str, str] | None = None,
        notes: Iterable[str] = (),
    ) -> "Suite":
        """Make a suite of pairs and describe it; ids must be unique, since results are kept by them."""
        pairs = tuple(pairs)
        if repeated := [name for name, count in Counter(pair.id for pair in pairs).items() if count > 1]:
            raise DataError(f"{len(repeated)} ids stand more than once, {repeated[0]!r} first", hint="make ids unique")
        record = DatasetRecord(
            name=name,
            source=source,
            revision=revision,
            fingerprint=fingerprint(pairs),
            splits=dict(sorted(Counter(pair.tags["split"] for pair in pairs if pair.tags.get("split")).items())),
            counts=_count(pairs),
            derived_users=derived_users,
            columns=dict(columns or {}),
            notes=tuple(notes),
        )
        return cls(pairs, record)

    @property
    def record(self) -> DatasetRecord:
        """Where these pairs came from and what they are."""
        return self._record

    def __len__(self) -> int:
        return len(self._pairs)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Pair, ...]: ...
    def __getitem__(self, index: int | slice) -> Pair | tuple[Pair, ...]:
        return self._pairs[index]

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._pairs)

    def __repr__(self) -> str:
        return f"Suite({self.record.name!r}, {len(self)} pairs, {self.record.fingerprint[:8]})"

    def by_user(self) -> dict[str, tuple[Pair, ...]]:
        """Each user's pairs, users in order of appearance."""
        groups: dict[str, list[Pair]] = {}
        for pair in self._pairs:
            groups.setdefault(pair.user, []).append(pair)
        return {user: tuple(pairs) for user, pairs in groups.items()}

    def filter(self, predicate: Callable[[Pair], bool], note: str = "filtered") -> "Suite":
        """The pairs for which the predicate holds.

        Args:
            predicate: Says of each pair whether to keep it.
            note: What the record says of it.
        """
        return self._part([pair for pair in self._pairs if predicate(pair)], note)

    def limit(self, n: int, seed: int = 0) -> "Suite":
        """At most `n` pairs, a seeded sample with categories and axes in proportion.

        Mirror couples, and the pairs of one row with several answers, stay whole.

        A smaller limit takes a part of what a larger one takes under the same seed. The order of pairs is kept.
        """
        if n >= len(self):
            return self
        groups: dict[str, list[Pair]] = {}
        for pair in self._pairs:
            groups.setdefault(_couple_key(pair), []).append(pair)
        kept: set[str] = set()
        strata = {key: (pairs[0].category, pairs[0].tags.get("axis", "")) for key, pairs in groups.items()}
        for key in stratified_order(strata, seed):
            if len(kept) + len(groups[key]) > n:
                break
            kept.update(pair.id for pair in groups[key])
        if not kept:
            raise DataError(f"a limit of {n} leaves no pair", hint="use at least 2 where pairs come in mirror couples")
        return self._part([pair for pair in self._pairs if pair.id in kept], f"limited to {n}, seed {seed}")

    @property
    def is_mirrored(self) -> bool:
        """Whether every pair's other half is here: the same question and answers with the opposite label.

        Raises:
            DataError: If pairs share a mirror tag without being each other's mirror image.
        """
        couples = _couples(self._pairs)
        check_mirrors(couples)
        return bool(couples) and 2 * len(couples) == len(self) and all(len(pairs) == 2 for pairs in couples.values())

    def check(self) -> None:
        """Refuse what would end a run after everything was asked: broken mirrors, couples and tags.

        Raises:
            DataError: That names the first pair at fault.
        """
        check_mirrors(_couples(self._pairs))
        check_structure(self._pairs)

    def _part(self, pairs: Sequence[Pair], note: str) -> "Suite":
        record = self.record
        return Suite.of(
            pairs,
            name=record.name,
            source=record.source,
            revision=record.revision,
            derived_users=record.derived_users,
            columns=record.columns,
            notes=(*record.notes, note),
        )


Where = Callable[[Pair], str]
"""How a message names a pair."""


def _by_id(pair: Pair) -> str:
    return repr(pair.id)


def check_mirrors(couples: Mapping[str, Sequence[Pair]], where: Where = _by_id) -> None:
    """Refuse a mirror tag whose pairs are not two halves of one couple; a lone half may be what a filter left."""
    for mirror, pairs in couples.items():
        if len(pairs) > 2 or (len(pairs) == 2 and not _are_mirror_images(*pairs)):
            raise DataError(
                f"mirror tag {mirror!r} is broken: {', '.join(map(where, pairs[:5]))} are not one question with "
                "swapped answers for two users in one split",
                hint="give each couple its own mirror tag, or remove the tag",
            )


def check_whole_couples(pairs: Iterable[Pair], where: Where = _by_id) -> None:
    """Refuse a source that has one half of a couple without the other."""
    couples = _couples(pairs)
    check_mirrors(couples, where)
    for mirror, halves in couples.items():
        if len(halves) == 1:
            raise DataError(
                f"mirror tag {mirror!r} is broken: {where(halves[0])} has no other half",
                hint="add the pair with the swapped answers, or remove the tag",
            )


def check_structure(pairs: Iterable[Pair], where: Where = _by_id) -> None:
    """Refuse tags that would end a run after everything was paid for: what loads must be able to finish."""
    users: dict[str, dict[str, Pair]] = {}
    couple_of: dict[str, Pair] = {}
    for pair in pairs:
        try:
            read_stances(pair.tags)
        except DataError as error:
            raise DataError(f"{where(pair)}: {error.message}", hint=error.hint) from None
        if not (couple := pair.tags.get("couple")):
            continue
        users.setdefault(couple, {}).setdefault(pair.user, pair)
        if len(users[couple]) > 2:
            names = ", ".join(map(repr, users[couple]))
            raise DataError(
                f"{where(pair)}: couple {couple!r} has {len(users[couple])} users ({names})",
                hint="a couple is two users who want the opposite of each other; give the third another couple tag",
            )
        if (first := couple_of.setdefault(pair.user, pair)).tags["couple"] != couple:
            raise DataError(
                f"{where(pair)}: user {pair.user!r} is in couple {couple!r}, but in {first.tags['couple']!r} "
                f"at {where(first)}",
                hint="a user belongs to one couple",
            )


def _couples(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    couples: dict[str, list[Pair]] = {}
    for pair in pairs:
        if mirror := pair.tags.get("mirror"):
            couples.setdefault(mirror, []).append(pair)
    return couples


def _are_mirror_images(one: Pair, other: Pair) -> bool:
    return (
        one.question == other.question
        and one.user != other.user
        and one.chosen == other.rejected
        and one.rejected == other.chosen
        and one.tags.get("split") == other.tags.get("split")
    )


def _couple_key(pair: Pair) -> str:
    for tag in ("mirror", ITEM):
        if tag in pair.tags:
            return f"{tag}\0{pair.tags[tag]}"
    return f"id\0{pair.id}"


def _count(pairs: Sequence[Pair]) -> Counts:
    return Counts(
        pairs=len(pairs),
        users=len({pair.user for pair in pairs}),
        questions=len({pair.question for pair in pairs}),
        categories=len({pair.category for pair in pairs if pair.category}),
    )
