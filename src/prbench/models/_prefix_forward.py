"""One pass of a causal model: over a kept path with a block mask, or plainly over a padded batch.

The path's keys and values lie in one buffer per layer. A pass writes its own behind them and sees both as one view, so
nothing is copied per candidate; what the next pass does not count as prefix, it overwrites.
"""

import inspect
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from prbench.models._prefix_plan import Step
from prbench.models._prefix_tree import Tree


class CausalForward:
    """Runs a causal language model, or a causal sequence classifier, and gives logits only where they are wanted."""

    def __init__(self, model: Any) -> None:
        self.model = model
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

    def packed(self, tree: Tree, step: Step, rows: Sequence[int]) -> Any:
        """Logits (rows × columns) at some tokens of a step, numbered as they lie in it."""
        import torch

        for layer in self._layers:
            layer.prefix = step.prefix
        ids = [tree.arrays[piece.node.low][piece.start : piece.end].astype("int64") for piece in step.pieces]
        positions = [torch.arange(piece.start, piece.end) for piece in step.pieces]
        device = self.model.device
        fields = {
            "input_ids": torch.cat([torch.from_numpy(part) for part in ids])[None].to(device),
            "position_ids": torch.cat(positions)[None].to(device),
            "attention_mask": self._mask(step),
            "past_key_values": self._cache,
            "use_cache": True,
        }
        index = torch.tensor(rows, dtype=torch.long, device=device)
        if not rows:
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

        device = self.model.device
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

    def _mask(self, step: Step) -> Any:
        """What each token sees: the whole prefix, its ancestors in the step, and its own piece up to itself."""
        import torch

        if step.prefix == 0 and len(step.pieces) == 1:
            return None  # plainly causal, for which there are faster kernels
        sizes = torch.tensor([piece.end - piece.start for piece in step.pieces])
        piece_of = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        visible = _ancestors(step)[piece_of][:, piece_of].tril()
        count = len(piece_of)
        mask = torch.zeros(count, step.prefix + count, dtype=self.model.dtype)
        mask[:, step.prefix :].masked_fill_(~visible, torch.finfo(self.model.dtype).min)
        return mask[None, None].to(self.model.device)


def _ancestors(step: Step) -> Any:
    """Which pieces (columns) are on the way to which (rows), each to itself included."""
    import torch

    number = {piece.node: index for index, piece in enumerate(step.pieces)}
    ancestors = torch.zeros(len(number), len(number), dtype=torch.bool)
    for index, piece in enumerate(step.pieces):
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
