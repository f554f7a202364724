"""Tuning of an encoder's upper layers: which weights learn, and what they learned, small enough to be shipped.

The layers are tuned whole. What they learned is the difference from the base, in whole numbers: of each row of a matrix
W − W₀ ≈ s q, with q between −127 and 127, a byte for each weight. A tuned encoder is kept as the base with exactly
that added, so that the one that was trained and the one that is joined from the base and `delta.safetensors` are one.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from prbench.errors import ModelError

_STEPS = 127
_SCALE = ".scale"


def learn_upper(model: nn.Module, layers: int) -> list[str]:
    """Freeze a model but for its upper blocks, and return the names of the weights that learn.

    Args:
        model: An encoder in the manner of BERT: embeddings, then blocks in a row.
        layers: How many of its blocks learn, at most.
    """
    blocks = getattr(getattr(model, "encoder", None), "layer", None)
    if blocks is None or not hasattr(model, "embeddings"):
        raise ModelError(
            f"an encoder of kind {type(model).__name__} cannot be tuned: its layers are not in a row as in BERT",
            hint="tune embed:minilm, or another encoder of that kind",
        )
    upper = tuple(f"encoder.layer.{number}." for number in range(max(len(blocks) - layers, 0), len(blocks)))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(upper))
    return [name for name, parameter in model.named_parameters() if parameter.requires_grad]


def delta(model: nn.Module, base: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what was learned since some weights were as in `base`, by their names.

    Example:
        >>> layer = nn.Linear(2, 1, bias=False)
        >>> before = {"weight": layer.weight.detach().clone()}
        >>> _ = layer.weight.data.add_(torch.tensor([[1.27, -0.5]]))
        >>> delta(layer, before)["weight"].tolist()
        [[127, -50]]
    """
    found: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        if name in base:
            change = parameter.detach() - base[name]
            if change.dim() < 2:
                found[name] = change.contiguous()
                continue
            scale = change.abs().amax(1, keepdim=True).clamp_min(1e-12) / _STEPS
            found[name] = (change / scale).round().to(torch.int8).contiguous()
            found[name + _SCALE] = scale.contiguous()
    return found


def add_delta(model: Any, learned: Mapping[str, Tensor]) -> None:
    """Add what was learned to the weights of a model that has not learned it."""
    with torch.no_grad():
        for name, change in learned.items():
            if not name.endswith(_SCALE):
                scale = learned.get(name + _SCALE)
                model.get_parameter(name).add_(change if scale is None else change.float() * scale)
