"""Encoders that differ from another one in their upper layers alone: what lies below is computed once for all of them.

Of an encoder in the manner of BERT: embeddings, then blocks in a row.
"""

import copy
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from prbench import files
from prbench.errors import ModelError
from prbench.models.local.embed import SentenceEncoder
from prbench.models.personal.delta import add_delta
from prbench.models.personal.stance_encoder import StanceEncoder

DELTA = "delta.safetensors"
TUNING = "tuning.json"
_AGAIN = "tune the encoder again with `prbench train encoder`"


class UpperEncoder(SentenceEncoder):
    """An encoder with the lower layers of another one and upper layers that were tuned from its own.

    Args:
        base: The encoder whose lower layers it has.
        folder: Where `prbench train encoder` wrote what the upper layers learned.
    """

    def __init__(self, base: SentenceEncoder, folder: Path) -> None:
        super().__init__(base.checkpoint, base.options)
        self._base, self._folder = base, folder
        tuning = files.read_json(folder / TUNING, raises=ModelError, hint=_AGAIN)
        with files.checked(folder / TUNING, raises=ModelError, hint=_AGAIN):
            revision, named = tuning["base_revision"], tuning["options"]["base"]
            self.layers = int(tuning["options"]["layers"])
        if revision != base.checkpoint.revision:
            raise ModelError(
                f"{str(folder)!r}: its encoder {named} is another one here than it was tuned from",
                hint="pull it again (`prbench models pull minilm`), or train the model here with `make reference`",
            )
        base.share(self.layers)

    @cached_property
    def name(self) -> str:
        """Name of the encoder, with its revision."""
        learned = files.checksum(self._folder / DELTA, raises=ModelError)
        return f"{self._base.name}+{learned[:12]}"

    @cached_property
    def _model(self) -> Any:
        """The upper layers, under the names they have in the whole."""
        with torch.inference_mode(mode=False):  # weights that are made in it are never arranged
            blocks = list(self._base._model.encoder.layer)
            first = max(len(blocks) - self.layers, 0)
            found = nn.Module()
            found.encoder = nn.Module()
            # What was learned is added before rounding.
            upper = [copy.deepcopy(block).float() for block in blocks[first:]]
            found.encoder.layer = nn.ModuleList([nn.Identity()] * first + upper)
            learned = files.load_tensors(self._folder / DELTA, raises=ModelError, hint=_AGAIN)
            with files.checked(self._folder / DELTA, raises=ModelError, hint=_AGAIN):
                add_delta(found, learned)
            return found.to(self._base._model.dtype).eval()

    def forget(self) -> None:
        """Drop all that was made of texts, here and in the layers below."""
        super().forget()
        self._base.forget()

    @property
    def _device(self) -> Any:
        return self._base._device

    def _states(self, pieces: Sequence[Sequence[int]]) -> list[Tensor]:
        blocks = [*self._base.shared_blocks[: -self.layers], *self._model.encoder.layer[-self.layers :]]
        return self._base.through(self._base.lower_states(pieces), blocks)


def open_upper(base: SentenceEncoder, address: str) -> "UpperEncoder | StanceEncoder":
    """Open a tuned encoder over its base: the folder of what it learned, perhaps with its head (`DIR#stances`)."""
    name, _, head = address.partition("#")
    found = UpperEncoder(base, Path(name))
    return StanceEncoder(found, Path(name), head) if head else found
