"""LoRA adapters: a model that is a base with an adapter merged in.

`lm:DIR` opens an adapter that was trained here; beside it stands which base it belongs to, by address and revision.
`BASE+ADAPTER` names both, in `hf:`, `dpo:` and `lm:`, for adapters from anywhere. An adapter is a difference to exactly
one base, and another one would give numbers without meaning: it is refused before any weights are read.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from prbench.config import ModelOptions, digest
from prbench.errors import MissingExtraError, ModelError
from prbench.files import exists, read_json, read_model
from prbench.models.local.checkpoint import Checkpoint, quiet, translated
from prbench.models.revision import folder_revision
from prbench.types import Frozen

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
BASE = "adapter_base.json"
"""The record beside an adapter."""
_INSIDE = re.compile(r"^base_model\.model\.(?P<module>.+?)\.(?P<part>lora_\w+(\.\w+)?|weight|bias)$")


class AdapterBase(Frozen):
    """Base model of an adapter, which is a difference to it."""

    base: str
    """Address, as `lm:` takes it."""
    revision: str
    window: int | None = None
    """Most tokens of prompt and text together that it was trained with; None: what the base reads."""


@dataclass(frozen=True, kw_only=True)
class AdaptedCheckpoint(Checkpoint):
    """A base whose weights are loaded together with an adapter."""

    base: Checkpoint
    """May have an adapter itself: a planner that was trained further."""
    adapter: Path
    window: int | None = None
    """Most tokens that the adapter was trained with, where that is known."""

    @cached_property
    def revision(self) -> str:
        """A hash over base and adapter."""
        return digest([self.base.revision, adapter_revision(self.adapter)])

    @cached_property
    def positions(self) -> int | None:
        """The window that the adapter was trained with, but never more than the base reads."""
        limits = (self.window, self.base.positions)
        return min((limit for limit in limits if limit is not None), default=None)

    def load_weights(self, kind: Any, options: ModelOptions, **further: Any) -> Any:
        """Load the base, merge the adapter into it in full precision, and round only then."""
        import torch

        peft = require_peft(self.address)
        if options.device_map is not None:
            raise ModelError(
                f"{self.address}: an adapter cannot be merged into weights that are spread by --device-map",
                hint="merge it once (peft: merge_and_unload), save that and name its folder",
            )
        self._check_shapes(kind)
        whole = options.model_copy(update={"dtype": "float32"})
        base = self.base.load_weights(kind, whole, lacking=[f"{name}." for name in _brought(self.adapter)])
        with translated(self.address), quiet():
            merged = peft.PeftModel.from_pretrained(base, str(self.adapter)).merge_and_unload()
        return merged.eval().to(getattr(torch, options.dtype))

    def _check_shapes(self, kind: Any) -> None:
        """Hold the adapter's shapes against the base's config, before gigabytes of weights are read."""
        import torch

        with quiet(), torch.device("meta"):
            modules = dict(kind.from_config(self.config).named_modules())
        for name, shape in _shapes(self.adapter).items():
            module, part = _inside(name)
            if not part.startswith("lora_A"):
                continue
            width = getattr(modules.get(module), "in_features", None)
            if width != shape[1]:
                found = "has no such layer" if module not in modules else f"has {width} inputs there"
                raise ModelError(
                    f"{self.address}: the adapter changes {module} with {shape[1]} inputs, and the base {found}",
                    hint="name the base that the adapter was trained on",
                )


def is_adapter(name: str) -> bool:
    """Whether a name is the folder of an adapter that was trained here."""
    folder = Path(name).expanduser()
    return exists(folder / CONFIG, raises=ModelError) and exists(folder / BASE, raises=ModelError)


def open_adapter(name: str, address: str, opener: Callable[[str, str], Checkpoint]) -> AdaptedCheckpoint:
    """Open the base that an adapter names, by `opener(name, address)`, and refuse one that differs."""
    require_peft(address)
    folder = Path(name).expanduser()
    record = read_model(folder / BASE, AdapterBase, raises=ModelError, hint="train it again")
    return _adapted(opener(record.base.removeprefix("lm:"), record.base), folder, address)


def open_with_adapter(name: str, address: str, opener: Callable[[str, str], Checkpoint]) -> Checkpoint:
    """Open `BASE+ADAPTER`, or `BASE` alone, by `opener(name, address)`; refuses an adapter that was made for another.

    Raises:
        ModelError: If the adapter's own config, or the record beside it, names another base.
    """
    base_name, mark, adapter_name = name.rpartition("+")
    if not mark or Path(name).expanduser().exists():
        return opener(name, address)
    peft = require_peft(address)
    folder = _adapter_folder(adapter_name, address)
    base = opener(base_name, address)
    config = read_json(folder / CONFIG, raises=ModelError, hint="save the adapter again")
    _check_base(str(config.get("base_model_name_or_path") or ""), base_name, adapter_name, address)
    if config.get("peft_type") != peft.PeftType.LORA.value:
        raise ModelError(
            f"{address}: the adapter is of the kind {config.get('peft_type')}, and LoRA adapters can be merged",
            hint="merge it yourself, save the whole model and name its folder",
        )
    return _adapted(base, folder, address)


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


def _adapted(base: Checkpoint, folder: Path, address: str) -> AdaptedCheckpoint:
    window = None
    if exists(folder / BASE, raises=ModelError):
        record = read_model(folder / BASE, AdapterBase, raises=ModelError, hint="train it again")
        window = record.window
        if base.revision != record.revision:
            raise ModelError(
                f"{address}: the adapter was trained on {record.base} at {record.revision[:12]}, "
                f"and that is now {base.revision[:12]}",
                hint="bring the base back that it was trained on, or train the adapter again",
            )
    if (labels := _brought_labels(folder)) is not None:
        base.config.num_labels = labels
    settings = (address, base.source, base.commit, base.config, base.tokenizer, base.code)
    return AdaptedCheckpoint(*settings, base=base, adapter=folder, window=window)


def _adapter_folder(name: str, address: str) -> Path:
    folder = Path(name).expanduser()
    if not folder.is_dir():
        hub_name, _, revision = name.partition("@")
        with translated(address), quiet():
            from huggingface_hub import snapshot_download

            patterns = [CONFIG, WEIGHTS]
            folder = Path(snapshot_download(hub_name, revision=revision or None, allow_patterns=patterns))
    for file in (CONFIG, WEIGHTS):
        if not (folder / file).is_file():
            raise ModelError(
                f"{address}: {name!r} has no {file}", hint="name the folder that peft's save_pretrained wrote"
            )
    return folder


def _check_base(wanted: str, base: str, adapter: str, address: str) -> None:
    """An adapter's config says by name what it was trained on; a folder counts as a copy if it has the same name."""
    named = base.partition("@")[0] if not Path(base).expanduser().is_dir() else base
    if not wanted or wanted == named or Path(wanted).name == Path(named).expanduser().resolve().name:
        return
    scheme = address.partition(":")[0]
    raise ModelError(
        f"{address}: the adapter was made for {wanted!r}, not for {base!r}",
        hint=f"write {scheme}:{wanted}+{adapter}; if {base!r} is a copy of it, give it the same name",
    )


def _shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    from safetensors import safe_open

    with translated(str(folder / WEIGHTS)), safe_open(str(folder / WEIGHTS), framework="numpy") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def _inside(name: str) -> tuple[str, str]:
    match = _INSIDE.match(name)
    return (match["module"], match["part"]) if match else (name, "")


def _brought(folder: Path) -> set[str]:
    """Whole modules that an adapter brings along, such as the head of a reward model."""
    return {module for module, part in map(_inside, _shapes(folder)) if part in ("weight", "bias")}


def _brought_labels(folder: Path) -> int | None:
    heads = ("score", "classifier", "classifier.out_proj")
    found = [shape for name, shape in _shapes(folder).items() if _inside(name) in [(head, "weight") for head in heads]]
    return found[0][0] if found else None
