"""`embed:DIR#stances`: an encoder that was tuned by `prbench train encoder`, read through its head.

A text becomes, for each axis, the probability that it stands at the first pole, then for each axis that it stands at
the second; what is left to 1 is that it says nothing about the axis. `#stances+vectors` adds the encoder's own vector.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prbench.errors import ModelError
from prbench.files import checked, load_tensors, read_json
from prbench.models.personal.features import Vectors
from prbench.rank import TextEncoder

HEAD = "stances.safetensors"
AXES = "stances.json"
_TUNE = "tune an encoder with `prbench train encoder -o DIR`"


class StanceEncoder:
    """Maps texts to stances on named axes.

    Args:
        encoder: The tuned encoder, whose vectors have length 1.
        folder: Folder of its head.
        head: `stances` or `stances+vectors`.
    """

    def __init__(self, encoder: TextEncoder, folder: Path, head: str = "stances") -> None:
        if not (folder / HEAD).is_file():
            raise ModelError(
                f"embed:{folder}#{head}: the folder has no {HEAD}",
                hint=_TUNE,
            )
        self._encoder = encoder
        self._head = head
        weights = load_tensors(folder / HEAD, kind="numpy", raises=ModelError, hint=_TUNE)
        with checked(folder / HEAD, raises=ModelError, hint=_TUNE):
            self._weight, self._bias = weights["weight"], weights["bias"]
        named = read_json(folder / AXES, raises=ModelError, hint=_TUNE)
        with checked(folder / AXES, raises=ModelError, hint=_TUNE):
            self.poles: dict[str, tuple[str, str]] = {axis: (one, two) for axis, (one, two) in named.items()}
            """The two poles of each axis, in the order of the values."""
        if len(self._bias) != 3 * len(self.poles):
            raise ModelError(
                f"embed:{folder}#stances: a head of {len(self._bias)} values, and {len(self.poles)} axes", hint=_TUNE
            )

    @property
    def name(self) -> str:
        """Name of the encoder, with its revision."""
        return f"{self._encoder.name}#{self._head}"

    @property
    def checkpoint(self) -> Any:
        """Checkpoint of the tuned encoder."""
        return self._encoder.checkpoint  # type: ignore[attr-defined]

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that the tuned encoder would take for texts of so many tokens."""
        return float(self._encoder.foreseen_seconds(tokens, length))  # type: ignore[attr-defined]

    def release(self) -> None:
        """Drop the vectors of all texts that were embedded."""
        self._encoder.release()  # type: ignore[attr-defined]

    def forget(self) -> None:
        """Drop all that was made of texts."""
        self._encoder.forget()  # type: ignore[attr-defined]

    def encode(self, texts: Sequence[str]) -> Vectors:
        """P(first pole) of every axis, then P(second pole) of every axis, one row each."""
        vectors = self._encoder.encode(texts)
        scaled = vectors * np.sqrt(vectors.shape[1])
        logits = scaled @ self._weight.T + self._bias
        logits = logits.reshape(len(vectors), len(self.poles), 3)
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        parts = [shares[..., 0], shares[..., 2], *([vectors] if self._head == "stances+vectors" else [])]
        return np.concatenate(parts, axis=1).astype(np.float32)
