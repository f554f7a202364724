"""Scoring in batches: longest first, under a budget of padded tokens, in halves where memory runs out.

Longest first means that a batch that does not fit fails at the start of a run, not in its last minute.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from prbench.models.local.encoding import Encoding

if TYPE_CHECKING:
    import torch

Item = tuple[Encoding, ...]
"""One prompt, as each of the models behind a score reads it."""


class Scored(NamedTuple):
    """Outcome of one item."""

    position: int
    score: float | None
    """Score of the item; None where even this item alone did not fit into memory."""
    latency_ms: float
    """Share of the batch's time that is this item's."""


class Padded(NamedTuple):
    """A batch, padded on the right."""

    ids: "torch.Tensor"
    mask: "torch.Tensor"
    types: "torch.Tensor | None"


def longest(item: Item) -> int:
    """The length that counts: the most tokens that any of the models reads."""
    return max(len(encoding.ids) for encoding in item)


def plan_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Group positions, longest first, so that each group's padded tokens stay within the budget.

    An item longer than the budget gets a batch of its own.

    Example:
        >>> plan_batches([2, 9, 3, 3], batch_tokens=6)
        [[1], [2, 3], [0]]
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batches and lengths[batches[-1][0]] * (len(batches[-1]) + 1) <= batch_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def fitting_tokens(batch_tokens: int, device: Any) -> int:
    """Most tokens of a padded batch on a device, at most those that were asked for.

    On processors a large batch leaves the caches: MiniLM reads 1,800 tokens a second in batches of 512 to 2,048 tokens
    and 1,500 in batches of 8,192 (processor time of one thread).

    Example:
        >>> fitting_tokens(8192, "cpu"), fitting_tokens(512, "cpu"), fitting_tokens(8192, "cuda:0")
        (2048, 512, 8192)
    """
    return min(batch_tokens, _PROCESSOR_TOKENS) if str(device) == "cpu" else batch_tokens


_PROCESSOR_TOKENS = 2048


def score_all(
    items: Sequence[Item], forward: Callable[[list[Item]], list[float]], batch_tokens: int
) -> Iterator[Scored]:
    """Run `forward` over all items in batches and yield each item's score as soon as its batch is done."""
    pending = plan_batches([longest(item) for item in items], batch_tokens)[::-1]
    while pending:
        batch = pending.pop()
        start = time.perf_counter()
        scores = try_forward(partial(forward, [items[index] for index in batch]))
        if scores is None and len(batch) > 1:
            middle = len(batch) // 2
            pending += [batch[middle:], batch[:middle]]
            continue
        share_ms = (time.perf_counter() - start) * 1000 / len(batch)
        for row, index in enumerate(batch):
            yield Scored(index, None if scores is None else scores[row], share_ms)


def pad(encodings: Sequence[Encoding], pad_id: int, device: str) -> Padded:
    """Stack encodings into tensors, padded on the right."""
    import torch

    width = max(len(encoding.ids) for encoding in encodings)
    ids = torch.full((len(encodings), width), pad_id, dtype=torch.long)
    mask = torch.zeros_like(ids)
    types = torch.zeros_like(ids) if encodings[0].types is not None else None
    for row, encoding in enumerate(encodings):
        size = len(encoding.ids)
        ids[row, :size] = torch.tensor(encoding.ids)
        mask[row, :size] = 1
        if types is not None:
            types[row, :size] = torch.tensor(encoding.types)
    return Padded(ids.to(device), mask.to(device), None if types is None else types.to(device))


def try_forward(forward: Callable[[], list[float]]) -> list[float] | None:
    """Run a pass without gradients; None where memory ran out."""
    import torch

    try:
        with torch.inference_mode():
            return forward()
    except (RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not _is_out_of_memory(error):
            raise
    # Outside the except block: the traceback would keep the tensors that did not fit alive.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def _is_out_of_memory(error: Exception) -> bool:
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "not enough memory" in text
