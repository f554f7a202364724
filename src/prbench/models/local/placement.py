"""Weights that are too large for one device: spread over several, the rest on disk, by accelerate."""

from pathlib import Path
from typing import Any, Literal, get_args

from prbench.config import ModelOptions, cache_folder
from prbench.errors import MissingExtraError, ModelError
from prbench.files import read_json

Strategy = Literal["auto", "balanced", "balanced_low_0", "sequential"]
_HINT = f"--device-map takes {', '.join(get_args(Strategy))} or a JSON file of module: device"


def placement(options: ModelOptions, address: str) -> dict[str, Any]:
    """Return the arguments of `from_pretrained` on where weights go; empty where all of them go to one device."""
    if options.device_map is None:
        if options.max_memory:
            raise ModelError(f"{address}: --max-memory is given without --device-map", hint="add --device-map auto")
        return {}
    try:
        import accelerate  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"--device-map for {address}", "hf") from error
    folder = cache_folder() / "offload"
    folder.mkdir(parents=True, exist_ok=True)
    limits = {int(name) if name.isdecimal() else name: limit for name, limit in options.max_memory.items()}
    spread = {"device_map": _map(options.device_map, address), "offload_folder": str(folder)}
    return {**spread, "max_memory": limits} if limits else spread


def input_device(model: Any) -> Any:
    """Return the device of a model's input: of a spread one, where its first part is computed, not where it lies."""
    if not getattr(model, "hf_device_map", None):
        return model.device
    import torch

    hooks = (getattr(module, "_hf_hook", None) for module in model.modules())
    devices = (getattr(hook, "execution_device", None) for hook in hooks if hook is not None)
    return torch.device(next((device for device in devices if device is not None), "cpu"))


def spread_note(model: Any) -> str | None:
    """Return the devices of a model's parts, in one sentence; None where all of them lie on one device."""
    places = [str(place) for place in (getattr(model, "hf_device_map", None) or {}).values()]
    if len(set(places)) < 2 and "disk" not in places:
        return None
    counts = ", ".join(f"{place} ({places.count(place)})" for place in dict.fromkeys(places))
    return f"the model's parts lie on {counts}"


def _map(text: str, address: str) -> Any:
    if text in get_args(Strategy):
        return text
    path = Path(text).expanduser()
    if not path.is_file():
        raise ModelError(f"{address}: there is no device map {text!r}", hint=_HINT)
    found = read_json(path, raises=ModelError, hint=_HINT)
    if not isinstance(found, dict) or not found:
        raise ModelError(f"{address}: {text!r} is not a JSON object of module: device", hint=_HINT)
    return found
