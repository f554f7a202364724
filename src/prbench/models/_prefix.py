"""Scoring that never computes the same token twice: what many prompts begin with is run once, its keys and values kept.

INTERFACE (stable; `hf:`, `dpo:` and `lm:` are its users):

    scorer = PrefixScorer(model, batch_tokens=options.batch_tokens)    # a causal LM or a causal sequence classifier
    scorer.note                                   # None, or one sentence: why prefixes of this model are not shared
    for reading in scorer.read(requests):         # in any order; `reading.request` is the index into `requests`
        reading.values                            # tuple of floats, one per (position, column); None: out of memory
    scorer.tokens.naive, scorer.tokens.computed   # counted over all calls of `read`

    last_logits(ids, columns)                     # raw logits of some token ids (or labels) after the last token
    log_likelihood(ids, start, end)               # log p(ids[i] | ids[:i]) for i in start..end-1, each on its own

`read` is right for every causal LM: a model whose cache cannot be forked is run in plain padded batches instead.
Requests should come in one call per few hundred to few thousand; only requests of one call share anything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Request(NamedTuple):
    """One token sequence, and which numbers of its logits are wanted."""

    ids: Sequence[int]
    positions: Sequence[int]
    """Tokens after which the logits are read, counted from 0."""
    columns: Sequence[int]
    """For each position, the token id (or label) whose logit is wanted."""
    normalised: bool = False
    """Log-probabilities instead of raw logits."""


class Reading(NamedTuple):
    """What became of one request."""

    request: int
    values: tuple[float, ...] | None
    """One number per position; None where even this request alone did not fit into memory."""
    latency_ms: float


@dataclass
class TokenCount:
    """How much was computed, and how much a run without sharing would have."""

    naive: int = 0
    computed: int = 0


def last_logits(ids: Sequence[int], columns: Sequence[int]) -> Request:
    """Ask for the logits of `columns` after the last token."""
    return Request(ids, [len(ids) - 1] * len(columns), columns)


def log_likelihood(ids: Sequence[int], start: int, end: int | None = None) -> Request:
    """Ask for the log-probability of each of `ids[start:end]` given all tokens before it; the first has none."""
    stop = len(ids) if end is None else end
    begin = max(start, 1)
    return Request(ids, range(begin - 1, stop - 1), ids[begin:stop], normalised=True)


class PrefixScorer:
    """Reads logits of many sequences, running what they share once."""

    note: str | None
    tokens: TokenCount

    def __init__(self, model: Any, *, batch_tokens: int, shared: bool = True) -> None:
        raise NotImplementedError

    def read(self, requests: Sequence[Request]) -> Iterator[Reading]:
        """Yield one reading per request, as they become known."""
        raise NotImplementedError
