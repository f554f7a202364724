"""Low-rank tuning (LoRA, Hu et al. 2021): a frozen layer W and two thin matrices beside it, y = W x + B A x.

What was learned is small enough to be shipped: `delta` gives it, `merge` adds it to the layers.
"""

from typing import Any

import torch
from torch import Tensor, nn


class LowRank(nn.Module):
    """A frozen linear layer with a trainable part of low rank, which starts at zero.

    Args:
        linear: The layer.
        rank: Width between the two matrices.
    """

    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, inputs: Tensor) -> Tensor:
        """The layer's own output and what was learned."""
        outputs: Tensor = self.linear(inputs)
        return outputs + nn.functional.linear(nn.functional.linear(inputs, self.down), self.up)


def adapt(model: nn.Module, rank: int, layers: int = 0) -> None:
    """Freeze a model and give the linear layers of its upper blocks a part to train; the pooler has none.

    Args:
        model: The model.
        rank: Of what each layer learns.
        layers: How many of the upper blocks learn; 0 is all of them.
    """
    blocks = int(getattr(getattr(model, "config", None), "num_hidden_layers", 0))
    frozen = {f"layer.{number}." for number in range(max(blocks - layers, 0))} if layers else set()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for path, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and "pooler" not in path and not any(name in f"{path}." for name in frozen):
            parent, _, name = path.rpartition(".")
            setattr(model.get_submodule(parent), name, LowRank(module, rank))


def delta(model: nn.Module) -> dict[str, Tensor]:
    """Return what was learned, by the path of each layer, in half precision."""
    return {
        f"{path}.{part}": getattr(module, part).detach().to(torch.float16).contiguous()
        for path, module in model.named_modules()
        if isinstance(module, LowRank)
        for part in ("down", "up")
    }


def merge(model: nn.Module) -> None:
    """Put the layers back, each with what it learned, rounded as `delta` rounds it."""
    learned = delta(model)
    for path, module in list(model.named_modules()):
        if isinstance(module, LowRank):
            parent, _, name = path.rpartition(".")
            setattr(model.get_submodule(parent), name, module.linear)
    add_delta(model, learned)


def add_delta(model: Any, learned: dict[str, Tensor]) -> None:
    """Add what was learned to the layers of a model that has not learned it."""
    with torch.no_grad():
        for path in dict.fromkeys(key.rpartition(".")[0] for key in learned):
            layer = model.get_submodule(path)
            layer.weight += learned[f"{path}.up"].float() @ learned[f"{path}.down"].float()
