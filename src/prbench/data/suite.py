"""A suite: pairs that are read once and never change, with the record of where they came from.

Whatever keeps a part of a mirrored suite must keep or drop whole couples, else its guarantee is lost: `limit` does.
`filter` follows its predicate, and a suite that it cuts through is no longer mirrored.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

from pydantic import Field

from prbench.columns import ModelColumns
from prbench.data.fingerprint import Hashes, hash_pairs, joined_hash
from prbench.data.sampling import stratified_order
from prbench.data.structure import Mirrors, check_structure
from prbench.errors import DataError
from prbench.types import ITEM, Frozen, Pair


class Counts(Frozen):
    """Size of a suite."""

    pairs: int
    users: int
    questions: int
    """Number of distinct question texts."""
    categories: int


class DatasetRecord(Frozen):
    """Record of a suite's origin and exact content: `dataset.json` of a run."""

    name: str
    """Name of the suite, with the version where it has versions: `mirror@2`."""
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
    """Notes on what was left out or ignored on the way, and on how a part was taken."""

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
    """An immutable sequence of pairs with its record, kept by column: a `Pair` is made where one is asked for.

    Args:
        pairs: The pairs.
        record: Record of their origin.
        hashes: A hash of each, where they are known.

    Example:
        >>> suite = Suite.of([Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")])
        >>> len(suite), suite[0].user, suite.record.counts.users
        (1, 'ann', 1)
    """

    def __init__(self, pairs: Iterable[Pair], record: DatasetRecord, hashes: "Hashes | None" = None) -> None:
        self._pairs = pair_columns(pairs)
        self._record = record
        self._hashes = hash_pairs(self._pairs) if hashes is None else hashes

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
        hashes: "Hashes | None" = None,
    ) -> "Suite":
        """Make a suite of pairs and describe it; ids must be unique, since results are kept by them."""
        kept = pair_columns(pairs)
        if len(set(kept.column("id"))) < len(kept):
            repeated = [name for name, count in Counter(kept.column("id")).items() if count > 1]
            raise DataError(f"{len(repeated)} ids stand more than once, {repeated[0]!r} first", hint="make ids unique")
        hashes = hash_pairs(kept) if hashes is None else hashes
        record = DatasetRecord(
            name=name,
            source=source,
            revision=revision,
            fingerprint=joined_hash(hashes),
            splits=dict(sorted(Counter(split for split in kept.entries("tags", "split") if split).items())),
            counts=_count(kept),
            derived_users=derived_users,
            columns=dict(columns or {}),
            notes=tuple(notes),
        )
        return cls(kept, record, hashes)

    @property
    def record(self) -> DatasetRecord:
        """Return the record of these pairs: their origin and content."""
        return self._record

    def column(self, name: str) -> Sequence[Any]:
        """A field of all pairs: texts as they are, profiles as tuples of posts."""
        return self._pairs.column(name)

    def tag(self, name: str) -> Sequence[str | None]:
        """Return the value of each pair under a tag, None where it has not the tag."""
        if name not in self._tags:
            self._tags[name] = self._pairs.entries("tags", name)
        return self._tags[name]

    @cached_property
    def _tags(self) -> dict[str, list[str | None]]:
        return {}

    @cached_property
    def tags(self) -> frozenset[str]:
        """The names of all tags."""
        return frozenset(name for names in {names for names, _ in self._pairs.column("tags")} for name in names)

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
        return self.keep([predicate(pair) for pair in self._pairs], note)

    def keep(self, mask: Iterable[bool], note: str) -> "Suite":
        """The pairs for which a mask holds.

        Args:
            mask: Says of each pair, in order, whether to keep it.
            note: What the record says of it.
        """
        import numpy as np

        kept = np.fromiter(mask, dtype=np.bool_, count=len(self))
        record = self.record
        return Suite.of(
            self._pairs if kept.all() else self._pairs.where(kept.tolist()),
            name=record.name,
            source=record.source,
            revision=record.revision,
            derived_users=record.derived_users,
            columns=record.columns,
            notes=(*record.notes, note),
            hashes=self._hashes[kept],
        )

    def limit(self, n: int, seed: int = 0) -> "Suite":
        """Return at most `n` pairs, a seeded sample with categories and axes in proportion.

        Mirror couples, and the pairs of one row with several answers, stay whole.

        A smaller limit takes a part of what a larger one takes under the same seed. The order of pairs is kept.
        """
        if n >= len(self):
            return self
        groups = limited_groups(
            self.column("id"), self.tag("mirror"), self.tag(ITEM), self.column("category"), self.tag("axis"), n, seed
        )
        if not any(groups):
            raise DataError(f"a limit of {n} leaves no pair", hint="use at least 2 where pairs come in mirror couples")
        return self.keep(groups, f"limited to {n}, seed {seed}")

    @property
    def is_mirrored(self) -> bool:
        """Whether every pair's other half is here: the same question and answers with the opposite label.

        Raises:
            DataError: If pairs share a mirror tag without being each other's mirror image.
        """
        mirrors = Mirrors(self._pairs)
        mirrors.check()
        return mirrors.whole

    def check(self) -> None:
        """Refuse what would end a run after everything was asked: broken mirrors, couples and tags.

        Raises:
            DataError: That names the first pair at fault.
        """
        Mirrors(self._pairs).check()
        check_structure(self._pairs)


def limited_groups(
    ids: Sequence[str],
    mirrors: Sequence[str | None],
    items: Sequence[str | None],
    categories: Sequence[str],
    axes: Sequence[str | None],
    n: int,
    seed: int,
) -> list[bool]:
    """Tell of each pair whether it is in a seeded sample of at most `n`, with categories and axes in proportion.

    What shares a mirror tag, or else an item, stays together.
    """
    keys = [
        f"mirror\0{mirror}" if mirror is not None else f"{ITEM}\0{item}" if item is not None else f"id\0{id}"
        for id, mirror, item in zip(ids, mirrors, items, strict=True)
    ]
    sizes = Counter(keys)
    labels = zip(keys, categories, axes, strict=True)
    strata: dict[str, tuple[str, ...]] = {}
    for key, category, axis in labels:
        strata.setdefault(key, (category, axis or ""))
    taken, kept = 0, set[str]()
    for key in stratified_order(strata, seed):
        if taken + sizes[key] > n:
            break
        taken += sizes[key]
        kept.add(key)
    return [key in kept for key in keys]


def pair_columns(pairs: Iterable[Pair]) -> ModelColumns[Pair]:
    """Pairs by column; those that are columns already as they are. Profiles, which pairs share, stay whole."""
    if isinstance(pairs, ModelColumns):
        return pairs
    if isinstance(pairs, Suite):
        return pairs._pairs
    columns = ModelColumns(Pair, whole=("profile",))
    columns.extend(pairs)
    return columns


def _count(pairs: ModelColumns[Pair]) -> Counts:
    return Counts(
        pairs=len(pairs),
        users=len(set(pairs.column("user"))),
        questions=len(set(pairs.column("question"))),
        categories=len(set(pairs.column("category")) - {""}),
    )
