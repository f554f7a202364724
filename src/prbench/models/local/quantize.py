"""Rounded weights: linear layers in 8 bits by torchao, or everything in bfloat16; a sample tells what that changes.

With 8 bits activations stay in the run's precision (weight-only): rounding them changes many more preferences. What
rounding does to a model's scores depends on the model, so it is measured, on prompts of the run itself, before and
after; without a sample there is no number. A model is refused where fewer than 99.5 % of the sampled pairs of answers
keep their order.
"""

import logging
import statistics
import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from prbench.errors import MissingExtraError, ModelError
from prbench.types import Message, Prompt

_LEAST_KEPT = 0.995
"""Share of the sampled pairs of answers that must keep their order."""


_CALLED = {"int8": "8 bits", "bfloat16": "bfloat16"}


def quantise(model: Any, address: str, kind: str = "int8") -> None:
    """Round the weights of a model in place: those of its linear layers to 8 bits, or all to bfloat16."""
    if getattr(model, "hf_device_map", None):
        raise ModelError(
            f"{address}: weights that are spread by --device-map cannot be rounded to {_CALLED[kind]}",
            hint="leave one of the two out",
        )
    if kind == "bfloat16":
        import torch

        for parameter in model.parameters():  # and no buffers: rotary positions are computed in full precision
            parameter.data = parameter.data.to(torch.bfloat16)
        return
    for name in ("torchao", "torch.utils._pytree"):  # it lists kernels for other machines that it cannot load
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from torchao.quantization import Int8WeightOnlyConfig, quantize_
        except ImportError as error:
            raise MissingExtraError(f"--quantize int8 for {address}", "int8") from error
        quantize_(model, Int8WeightOnlyConfig())


def choose_sample(prompts: Sequence[Prompt], most: int) -> list[Prompt]:
    """Prompts to measure on: answers to the same turn together, as many as there is room for.

    Example:
        >>> prompts = [Prompt((Message("user", a), Message("assistant", b))) for a, b in ("ax", "by", "az")]
        >>> ["".join(message.content for message in prompt.messages) for prompt in choose_sample(prompts, 2)]
        ['ax', 'az']
    """
    groups: dict[tuple[Message, ...], dict[Prompt, None]] = {}
    for prompt in prompts:
        groups.setdefault(prompt.messages[:-1], {})[prompt] = None
    return [prompt for group in groups.values() for prompt in group][:most]


def describe_change(
    prompts: Sequence[Prompt],
    before: Sequence[float | None],
    after: Sequence[float | None],
    address: str = "the model",
    kind: str = "int8",
) -> str:
    """Say in one sentence how scores differ, and how many pairs of answers to the same turn kept their order.

    Raises:
        ModelError: If fewer than 99.5 % of those pairs did.

    Example:
        >>> prompts = [Prompt((Message("user", "Tea?"), Message("assistant", answer))) for answer in "ab"]
        >>> describe_change(prompts, [1.0, 0.0], [1.1, -0.1])  # doctest: +NORMALIZE_WHITESPACE
        'weights in 8 bits: on a sample of 2 prompts scores changed by 0.1 on average and 0.1 at most (their standard
        deviation is 0.5); 1 of 1 pairs of answers kept their order'
    """
    known = [
        (prompt, one, other)
        for prompt, one, other in zip(prompts, before, after, strict=True)
        if one is not None and other is not None
    ]
    if not known:
        return f"weights in {_CALLED[kind]}; no sample was scored in full precision, so what that changes is not known"
    changes = [abs(other - one) for _, one, other in known]
    pairs = [(left, right) for left, right in combinations(known, 2) if left[0].messages[:-1] == right[0].messages[:-1]]
    same = sum((left[1] > right[1]) == (left[2] > right[2]) for left, right in pairs)
    spread = statistics.pstdev([one for _, one, _ in known])
    said = (
        f"weights in {_CALLED[kind]}: on a sample of {len(known)} prompts scores changed by "
        f"{statistics.fmean(changes):.3g} on average and {max(changes):.3g} at most (their standard deviation is "
        f"{spread:.3g}); {same} of {len(pairs)} pairs of answers kept their order"
    )
    if same < _LEAST_KEPT * len(pairs):
        raise ModelError(
            f"{address}: {said}, and {_LEAST_KEPT:.1%} must",
            hint="leave --quantize out; --quantize-sample 0 rounds the weights without measuring what it changes",
        )
    return said
