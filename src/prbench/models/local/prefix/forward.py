"""One pass of a causal model: over a kept path, branch by branch or with a mask, or plainly over a padded batch.

The path's keys and values lie in one buffer per layer. A pass writes its own behind them and sees both as one view, so
nothing is copied per candidate; what the next pass does not count as prefix, it overwrites.
"""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import pairwise
from typing import Any

from prbench.models.local.placement import input_device
from prbench.models.local.prefix.attention import Branch, Layout, attending
from prbench.models.local.prefix.plan import Piece, PrefixStep
from prbench.models.local.prefix.tree import Tree


class CausalForward:
    """Runs a causal language model, or a causal sequence classifier, and gives logits only where they are wanted."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.device = input_device(model)
        self.by_branch = False
        """Whether a pack attends branch by branch, which the model must be known to bear; else under one mask."""
        self._cache: Any = None
        self._layers: list[Any] = []

    @cached_property
    def is_classifier(self) -> bool:
        """Whether logits are labels of a head `score` over the last hidden state, and not tokens."""
        return hasattr(self.model, "score")

    def reserve(self, tokens: int) -> None:
        """Make room for a path and a pack of so many tokens together."""
        from transformers.cache_utils import Cache

        if self._cache is None:
            config = self.model.config.get_text_config(decoder=True)
            self._layers = [_path_layer()() for _ in range(config.num_hidden_layers)]
            self._cache = Cache(layers=self._layers)
        for layer in self._layers:
            layer.room = max(layer.room, tokens)

    def release(self) -> None:
        """Give back the memory of the buffers."""
        self._cache = None
        self._layers = []

    def packed(self, tree: Tree, step: PrefixStep, rows: Sequence[int]) -> Any:
        """Logits (rows × columns) at some tokens of a step, numbered as they lie in it."""
        import torch

        for layer in self._layers:
            layer.prefix = step.prefix
        ids = [tree.arrays[piece.node.low][piece.start : piece.end].astype("int64") for piece in step.pieces]
        positions = [torch.arange(piece.start, piece.end) for piece in step.pieces]
        device = self.device
        fields = {
            "input_ids": torch.cat([torch.from_numpy(part) for part in ids])[None].to(device),
            "position_ids": torch.cat(positions)[None].to(device),
            "past_key_values": self._cache,
            "use_cache": True,
        }
        index = torch.tensor(rows, dtype=torch.long, device=device)
        with self._attention(step) as mask:
            return self._logits({**fields, "attention_mask": mask}, index)

    def _logits(self, fields: dict[str, Any], index: Any) -> Any:
        if not len(index):
            self.model.base_model(**fields)
            return index
        if self.is_classifier:
            return self.model.score(self.model.base_model(**fields).last_hidden_state[0, index])
        if self._keeps_any_logits:
            return self.model(**fields, logits_to_keep=index).logits[0]
        return self.model(**fields).logits[0, index]

    def padded(self, sequences: Sequence[Any], rows: Sequence[tuple[int, int]]) -> Any:
        """Logits (rows × columns) at some (sequence, position) of a batch, padded on the right."""
        import torch

        device = self.device
        width = max(len(ids) for ids in sequences)
        ids = torch.zeros(len(sequences), width, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = torch.from_numpy(sequence.astype("int64"))
            mask[row, : len(sequence)] = 1
        fields = {"input_ids": ids.to(device), "attention_mask": mask.to(device), "use_cache": False}
        index = torch.tensor(rows, dtype=torch.long, device=device)
        if self.is_classifier:
            hidden = self.model.base_model(**fields).last_hidden_state
            return self.model.score(hidden[index[:, 0], index[:, 1]])
        # A long profile has no logits worth their memory.
        first = int(index[:, 1].min())
        keep = {"logits_to_keep": width - first} if self._keeps_any_logits else {}
        logits = self.model(**fields, **keep).logits
        return logits[index[:, 0], index[:, 1] - width]

    @cached_property
    def _keeps_any_logits(self) -> bool:
        return "logits_to_keep" in inspect.signature(self.model.forward).parameters

    def _attention(self, step: PrefixStep) -> AbstractContextManager[Any]:
        """Within it the model attends as the step needs it to; gives the mask to call the model with."""
        import torch

        if step.prefix == 0 and len(step.pieces) == 1:
            return nullcontext(None)  # plainly causal, for which there are faster kernels
        if not self.by_branch:
            hidden = self._hidden(step.pieces)
            mask = torch.cat([hidden.new_zeros(len(hidden), step.prefix), hidden], dim=1)
            return nullcontext(mask[None, None].to(self.device))
        layout = Layout(step.prefix, tuple(self._branches(step)))
        # A mask of four dimensions keeps transformers from making its own; it is not read.
        unread = torch.zeros(1, 1, 1, 1, dtype=self.model.dtype)
        return attending(self.model.config.get_text_config(decoder=True), layout, unread)

    def _branches(self, step: PrefixStep) -> Iterator[Branch]:
        tops = [index for index, piece in enumerate(step.pieces) if piece.start == step.prefix]
        start = 0
        for low, high in pairwise([*tops, len(step.pieces)]):
            pieces = step.pieces[low:high]
            end = start + sum(piece.end - piece.start for piece in pieces)
            yield Branch(start, end, self._hidden(pieces)[None, None] if len(pieces) > 1 else None)
            start = end

    def _hidden(self, pieces: Sequence[Piece]) -> Any:
        """Return the mask of some pieces among each other: each sees its ancestors, and itself so far."""
        import torch

        sizes = torch.tensor([piece.end - piece.start for piece in pieces])
        piece_of = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        visible = _ancestors(pieces)[piece_of][:, piece_of].tril()
        dtype = self.model.dtype
        return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, torch.finfo(dtype).min)


def _ancestors(pieces: Sequence[Piece]) -> Any:
    """Return which pieces (columns) are on the way to which (rows), each to itself included."""
    import torch

    number = {piece.node: index for index, piece in enumerate(pieces)}
    ancestors = torch.zeros(len(number), len(number), dtype=torch.bool)
    for index, piece in enumerate(pieces):
        parent = number.get(piece.node.parent) if piece.node.parent is not None else None
        if parent is not None:
            ancestors[index] = ancestors[parent]
        ancestors[index, index] = True
    return ancestors


def _path_layer() -> Any:
    """The class of a cache layer that writes behind a prefix; made here because its base loads torch."""
    from transformers.cache_utils import DynamicLayer

    class PathLayer(DynamicLayer):  # type: ignore[misc]
        keys: Any
        values: Any
        prefix = 0
        room = 0

        def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            end = self.prefix + key_states.shape[-2]
            if self.keys is None or self.keys.shape[-2] < end:
                self.keys, self.values = (_buffer(states, self.room) for states in (key_states, value_states))
                self.is_initialized = True
            self.keys[:, :, self.prefix : end] = key_states
            self.values[:, :, self.prefix : end] = value_states
            return self.keys[:, :, :end], self.values[:, :, :end]

        def get_seq_length(self, *args: Any) -> int:
            return self.prefix

    return PathLayer


def _buffer(states: Any, room: int) -> Any:
    return states.new_empty(1, states.shape[1], room, states.shape[3])
