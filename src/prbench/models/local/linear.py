"""Linear layers whose weights lie as the processor multiplies them fastest.

PyTorch arranges a weight anew in each product on a processor. Where weights do not change, oneDNN can be given them as
arranged once: products in float32 take a tenth less time for a thousand rows, and half for the few rows of a model
that writes. The arranged copy takes as much memory as the weight does, so large models go without. A weight that is
changed is arranged anew, unless it was changed behind PyTorch's back (`weight.data += 1`, fused optimizers).
"""

import platform
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from prbench.models.local.precision import COPIED_BYTES, has_bfloat16

_NARROW = 64
"""Outputs of a layer below which arranging gains nothing."""


class _Packed(NamedTuple):
    """An arranged weight and what it was made of, which is held so that nothing else comes to lie in its place."""

    source: Tensor
    version: int
    weight: Tensor


class PackedLinear(nn.Linear):
    """A linear layer that keeps an arranged copy of its weight, in use where nothing is learned."""

    _packed: "_Packed | None"

    def forward(self, input: Tensor) -> Tensor:
        """Multiply, with the arranged weight in inference mode."""
        weight = self.weight
        if not torch.is_inference_mode_enabled() or torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        if not _fits(weight):
            self._packed = None
            return super().forward(input)
        if input.dtype != weight.dtype or not input.numel():
            return super().forward(input)
        kept = self._packed
        if kept is None or kept.source.data_ptr() != weight.data_ptr() or kept.version != weight._version:
            self._packed = kept = _Packed(weight.data, weight._version, arranged(weight))
        return product(input, kept.weight, self.bias)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the arranged copy out: whoever copies a layer may change its weight."""
        return {**self.__dict__, "_packed": None}


def pack_linears(model: nn.Module) -> None:
    """Let a model's plain linear layers keep arranged copies, where the processor and its memory allow it."""
    layers = [one for one in model.modules() if type(one) is nn.Linear and one.out_features >= _NARROW]
    size = sum(one.weight.numel() * one.weight.element_size() for one in layers)
    if size <= COPIED_BYTES and all(_fits(one.weight) for one in layers):
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


def _fits(weight: Tensor) -> bool:
    """Whether a weight is one that can be arranged here: no quantized one, none that lies elsewhere."""
    return type(weight) is nn.Parameter and weight.is_cpu and not weight.is_inference() and can_arrange(weight.dtype)


@cache
def can_arrange(dtype: torch.dtype) -> bool:
    """Whether oneDNN takes arranged weights of this precision here, which is tried; on x86 alone."""
    known = dtype == torch.float32 or (dtype == torch.bfloat16 and bool(has_bfloat16()))
    if not known or platform.machine() not in {"x86_64", "AMD64"} or not torch.backends.mkldnn.is_available():
        return False
    with torch.inference_mode():
        weight = torch.linspace(-1, 1, 64 * 64, dtype=torch.float32).view(64, 64).to(dtype)
        bias, rows = weight[0], weight[:3]
        try:
            found = product(rows, arranged(weight), bias)
        except (AttributeError, RuntimeError, TypeError):  # not there, not for this processor, or called otherwise
            return False
        expected = nn.functional.linear(rows, weight, bias)
        return bool(torch.allclose(found.float(), expected.float(), rtol=0.02, atol=0.05))
