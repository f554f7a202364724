"""Support of a model for shared prefixes: whether, in which way, and at what cost of a pass.

Said by the config where it says it, and then tried: a model that gives other numbers over a forked cache than in one
go, be it branch by branch or under a mask, is run plainly, whatever the reason.
"""

from collections.abc import Iterator
from typing import Any

from prbench.models.local.flops import attention_width, body_weights
from prbench.models.local.prefix.forward import CausalForward
from prbench.models.local.prefix.plan import Cost, Piece, PrefixStep
from prbench.models.local.prefix.tree import Tree

_PASS_IN_TOKENS = {"cpu": 24.0}
"""Cost of beginning a pass, as tokens: weights are read once per pass (measured; see benchmarks/scoring.py)."""
_PASS_IN_TOKENS_ELSEWHERE = 600.0
_ATTENTION_SLOWDOWN = {"mask": 1.6, "branches": 1.3}
"""Attention under a mask runs at about 60 % of the speed of the matrix products, branch by branch at 75 %."""
_LENGTH_DEPENDENT_ROTATION = {"dynamic", "longrope"}
"""Rotary positions whose frequencies change with the length of the whole sequence: a prefix alone has others."""


def estimate_cost(forward: CausalForward) -> Cost:
    """Derive the cost of passes from a model's shape and device, and from how packs attend."""
    model = forward.model
    config = model.config.get_text_config(decoder=True)
    attention = 4 * config.num_hidden_layers * attention_width(config)
    slowdown = _ATTENTION_SLOWDOWN["branches" if forward.by_branch else "mask"]
    per_key = slowdown * attention / (2 * max(body_weights(model.base_model), 1))
    per_pass = _PASS_IN_TOKENS.get(forward.device.type, _PASS_IN_TOKENS_ELSEWHERE)
    return Cost(per_key, per_pass, siblings=not forward.by_branch)


def choose_way(forward: CausalForward) -> str | None:
    """Let packs attend in the fastest way that the model bears; where it bears none, say why in one sentence."""
    reason = _told_by_config(forward.model)
    if reason is None:
        forward.by_branch = _may_branch(forward)
        reason = _tried(forward)
        if reason is not None and forward.by_branch:
            forward.by_branch = False
            reason = _tried(forward)
    return None if reason is None else f"prefixes are not shared, every prompt is run in full: {reason}"


def _may_branch(forward: CausalForward) -> bool:
    config = forward.model.config.get_text_config(decoder=True)
    return bool(forward.device.type == "cpu" and config._attn_implementation == "sdpa")


def _told_by_config(model: Any) -> str | None:
    from transformers.cache_utils import DynamicCache, DynamicLayer

    config = model.config.get_text_config(decoder=True)
    if model.config.is_encoder_decoder or not getattr(config, "is_causal", True):
        return "the model is not causal"
    if not hasattr(model, "score") and model.get_output_embeddings() is None:
        return "the model has neither a language-model head nor a head named `score`"
    if getattr(config, "_attn_implementation", None) not in {"sdpa", "eager"}:
        return f"its attention ({config._attn_implementation}) takes no mask"
    if set(_rotations(config)) & _LENGTH_DEPENDENT_ROTATION:
        return "its positions are scaled by the length of the whole prompt"
    kinds = {type(layer) for layer in DynamicCache(config=config).layers}
    if any(getattr(kind, "is_sliding", False) for kind in kinds):
        return "it attends in a sliding window"
    if kinds - {DynamicLayer}:
        return f"its cache cannot be forked ({', '.join(sorted(kind.__name__ for kind in kinds - {DynamicLayer}))})"
    return None


def _tried(forward: CausalForward) -> str | None:
    import torch

    tree = Tree([[3, 1, 4, 1, 5, 9], [3, 1, 4, 2, 6], [3, 1, 4, 2, 7, 1]])
    first, *rest = [Piece(node, node.start, node.end) for node in tree.nodes() if node.size]
    steps = [PrefixStep(0, (first,)), PrefixStep(first.end, tuple(rest))]
    try:
        with torch.inference_mode():
            forward.reserve(max(step.prefix + step.tokens for step in steps))
            forward.packed(tree, steps[0], [])
            ends = [index for index, piece in enumerate(rest) if not piece.node.children]
            offsets = [sum(piece.end - piece.start for piece in rest[: index + 1]) - 1 for index in ends]
            forked = forward.packed(tree, steps[1], offsets).float()
            whole = torch.cat([forward.padded([ids], [(0, len(ids) - 1)]).float() for ids in tree.arrays])
    except Exception as error:  # whatever a model's own code raises here, it can still be run plainly
        return f"its code does not take a forked cache ({type(error).__name__})"
    finally:
        forward.release()
    tolerance = 1e-3 if forward.model.dtype == torch.float32 else 0.1
    scale = max(1.0, float(whole.abs().max()))
    return (
        None if float((forked - whole).abs().max()) <= tolerance * scale else "over a forked cache it scores otherwise"
    )


def _rotations(config: Any) -> Iterator[str]:
    """The kinds of rotary scaling in a config, which may hold one per layer type."""
    waiting: list[Any] = [getattr(config, "rope_parameters", None), getattr(config, "rope_scaling", None)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
            yield from (str(value[key]) for key in ("rope_type", "type") if key in value)
