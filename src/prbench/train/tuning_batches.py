"""The order in which an encoder is shown its texts: drawn by a seed, texts of like length together."""

import random
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

from prbench.train.stance_labels import Difference, Labelled
from prbench.train.tuning_loss import Answered

_SORTED_TOGETHER = 64
"""Batches whose texts are sorted by length together: less padding, still a random order."""
_POST_CHARACTERS, _MOST_SHORT = 560, 4
"""Length of a usual post; and how many times as many short texts go into a batch at most."""
_FLAWS_EVERY, _FLAWS_TOGETHER = 6, 4
"""Steps from one in which sound and flawed answers stand beside texts to the next, and the questions whose they are."""
_DIFFERENCES = 16
"""Pairs of differing answers in a step, at least; those of one question stay together."""


class Step(NamedTuple):
    """What is shown in one step."""

    texts: list[Labelled]
    differing: list[Difference]
    answers: list[Answered]


def steps(
    texts: Sequence[Labelled], differing: Sequence[Difference], flawed: Sequence[Answered], size: int, seed: str
) -> list[Step]:
    """An epoch: all texts once, or all differing answers once, with flawed answers in between; or those alone.

    Example:
        >>> asked = [Answered(("Green.",), (f"Soap {number}.",)) for number in range(5)]
        >>> [len(step.answers) for step in steps([], [], asked, 8, "0")]
        [4, 1]
    """
    asked = random.Random(f"flaws:{seed}").sample(flawed, len(flawed))  # noqa: S311 (a reproducible shuffle)
    groups = [asked[start : start + _FLAWS_TOGETHER] for start in range(0, len(asked), _FLAWS_TOGETHER)]
    shown, again = batches(texts, size, seed), cycle(groups or [[]])
    pairs = _differing(differing, seed)
    if not shown:
        return [Step([], batch, next(again)) for batch in pairs] or [Step([], [], group) for group in groups]
    beside = cycle(pairs or [[]])
    return [Step(batch, next(beside), [] if place % _FLAWS_EVERY else next(again)) for place, batch in enumerate(shown)]


def _differing(pairs: Sequence[Difference], seed: str) -> list[list[Difference]]:
    """All pairs of differing answers once, those of a question together."""
    asked: dict[str, list[Difference]] = {}
    for pair in pairs:
        asked.setdefault(pair.question, []).append(pair)
    found: list[list[Difference]] = [[]] if pairs else []
    for group in random.Random(f"differing:{seed}").sample(list(asked.values()), len(asked)):  # noqa: S311 (a shuffle)
        if len(found[-1]) >= _DIFFERENCES:
            found.append([])
        found[-1] += group
    return found


def batches(texts: Sequence[Labelled], size: int, seed: str) -> list[list[Labelled]]:
    """All texts once, in batches that take about as long: of texts shorter than a post more go into one.

    Example:
        >>> wishes = [Labelled((f"No. {number}, please.",), ()) for number in range(20)]
        >>> posts = [Labelled(("Tea. " * 120,), ())] * 3
        >>> sorted(map(len, batches([*wishes, *posts], 2, "0")))
        [1, 2, 4, 8, 8]
    """
    draw, found = random.Random(seed), list[list[Labelled]]()  # noqa: S311 (a reproducible shuffle)
    shuffled = draw.sample(texts, len(texts))
    for start in range(0, len(shuffled), size * _SORTED_TOGETHER):
        found += _cut(sorted(shuffled[start : start + size * _SORTED_TOGETHER], key=_length), size)
    draw.shuffle(found)
    return found


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
