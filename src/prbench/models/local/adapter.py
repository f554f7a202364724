"""A LoRA adapter trained here, opened as a language model: `lm:DIR` is its base with the adapter merged in.

An adapter is a difference to exactly one base. Beside it stands which one, by address and revision; another base would
give texts without meaning, so it is refused. An adapter from elsewhere says no revision and is not opened.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from prbench.config import ModelOptions, digest
from prbench.errors import MissingExtraError, ModelError
from prbench.files import exists, read_model
from prbench.models.local.checkpoint import Checkpoint, quiet, translated
from prbench.models.revision import folder_revision
from prbench.types import Frozen

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
BASE = "adapter_base.json"
"""The record beside an adapter."""


class AdapterBase(Frozen):
    """What an adapter is a difference to."""

    base: str
    """Address, as `lm:` takes it."""
    revision: str
    window: int | None = None
    """Most tokens of prompt and text together that it was trained with; None: what the base reads."""


@dataclass(frozen=True)
class AdaptedCheckpoint(Checkpoint):
    """A base whose weights are loaded together with an adapter."""

    base: Checkpoint
    """May have an adapter itself: a planner that was trained further."""
    adapter: Path
    record: AdapterBase

    @cached_property
    def revision(self) -> str:
        """A hash over base and adapter."""
        return digest([self.record.revision, adapter_revision(self.adapter)])

    @cached_property
    def positions(self) -> int | None:
        """The window that the adapter was trained with, but never more than the base reads."""
        limits = (self.record.window, self.base.positions)
        return min((limit for limit in limits if limit is not None), default=None)

    def load_weights(self, kind: Any, options: ModelOptions) -> Any:
        """Load the base, merge the adapter into it in full precision, and round only then."""
        import torch

        peft = require_peft(self.address)
        base = self.base.load_weights(kind, options.model_copy(update={"dtype": "float32"}))
        with translated(self.address), quiet():
            merged = peft.PeftModel.from_pretrained(base, str(self.adapter)).merge_and_unload()
        return merged.eval().to(getattr(torch, options.dtype))


def is_adapter(name: str) -> bool:
    """Whether a name is the folder of an adapter that was trained here."""
    folder = Path(name).expanduser()
    return exists(folder / CONFIG, raises=ModelError) and exists(folder / BASE, raises=ModelError)


def open_adapter(name: str, address: str, opener: Callable[[str, str], Checkpoint]) -> AdaptedCheckpoint:
    """Open the base that an adapter names, by `opener(name, address)`, and refuse one that differs."""
    require_peft(address)
    folder = Path(name).expanduser()
    record = read_model(folder / BASE, AdapterBase, raises=ModelError, hint="train it again")
    base = opener(record.base.removeprefix("lm:"), record.base)
    if base.revision != record.revision:
        raise ModelError(
            f"{address}: the adapter was trained on {record.base} at {record.revision[:12]}, "
            f"and that is now {base.revision[:12]}",
            hint="bring the base back that it was trained on, or train the adapter again",
        )
    return AdaptedCheckpoint(address, base.source, base.commit, base.config, base.tokenizer, base, folder, record)


def adapter_revision(folder: Path) -> str:
    """A hash over what of an adapter's folder can change a text: its weights and how they are applied."""
    return digest([folder_revision(folder, only=(CONFIG, WEIGHTS))])


def require_peft(wanted_by: str) -> Any:
    """The library that applies adapters."""
    try:
        import peft
    except ImportError as error:
        raise MissingExtraError(wanted_by, "train") from error
    return peft
