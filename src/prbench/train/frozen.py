"""The states under the layers that learn: they do not change, so each text goes through the frozen layers once.

Of an encoder in the manner of BERT: embeddings, then blocks in a row. The states are kept in memory in half precision.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from prbench.models.local import packing
from prbench.models.local.precision import Products, multiplying

_TOGETHER = 32
"""Texts, of like length, that go through the frozen layers together."""


class FrozenStates:
    """An encoder whose upper blocks learn.

    Args:
        model: The encoder; its upper blocks may be changed later, they are looked up at each call.
        layers: How many of them learn, at most.
        products: Precision of the matrix products.
    """

    def __init__(self, model: nn.Module, layers: int, products: Products = "float32") -> None:
        self._model: Any = model
        self._products: Products = products
        self._frozen = max(len(self._blocks) - layers, 0)
        self._kept: dict[tuple[int, ...], Tensor] = {}

    def prepare(self, ids: Iterable[Sequence[int]]) -> None:
        """Compute the states of texts, always in the same batches: what is kept does not depend on who asks first."""
        texts = sorted({tuple(map(int, one)) for one in ids} - self._kept.keys(), key=lambda text: (len(text), text))
        for start in range(0, len(texts), _TOGETHER):
            self._add(texts[start : start + _TOGETHER])

    def __call__(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """The last states of some texts by their tokens, (N, T, width), and which of them are there, (N, T)."""
        texts = [tuple(map(int, one)) for one in ids]
        self.prepare(texts)
        with multiplying(self._products):
            found = self._through([self._kept[text].float() for text in texts], self._blocks[self._frozen :])
        return nn.utils.rnn.pad_sequence(found, batch_first=True).float(), _mask(texts)

    @property
    def _blocks(self) -> Any:
        return self._model.encoder.layer

    def _add(self, texts: Sequence[tuple[int, ...]]) -> None:
        learning = self._model.training
        self._model.eval()
        with torch.no_grad(), multiplying(self._products):
            states = self._through(packing.embedded(self._model, texts, "cpu"), self._blocks[: self._frozen])
        self._kept.update((text, found.half()) for text, found in zip(texts, states, strict=True))
        self._model.train(learning)

    def _through(self, states: Sequence[Tensor], blocks: Any) -> list[Tensor]:
        return packing.through(states, blocks, packed=packing.is_packed(self._model))


def _mask(texts: Sequence[Sequence[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.ones(len(text)) for text in texts], batch_first=True)
