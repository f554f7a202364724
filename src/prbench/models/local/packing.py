"""Texts in one row, without padding: of an encoder in the manner of BERT, embeddings and then blocks in a row.

Everything in a block but attention treats each token by itself, so tokens of many texts are multiplied as one matrix;
attention goes through the texts, those of one length together. On a processor padding costs what tokens cost: padded,
a short question costs as much as the long answers beside it. Encoders of other kinds are given padded texts.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


def is_packed(model: Any) -> bool:
    """Whether texts go through a model in one row: it is a plain BERT, not one with blocks of its own."""
    from transformers import BertModel

    places = getattr(model.config, "position_embedding_type", None) or "absolute"
    return type(model) is BertModel and not model.config.is_decoder and places == "absolute"


def embedded(model: Any, pieces: Sequence[Sequence[int]], device: Any) -> list[Tensor]:
    """The first states of each piece of token ids, (tokens, width)."""
    lengths = [len(piece) for piece in pieces]
    if not is_packed(model):
        ids = pad_sequence([torch.tensor(piece) for piece in pieces], batch_first=True).to(device)
        return _cut(model.embeddings(input_ids=ids), lengths)
    ids = torch.tensor([list(chain.from_iterable(pieces))], device=device)
    places = torch.cat([torch.arange(length, device=device) for length in lengths])[None]
    states = model.embeddings(input_ids=ids, position_ids=places, token_type_ids=torch.zeros_like(ids))
    return list(states[0].split(lengths))


def through(states: Sequence[Tensor], blocks: Iterable[Any], *, packed: bool) -> list[Tensor]:
    """Send the states of texts, (tokens, width) each, through blocks in a row; a text sees itself alone."""
    lengths = [len(one) for one in states]
    if not packed:
        return _cut(_padded(pad_sequence(list(states), batch_first=True), lengths, blocks), lengths)
    row = torch.cat(list(states))
    for block in blocks:
        seen = block.attention.output(_attention(block.attention.self, row, lengths), row)
        row = block.output(block.intermediate(seen), seen)
    return list(row.split(lengths))


def _attention(own: Any, row: Tensor, lengths: Sequence[int]) -> Tensor:
    heads = own.num_attention_heads
    dropped = own.dropout.p if own.training else 0.0
    parts = [layer(row).view(len(row), heads, -1) for layer in (own.query, own.key, own.value)]
    found, start = [], 0
    for length, alike in groupby(lengths):
        count = len(list(alike))
        end = start + count * length
        query, key, value = (part[start:end].view(count, length, heads, -1).transpose(1, 2) for part in parts)
        seen = torch.nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=dropped)
        found.append(seen.transpose(1, 2).reshape(count * length, -1))
        start = end
    return torch.cat(found)


def _padded(states: Tensor, lengths: Sequence[int], blocks: Iterable[Any]) -> Tensor:
    """Padded states, (N, T, width), through blocks that are given what they may not see."""
    beyond = torch.arange(states.shape[1], device=states.device) >= torch.tensor(lengths, device=states.device)[:, None]
    hidden = beyond[:, None, None, :].to(states.dtype) * torch.finfo(states.dtype).min
    for block in blocks:
        found = block(states, hidden)
        states = found[0] if isinstance(found, tuple) else found
    return states


def _cut(states: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    return [one[:length] for one, length in zip(states, lengths, strict=True)]
