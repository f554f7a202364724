"""Scoring that never computes the same token twice: what many prompts begin with is run once, its keys and values kept.

    scorer = PrefixScorer(model, batch_tokens=options.batch_tokens)    # a causal LM or a causal sequence classifier
    scorer.note                                   # None, or one sentence: why prefixes of this model are not shared
    for reading in scorer.read(requests):         # in any order; `reading.request` is the index into `requests`
        reading.values                            # tuple of floats, one per (position, column); None: out of memory
    scorer.effort                                 # tokens, operations and time, over all calls of `read`

`read` is right for every causal model: one whose cache cannot be forked is run in plain padded batches instead. Only
requests of one call share anything, so hand over hundreds or thousands at once.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from prbench.models.effort import Effort
from prbench.models.local.batching import plan_batches, try_forward
from prbench.models.local.flops import Arithmetic, causal_keys
from prbench.models.local.prefix.forward import CausalForward
from prbench.models.local.prefix.plan import PrefixPlan, PrefixStep, halves, plan
from prbench.models.local.prefix.support import choose_way, estimate_cost
from prbench.models.local.prefix.tree import Node, Tree


class LogitRequest(NamedTuple):
    """One token sequence, and which numbers of its logits are wanted."""

    ids: Sequence[int]
    positions: Sequence[int]
    """Tokens after which logits are read, counted from 0."""
    columns: Sequence[int]
    """Token id (or label) whose logit is wanted, for each position."""
    normalised: bool = False
    """Log-probabilities instead of raw logits."""


class Reading(NamedTuple):
    """Outcome of one request."""

    request: int
    values: tuple[float, ...] | None
    """One number per position; None where even this request alone did not fit into memory."""
    latency_ms: float
    """Share of the passes' time that is this request's."""


def last_logits(ids: Sequence[int], columns: Sequence[int]) -> LogitRequest:
    """Ask for the logits of some token ids (or labels) after the last token.

    Example:
        >>> last_logits([5, 6, 7], columns=[0, 1]).positions
        [2, 2]
    """
    return LogitRequest(ids, [len(ids) - 1] * len(columns), columns)


def log_likelihood(ids: Sequence[int], start: int, end: int | None = None) -> LogitRequest:
    """Ask for the log-probability of each of `ids[start:end]` given all tokens before it; the very first has none.

    Example:
        >>> request = log_likelihood([5, 6, 7], start=1)
        >>> list(request.positions), list(request.columns)
        ([0, 1], [6, 7])
    """
    begin, stop = max(start, 1), len(ids) if end is None else end
    return LogitRequest(ids, range(begin - 1, stop - 1), ids[begin:stop], normalised=True)


class PrefixScorer:
    """Reads logits of many sequences, running what they share once.

    Args:
        model: A causal language model or a causal sequence classifier with a head `score`, in eval mode.
        batch_tokens: The most tokens in one pass, padding included; a longer sequence that shares nothing has its own.
        shared: False runs every sequence in full, for comparison.
        pack_tokens: Tokens per pack; chosen by cost where it is not given.
    """

    def __init__(self, model: Any, *, batch_tokens: int, shared: bool = True, pack_tokens: int | None = None) -> None:
        self.model = model
        self.effort = Effort()
        self.arithmetic = Arithmetic.of(model)
        """Arithmetic of a pass; None where it cannot be said."""
        self._forward = CausalForward(model)
        self._batch_tokens = batch_tokens
        self.note: str | None = choose_way(self._forward) if shared else None
        """Reason why prefixes are not shared, in one sentence; None where they are, or where it was not asked for."""
        self._cost = estimate_cost(self._forward)
        self._pack_tokens = min(pack_tokens or self._cost.best_pack(batch_tokens), batch_tokens)
        self._shared = shared and self.note is None

    def read(self, requests: Sequence[LogitRequest]) -> Iterator[Reading]:
        """Yield one reading per request, as soon as its last token is computed."""
        tree = Tree([request.ids for request in requests])
        work = PrefixPlan([], list(range(len(requests))))
        if self._shared:
            work = plan(tree, self._cost, self._pack_tokens, self._batch_tokens)
            self._forward.reserve(max((step.prefix + step.tokens for step in work.steps), default=0))
        self.effort.naive_tokens += sum(len(request.ids) for request in requests)
        board = _Board(tree, [requests[index] for index in tree.order], self.effort)
        yield from board.finished(range(len(requests)))
        try:
            yield from self._run_steps(work.steps, tree, board)
            yield from self._run_plain(work.plain, tree, board)
        finally:
            self._forward.release()

    def _run_steps(self, steps: Sequence[PrefixStep], tree: Tree, board: "_Board") -> Iterator[Reading]:
        pending = list(reversed(steps))
        while pending:
            step = pending.pop()
            sequences = [index for node in _tops(step) for index in range(node.low, node.high)]
            if all(board.is_done(index) for index in sequences):
                continue  # a piece that all of them need did not fit into memory
            rows, reads = board.reads_of_step(step)
            if board.run(partial(self._forward.packed, tree, step, rows), reads, sequences):
                self._count([(piece.start, piece.end) for piece in step.pieces], len(rows))
            elif smaller := halves(step):
                pending += reversed(smaller)
                continue
            else:
                board.fail(sequences)
            yield from board.finished(sequences)

    def _run_plain(self, sequences: Sequence[int], tree: Tree, board: "_Board") -> Iterator[Reading]:
        batches = plan_batches([len(tree.arrays[index]) for index in sequences], self._batch_tokens)
        pending = [[sequences[place] for place in batch] for batch in reversed(batches)]
        while pending:
            batch = [index for index in pending.pop() if not board.is_done(index)]
            if not batch:
                continue
            rows, reads = board.reads_of_batch(batch)
            arrays = [tree.arrays[index] for index in batch]
            if board.run(partial(self._forward.padded, arrays, rows), reads, batch):
                self._count([(0, len(ids)) for ids in arrays], len(rows))
            elif len(batch) > 1:
                middle = len(batch) // 2
                pending += [batch[middle:], batch[:middle]]
                continue
            else:
                board.fail(batch)
            yield from board.finished(batch)

    def _count(self, stretches: Sequence[tuple[int, int]], rows: int) -> None:
        tokens = sum(end - start for start, end in stretches)
        self.effort.computed_tokens += tokens
        if self.arithmetic is not None:
            keys = sum(causal_keys(start, end) for start, end in stretches)
            self.effort.flops += self.arithmetic.flops(tokens, keys, rows)


class _Read(NamedTuple):
    row: int
    """Row of the pass's logits."""
    sequence: int
    place: int
    """Place of this number among the request's."""


