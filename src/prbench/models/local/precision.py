"""What a processor multiplies with: half precision where it has instructions for it, and copies of small weights."""

import platform
from typing import Any, Literal

Products = Literal["auto", "float32", "bfloat16"]
"""Precision of the matrix products of a training; weights, gradients and sums stay in float32."""
COPIED_BYTES = 2**30
"""Most bytes of a model's weights that are kept twice, once as the processor multiplies them fastest."""


def has_bfloat16() -> bool | None:
    """Say whether this processor multiplies bfloat16 by instructions of its own; None where that cannot be asked."""
    import torch

    known = [getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")]
    if platform.machine() not in {"x86_64", "AMD64"} or None in known:
        return None
    return any(ask() for ask in known if ask is not None)


def resolved(products: Products) -> Products:
    """Return the precision that `auto` stands for here: bfloat16 where the processor has instructions for it.

    Example:
        >>> resolved("float32")
        'float32'
    """
    if products != "auto":
        return products
    return "bfloat16" if has_bfloat16() else "float32"


def told(products: Products) -> dict[str, str]:
    """Return what an identity or a record says of the products; in float32 it says what it always said.

    Example:
        >>> told("float32"), told("bfloat16")
        ({}, {'products': 'bfloat16'})
    """
    found = resolved(products)
    return {} if found == "float32" else {"products": found}


def multiplying(products: Products) -> Any:
    """Context in which matrix products are computed in a precision."""
    import torch

    return torch.autocast("cpu", torch.bfloat16, enabled=resolved(products) == "bfloat16")
