"""The data card of a built suite: what was read, what was used, what was dropped and why, and that it is exact."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from prbench.build.config import SPLITS, MirrorConfig
from prbench.data import Suite
from prbench.errors import DataError
from prbench.files import checksum
from prbench.types import Frozen, Pair

_SCORERS = 8


class SourceFile(Frozen):
    """File that a suite was made from, by content; its folder is not recorded."""

    name: str
    sha256: str
    rows: int


class SplitCounts(Frozen):
    """Size of a split."""

    pairs: int
    users: int
    items: int
    item_pairs: int


class Exactness(Frozen):
    """Proof by counting: scorers that see only question and answers get half of the pairs right, in every split."""

    mirrored: bool
    scorers: int
    accuracy: Mapping[str, float]
    """The furthest from one half that any scorer came, by split: 0.5 everywhere if exact."""
    exact: bool


class MirrorCard(Frozen):
    """`card.json` of a built suite."""

    kind: str
    """Kind of the log: `ratings` or `judgments`."""
    log: SourceFile
    items: SourceFile
    options: MirrorConfig
    users: int
    """Number of users in the log."""
    mirrorable: Mapping[str, int]
    """Counts of what could be mirrored before context and splits: item pairs, disputed ones, judgments. Of ratings at
    least so many: each user is counted with a bounded number of items."""
    dropped: Mapping[str, int]
    splits: Mapping[str, SplitCounts]
    context: Mapping[str, int]
    """Users with a profile, rows of the log behind it, posts made of them, and labelled pairs in `context.jsonl`."""
    exactness: Exactness
    fingerprint: str
    """Fingerprint of the pairs, as `load_pairs` reports it."""
    version: str
    """Version of prbench that built the suite."""


def describe_file(path: Path, rows: int) -> SourceFile:
    """Name a file and hash its bytes."""
    return SourceFile(name=path.name, sha256=checksum(path, raises=DataError), rows=rows)


def count_splits(pairs: Iterable[Pair]) -> dict[str, SplitCounts]:
    """Count every split, also those that stayed empty."""
    by_split: dict[str, list[Pair]] = {split: [] for split in SPLITS}
    for pair in pairs:
        by_split[pair.tags["split"]].append(pair)
    return {split: _count(held) for split, held in by_split.items()}


def _count(pairs: Sequence[Pair]) -> SplitCounts:
    sides = [(pair.tags["chosen_item"], pair.tags["rejected_item"]) for pair in pairs]
    return SplitCounts(
        pairs=len(pairs),
        users=len({pair.user for pair in pairs}),
        items=len({item for side in sides for item in side}),
        item_pairs=len({frozenset(side) for side in sides}),
    )


def prove_exact(suite: Suite) -> Exactness:
    """Score every pair by hashes of question and answer, and by length; count credit in whole numbers."""
    mirrored = suite.is_mirrored
    worst: dict[str, float] = {}
    for number in range(_SCORERS):
        credit, possible = Counter[str](), Counter[str]()
        for pair in suite:
            chosen, rejected = (_score(number, pair.question, text) for text in (pair.chosen, pair.rejected))
            credit[pair.tags["split"]] += 1 + (chosen > rejected) - (chosen < rejected)
            possible[pair.tags["split"]] += 2
        for split, most in possible.items():
            accuracy = credit[split] / most
            if abs(accuracy - 0.5) >= abs(worst.get(split, 0.5) - 0.5):
                worst[split] = accuracy
    exact = mirrored and all(accuracy == 0.5 for accuracy in worst.values())
    return Exactness(mirrored=mirrored, scorers=_SCORERS, accuracy=dict(sorted(worst.items())), exact=exact)


def _score(number: int, question: str, answer: str) -> int:
    if number == 0:
        return len(answer)
    digest = hashlib.blake2b(f"{question}\0{answer}".encode(), digest_size=8, salt=number.to_bytes(2, "big"))
    return int.from_bytes(digest.digest(), "big")