class _Board:
    """Board of what is wanted of each sequence (numbered in sorted order), and what is known of it already."""

    def __init__(self, tree: Tree, requests: Sequence[LogitRequest], effort: Effort) -> None:
        self._tree = tree
        self._effort = effort
        self._requests = requests
        self._values: list[list[float | None]] = [[None] * len(request.positions) for request in requests]
        self._open = [len(request.positions) for request in requests]
        self._latency = [0.0] * len(requests)
        self._failed: set[int] = set()
        self._told: set[int] = set()
        self._wanted: dict[Node, list[tuple[int, int, int]]] = defaultdict(list)
        for sequence, request in enumerate(requests):
            for place, position in enumerate(request.positions):
                self._wanted[tree.node_at(sequence, position)].append((position, sequence, place))

    def is_done(self, sequence: int) -> bool:
        """Whether nothing is left to be done for a sequence."""
        return sequence in self._told

    def reads_of_step(self, step: PrefixStep) -> tuple[list[int], list[_Read]]:
        """The tokens of a step whose logits are wanted, each once, and who wants them."""
        rows: dict[int, int] = {}
        reads = []
        offset = 0
        for piece in step.pieces:
            for position, sequence, place in self._wanted[piece.node]:
                if piece.start <= position < piece.end:
                    row = rows.setdefault(offset + position - piece.start, len(rows))
                    reads.append(_Read(row, sequence, place))
            offset += piece.end - piece.start
        return list(rows), reads

    def reads_of_batch(self, batch: Sequence[int]) -> tuple[list[tuple[int, int]], list[_Read]]:
        """The (row, position) of a batch whose logits are wanted and not known from a step, and who wants them."""
        rows: dict[tuple[int, int], int] = {}
        reads = []
        for row, sequence in enumerate(batch):
            for place, position in enumerate(self._requests[sequence].positions):
                if self._values[sequence][place] is None:
                    reads.append(_Read(rows.setdefault((row, position), len(rows)), sequence, place))
        return list(rows), reads

    def run(self, forward: Callable[[], Any], reads: Sequence[_Read], sequences: Sequence[int]) -> bool:
        """Make a pass and note what it tells; False where memory ran out."""
        start = time.perf_counter()
        values = try_forward(lambda: self._pick(forward(), reads))
        elapsed_s = time.perf_counter() - start
        self._effort.seconds += elapsed_s
        if values is None:
            return False
        for read, value in zip(reads, values, strict=True):
            self._values[read.sequence][read.place] = value
            self._open[read.sequence] -= 1
        for sequence in sequences:
            self._latency[sequence] += elapsed_s * 1000 / len(sequences)
        return True

    def fail(self, sequences: Sequence[int]) -> None:
        """Note that these did not fit into memory."""
        self._failed.update(sequences)

    def finished(self, sequences: Sequence[int]) -> Iterator[Reading]:
        """Readings of those of the sequences that are complete, each told once, longest first."""
        ready = [
            index for index in sequences if index not in self._told and (index in self._failed or not self._open[index])
        ]
        for index in sorted(ready, key=lambda index: -len(self._requests[index].ids)):
            self._told.add(index)
            known = tuple(value for value in self._values[index] if value is not None)
            values = None if index in self._failed else known
            yield Reading(self._tree.order[index], values, self._latency[index])

    def _pick(self, logits: Any, reads: Sequence[_Read]) -> list[float]:
        import torch

        if not reads:
            return []
        logits = logits.float()
        rows = torch.tensor([read.row for read in reads], device=logits.device)
        columns = torch.tensor(
            [self._requests[read.sequence].columns[read.place] for read in reads], device=logits.device
        )
        picked = logits[rows, columns]
        if any(self._requests[read.sequence].normalised for read in reads):
            normalised = [float(self._requests[read.sequence].normalised) for read in reads]
            picked = picked - logits.logsumexp(-1)[rows] * torch.tensor(normalised, device=logits.device)
        return [float(value) for value in picked.double().cpu()]


def _tops(step: PrefixStep) -> list[Node]:
    return [piece.node for piece in step.pieces if piece.start == step.prefix]
