"""Hidden states of any transformers model as an encoder: `lm:…` and `hf:…` where a frozen encoder is asked for.

A text's vector is the mean of the last layer's states over the text's own tokens, of length 1. The text stands alone,
without a chat template; the special tokens around it are read and not averaged. The head of the model is not loaded.
"""

from collections.abc import Sequence
from typing import Any

from prbench.config import ModelOptions
from prbench.errors import ModelError
from prbench.models.local.batching import pad
from prbench.models.local.checkpoint import Checkpoint
from prbench.models.local.embed import SentenceEncoder, unit
from prbench.models.local.encoding import Encoding
from prbench.models.local.placement import input_device

__all__ = ["HiddenStates"]


class HiddenStates(SentenceEncoder):
    """Maps texts to the mean of a model's last hidden states; implements `prbench.rank.TextEncoder`."""

    def __init__(self, checkpoint: Checkpoint, options: ModelOptions) -> None:
        if getattr(checkpoint.config, "is_encoder_decoder", False):
            raise ModelError(
                f"{checkpoint.address}: a model of encoder and decoder has no hidden states of a text alone",
                hint="take a causal language model, a reward model or a sentence encoder (embed:NAME)",
            )
        super().__init__(checkpoint, options)

    @property
    def name(self) -> str:
        """Name of the encoder, with its revision and what else changes its vectors."""
        precision = "" if self.options.dtype == "float32" else f" {self.options.dtype}"
        piece = "" if self.options.window is None else f" {self.options.window}"
        return f"{self.checkpoint.address}@{self.checkpoint.revision[:12]} hidden{precision}{piece}"

    def _pieces(self, texts: Sequence[str]) -> list[list[list[int]]]:
        # A text may have no token, in a model without BOS.
        return [[piece or [0] for piece in part] for part in super()._pieces(texts)]

    def _forward(self, pieces: Sequence[Sequence[int]]) -> Any:
        ids, mask, _ = pad([Encoding(piece) for piece in pieces], 0, input_device(self._model))  # type: ignore[arg-type]
        states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        before, after = (len(part) for part in self._special)
        own = mask.clone()
        for row, piece in enumerate(pieces):
            if len(piece) > before + after:  # else there is nothing but the special tokens
                own[row, :before] = 0
                own[row, len(piece) - after :] = 0
        weight = own[..., None].float()
        return unit(((states * weight).sum(1) / weight.sum(1)).cpu().numpy())
