"""Examples that begin alike, taught together: what they share is computed once, forwards and backwards.

A user's posts stand before the question, so all questions of one user begin with the same tokens. The shared tokens
pass through the model once, and every example continues from their keys and values: the loss is that of the examples
taken one by one, at a fraction of the tokens. The gradient is too, if it may flow back through what is
shared; if it may not, a step takes a third less time and half the memory, and what is shared is read with the weights
as they are.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

_IGNORED = -100


class TokenExample(NamedTuple):
    """A prompt with the text that should follow it, as tokens."""

    ids: tuple[int, ...]
    target: int
    """Start of the text; the loss is taken from here on, and only here."""


class Pack(NamedTuple):
    """Examples over what they have in common."""

    prefix: tuple[int, ...]
    rests: tuple[tuple[int, ...], ...]
    targets: tuple[int, ...]
    """Number of tokens at the end of each rest that are learned."""

    @property
    def tokens(self) -> int:
        """Number of tokens that are computed."""
        return len(self.prefix) + sum(map(len, self.rests))


class Losses(NamedTuple):
    """Losses of one pack: summed over its target tokens."""

    total: Tensor
    tokens: int


def pack(examples: Sequence[TokenExample]) -> Pack:
    """Find what examples share; at least the last token before each text stays with its example.

    Example:
        >>> pack([TokenExample((1, 2, 3, 4), 3), TokenExample((1, 2, 5, 6, 7), 4)])
        Pack(prefix=(1, 2), rests=((3, 4), (5, 6, 7)), targets=(1, 1))
    """
    shared = min(example.target for example in examples) - 1
    first = examples[0].ids
    for example in examples[1:]:
        shared = next((place for place in range(shared) if example.ids[place] != first[place]), shared)
    return Pack(
        first[:shared],
        tuple(example.ids[shared:] for example in examples),
        tuple(len(example.ids) - example.target for example in examples),
    )


def groups(owners: Sequence[str], size: int, seed: str | None = None) -> list[list[int]]:
    """Positions of all examples once, those of one owner together, at most `size`; with a seed in a random order.

    Example:
        >>> groups(["ann", "bob", "ann", "ann"], size=2)
        [[0, 2], [3], [1]]
    """
    draw = random.Random(seed) if seed is not None else None  # noqa: S311 (a reproducible shuffle)
    by_owner: dict[str, list[int]] = defaultdict(list)
    for place, owner in enumerate(owners):
        by_owner[owner].append(place)
    found = []
    for mine in by_owner.values():
        if draw is not None:
            draw.shuffle(mine)
        found += [mine[start : start + size] for start in range(0, len(mine), size)]
    if draw is not None:
        draw.shuffle(found)
    return found


def target_losses(model: Any, pack: Pack, *, through: bool = True) -> Losses:
    """Cross-entropy of a pack's target tokens under a causal language model.

    Args:
        model: The language model.
        pack: Pack that it reads.
        through: Whether gradients flow back through the shared tokens as well.
    """
    width, most, count = max(map(len, pack.rests)), max(pack.targets), len(pack.rests)
    ids = torch.zeros(count, width, dtype=torch.long)
    mask = torch.zeros(count, len(pack.prefix) + width, dtype=torch.long)
    mask[:, : len(pack.prefix)] = 1
    places = torch.zeros(count, width, dtype=torch.long)
    labels = torch.full((count, most), _IGNORED)
    for row, (rest, learned) in enumerate(zip(pack.rests, pack.targets, strict=True)):
        # Rests end together, so that the texts stand in the last columns and only those need logits.
        ids[row, width - len(rest) :] = torch.tensor(rest)
        mask[row, len(pack.prefix) + width - len(rest) :] = 1
        places[row, width - len(rest) :] = torch.arange(len(rest))
        labels[row, most - learned :] = torch.tensor(rest[len(rest) - learned :])
    logits = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=places + len(pack.prefix),
        past_key_values=_shared(model, pack.prefix, count, through=through),
        logits_to_keep=most + 1,
    ).logits[:, :-1]
    total = nn.functional.cross_entropy(
        logits.float().flatten(0, 1), labels.flatten(), ignore_index=_IGNORED, reduction="sum"
    )
    return Losses(total, sum(pack.targets))


def _shared(model: Any, prefix: Sequence[int], count: int, *, through: bool) -> Any:
    if not prefix:
        return None
    learning = model.training
    model.train(learning and through)  # what is only read is read without dropout
    with torch.set_grad_enabled(through and torch.is_grad_enabled()):
        cache = model(input_ids=torch.tensor([prefix]), use_cache=True, logits_to_keep=1).past_key_values
    model.train(learning)
    cache.batch_repeat_interleave(count)
    return cache
