"""Attention of a pack in two parts: to the path that all of it sees, and within each of its branches.

One dense mask would hold every token against all its siblings, in vain, and makes transformers copy the path's keys and
values once per query head. Here the path is attended to without a mask, each branch to itself alone, and the two are
joined by their log-sum-exps, which is exact. Only PyTorch's kernel for processors hands those out in every precision;
elsewhere, and for models with another attention of their own, packs keep their mask.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple

NAME = "prbench_branches"
"""Name under which transformers finds this attention."""


class Branch(NamedTuple):
    """Tokens of a pack that see the path, and of the pack only each other."""

    start: int
    end: int
    mask: Any = None
    """Added to the attention weights, tokens × tokens; None: each sees those up to itself."""


class Layout(NamedTuple):
    """Layout of a pack behind its path."""

    prefix: int
    branches: tuple[Branch, ...]


_layout: ContextVar[Layout | None] = ContextVar("layout", default=None)
_turn = threading.Lock()
"""A model's attention is chosen in its config, which all threads see: packs take turns."""


@contextmanager
def attending(config: Any, layout: Layout, mask: Any) -> Iterator[Any]:
    """Let the model of this config, called with `mask`, attend by the layout, in this thread only."""
    _register()
    with _turn:
        usual, token = config._attn_implementation, _layout.set(layout)
        config._attn_implementation = NAME
        try:
            yield mask
        finally:
            config._attn_implementation = usual
            _layout.reset(token)


def attend(query: Any, key: Any, value: Any, layout: Layout, scale: float | None = None) -> Any:
    """Attention (1 × tokens × heads × width) of a pack's queries to a path's keys and to those of the pack behind it.

    Example:
        >>> import torch
        >>> states = torch.randn(1, 2, 5, 8)  # a path of one token, two branches of two
        >>> attend(states[:, :, 1:], states, states, Layout(1, (Branch(0, 2), Branch(2, 4)))).shape
        torch.Size([1, 4, 2, 8])
    """
    import torch

    parts = [_branch(query, key, value, layout.prefix, branch, scale) for branch in layout.branches]
    output, total = (torch.cat(part, dim=1) for part in zip(*parts, strict=True))
    if not layout.prefix:
        return output
    path, path_total = _flash(query, key[:, :, : layout.prefix], value[:, :, : layout.prefix], None, False, scale)
    weight = torch.sigmoid(total - path_total)[..., None]
    return torch.lerp(path.float(), output.float(), weight).to(query.dtype)


def _branch(query: Any, key: Any, value: Any, prefix: int, branch: Branch, scale: float | None) -> tuple[Any, Any]:
    rows = slice(branch.start, branch.end)
    columns = slice(prefix + branch.start, prefix + branch.end)
    mask = branch.mask
    return _flash(query[:, :, rows], key[:, :, columns], value[:, :, columns], mask, mask is None, scale)


def _flash(query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float | None) -> tuple[Any, Any]:
    """Output and log-sum-exp, tokens before heads, as the kernel lays them out."""
    import torch

    # The public function keeps the log-sum-exp to itself. Fewer key heads than query heads are taken as they are.
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    output, total = kernel(query, key, value, 0.0, causal, attn_mask=mask, scale=scale)
    return output.transpose(1, 2), total.transpose(1, 2)


@cache
def _register() -> None:
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    def forward(
        module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None, **other: Any
    ) -> tuple[Any, None]:
        layout = _layout.get()
        if layout is None:  # another thread, with the same model
            found: tuple[Any, None] = sdpa_attention_forward(
                module, query, key, value, attention_mask, scaling=scaling, **other
            )
            return found
        if strange := {name for name in _CHANGES_WEIGHTS if other.get(name) is not None}:
            raise NotImplementedError(f"attention with {', '.join(sorted(strange))}")
        return attend(query, key, value, layout, scaling), None

    AttentionInterface.register(NAME, forward)
    AttentionMaskInterface.register(NAME, sdpa_mask)


_CHANGES_WEIGHTS = ("softcap", "s_aux", "position_bias", "sliding_window", "head_mask")
"""Arguments that some models hand to their attention and that this one does not serve."""
