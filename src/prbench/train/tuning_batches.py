"""The order in which an encoder is shown its texts: drawn by a seed, texts of like length together."""

import random
from collections.abc import Iterator, Sequence

from prbench.train.stance_labels import Labelled
from prbench.train.tuning_loss import Answered

_SORTED_TOGETHER = 64
"""Batches whose texts are sorted by length together: less padding, still a random order."""
_POST_CHARACTERS, _MOST_SHORT = 560, 4
"""Length of a usual post; and how many times as many short texts go into a batch at most."""


def batches(texts: Sequence[Labelled], size: int, seed: str) -> list[list[Labelled]]:
    """All texts once, in batches that take about as long: of texts shorter than a post more go into one.

    Example:
        >>> wishes = [Labelled((f"No. {number}, please.",), ()) for number in range(20)]
        >>> posts = [Labelled(("Tea. " * 120,), ())] * 3
        >>> sorted(map(len, batches([*wishes, *posts], 2, "0")))
        [1, 2, 4, 8, 8]
    """
    draw, shuffled, found = random.Random(seed), list(texts), []  # noqa: S311 (a reproducible shuffle)
    draw.shuffle(shuffled)
    for start in range(0, len(shuffled), size * _SORTED_TOGETHER):
        found += _cut(sorted(shuffled[start : start + size * _SORTED_TOGETHER], key=_length), size)
    draw.shuffle(found)
    return found


def questions(flawed: Sequence[Answered], seed: str) -> Iterator[Answered]:
    """Questions with flawed answers without end, all of them before one comes again."""
    draw = random.Random(f"flaws:{seed}")  # noqa: S311 (a reproducible shuffle)
    while flawed:
        yield from draw.sample(flawed, len(flawed))


def _cut(texts: Sequence[Labelled], size: int) -> Iterator[list[Labelled]]:
    """Cut texts that stand in the order of their lengths."""
    batch: list[Labelled] = []
    for text in texts:
        is_full = len(batch) >= size and (len(batch) + 1) * _length(text) > size * _POST_CHARACTERS
        if is_full or len(batch) == _MOST_SHORT * size:
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def _length(text: Labelled) -> int:
    return max(map(len, text.pieces))
