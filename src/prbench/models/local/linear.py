"""Linear layers whose weights lie as the processor multiplies them fastest.

PyTorch arranges a weight anew in each product on a processor. Where weights do not change, oneDNN can be given them as
arranged once: products in float32 take a tenth less time for a thousand rows, and half for the few rows of a model
that writes. The arranged copy takes as much memory as the weight does, so large models go without.
"""

import platform
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from prbench.models.local.precision import has_bfloat16

_LARGEST = 2**30
"""Most bytes of weights that are copied."""
_NARROW = 64
"""Outputs of a layer below which arranging gains nothing."""


class PackedLinear(nn.Linear):
    """A linear layer that keeps an arranged copy of its weight, in use where nothing is learned."""

    _packed: tuple[tuple[int, int, torch.dtype], Tensor] | None

    def forward(self, input: Tensor) -> Tensor:
        """Multiply, with the arranged weight in inference mode."""
        weight = self.weight
        learns = not torch.is_inference_mode_enabled() or torch.is_autocast_enabled("cpu")
        fits = weight.is_cpu and not weight.is_inference() and input.dtype == weight.dtype and input.numel() > 0
        if learns or not fits or not can_arrange(weight.dtype):
            return super().forward(input)
        who = (weight.data_ptr(), weight._version, weight.dtype)
        if self._packed is None or self._packed[0] != who:
            self._packed = (who, arranged(weight))
        return product(input, self._packed[1], self.bias)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the arranged copy out: whoever copies a layer may change its weight."""
        return {**self.__dict__, "_packed": None}


def pack_linears(model: nn.Module) -> None:
    """Let a model's plain linear layers keep arranged copies, where the processor and its memory allow it."""
    layers = [one for one in model.modules() if type(one) is nn.Linear and one.out_features >= _NARROW]
    size = sum(one.weight.numel() * one.weight.element_size() for one in layers)
    if size <= _LARGEST and all(one.weight.device.type == "cpu" for one in layers):
        for layer in layers:
            layer.__class__ = PackedLinear
            layer._packed = None


def arranged(weight: Tensor) -> Tensor:
    """A weight, (outputs, inputs), as oneDNN multiplies it fastest; only `product` can read it."""
    found: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
    return found


def product(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Rows times an arranged weight, plus a bias; nothing learns through it."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return found


@cache
def can_arrange(dtype: torch.dtype) -> bool:
    """Whether oneDNN takes arranged weights of this precision here; known of processors of the kind x86 alone."""
    names = ("_reorder_linear_weight", "_linear_pointwise")
    known = torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in names)
    if not known or platform.machine() not in {"x86_64", "AMD64"}:
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and bool(has_bfloat16()))
