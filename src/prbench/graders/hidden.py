"""Hidden states of a local language model, or any encoder by address, as what a stance probe reads."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from prbench.config import ModelOptions
from prbench.models import load_encoder
from prbench.models.personal.features import FeatureStore, encoder_revision

_TOKENS_PER_WORD = 1.4


class Hidden:
    """Vectors of an encoder, each dimension with the mean 0 and the spread 1 over the texts of the training.

    Args:
        address: Of the encoder: `lm:…`, `hf:…`, `embed:…`.
        options: Device and precision.
        texts: What centre and spread are taken from.
    """

    def __init__(self, address: str, options: ModelOptions, texts: Iterable[str]) -> None:
        self._encoder = FeatureStore(load_encoder(address, options))
        vectors = np.asarray(self._encoder.encode(list(dict.fromkeys(texts))), dtype=np.float64)
        self._centre = vectors.mean(axis=0)
        self._spread = np.maximum(vectors.std(axis=0), 1e-9) * np.sqrt(vectors.shape[1])
        self.name = address

    @property
    def revision(self) -> str:
        """Which weights."""
        return encoder_revision(self._encoder.encoder)

    def rows(self, texts: Sequence[str]) -> Any:
        """One row per text, of a length near 1."""
        vectors = np.asarray(self._encoder.encode(list(texts)), dtype=np.float64)
        return (vectors - self._centre) / self._spread

    def size(self, text: str) -> int:
        """About how many tokens of a text the encoder reads."""
        return round(_TOKENS_PER_WORD * len(text.split()))
