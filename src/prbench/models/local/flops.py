"""Arithmetic of scoring, and the speed of this machine: useful work only, and measured speed.

Two operations per weight and token, four per layer, width and key that a token really sees, and the head where logits
are read. Padding and masked-out keys count as nothing, so waste shows as a lower share. A mixture of experts runs a
part of its weights that differs by token and is not counted at all.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Self

_PEAK_SECONDS = 0.2
_PEAK_TRIES = 3
_PEAK_SIZE = {"cpu": 1024}
_PEAK_SIZE_ELSEWHERE = 4096
_USUAL_SHARE = 0.5
"""Share of the peak that runs of small models on processors reach (`peak_share` in their results: .4 to .8)."""
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


class Arithmetic(NamedTuple):
    """Operations of one model, by what causes them.

    Example:
        >>> Arithmetic(per_token=200, per_key=8, per_row=50).flops(tokens=10, keys=55, rows=1)
        2490
    """

    per_token: int
    per_key: int
    per_row: int
    """Operations of the head, at every token whose logits are read."""

    @classmethod
    def of(cls, model: Any) -> Self | None:
        """Count a model's weights; None where not every token goes through all of them, or attention has no heads."""
        config = model.config.get_text_config()
        experts = any((getattr(config, name, None) or 0) > 1 for name in _EXPERTS)
        if experts or model.config.is_encoder_decoder or not hasattr(config, "num_attention_heads"):
            return None
        body = model.base_model
        per_key = 4 * config.num_hidden_layers * attention_width(config)
        return cls(2 * body_weights(body), per_key, 2 * _head_weights(model, body))

    def flops(self, tokens: int, keys: int, rows: int) -> int:
        """Operations for so many tokens, which see so many keys all together, and rows of logits."""
        return self.per_token * tokens + self.per_key * keys + self.per_row * rows


def foreseen_seconds(model: Any, arithmetic: Arithmetic, tokens: int, length: int) -> float:
    """Return the seconds of so many tokens of prompts of this length, by the speed of a matrix product here and now.

    Args:
        model: Says with `dtype` and `device` how it would be run.
        arithmetic: Operations of the model.
        tokens: To be computed.
        length: Of a whole prompt; a token sees half of it, on the mean.
    """
    return arithmetic.flops(tokens, tokens * length // 2, rows=0) / (_USUAL_SHARE * matmul_peak(model))


def causal_keys(start: int, end: int) -> int:
    """Keys that the tokens of positions `start` to `end` see all together, each its own and all before it.

    Example:
        >>> causal_keys(0, 3), causal_keys(2, 3)
        (6, 3)
    """
    return (end * (end + 1) - start * (start + 1)) // 2


def body_weights(body: Any) -> int:
    """Weights that every token goes through; tables from which only one row is read are left out."""
    import torch

    tables = {id(module.weight) for module in body.modules() if isinstance(module, torch.nn.Embedding)}
    return sum(int(parameter.numel()) for parameter in body.parameters() if id(parameter) not in tables)


def _head_weights(model: Any, body: Any) -> int:
    inside = {id(parameter) for parameter in body.parameters()}
    if own := sum(int(parameter.numel()) for parameter in model.parameters() if id(parameter) not in inside):
        return own
    tied = model.get_output_embeddings()  # the table of embeddings, read the other way round
    return 0 if tied is None else int(tied.weight.numel())


def attention_width(config: Any) -> int:
    """Numbers in the queries of one token and layer."""
    heads = getattr(config, "num_attention_heads", 1)
    each = getattr(config, "head_dim", None) or config.hidden_size // heads
    return int(heads * each)


def matmul_peak(model: Any, clock: Callable[[], float] | None = None) -> float:
    """Operations per second of a large matrix product, as the model would make it; measured once per process.

    On processors it is measured in processor time: what else runs there at this moment says little of the hours to
    come, and would make a forecast many times too long.
    """
    import torch

    device = "cpu" if str(model.device) == "meta" else str(model.device)  # on disk: brought here to be computed
    clock = clock or (_processor_seconds if torch.device(device).type == "cpu" else time.perf_counter)
    return _measured_peak(str(model.dtype).removeprefix("torch."), device, torch.get_num_threads(), clock)


def _processor_seconds() -> float:
    """Processor time of this process for each of the threads that a matrix product uses."""
    import torch

    return time.process_time() / int(torch.get_num_threads())


@cache
def _measured_peak(dtype: str, device: str, threads: int, clock: Callable[[], float]) -> float:
    import torch

    size = _PEAK_SIZE.get(torch.device(device).type, _PEAK_SIZE_ELSEWHERE)
    matrix = torch.ones(size, size, dtype=getattr(torch, dtype), device=device)
    wait = torch.cuda.synchronize if torch.device(device).type == "cuda" else lambda: None
    times: list[float] = []
    with torch.inference_mode():
        while len(times) < _PEAK_TRIES or sum(times) < _PEAK_SECONDS:
            wait()
            start = clock()
            matrix @ matrix
            wait()
            times.append(clock() - start)
    return 2.0 * size**3 / min(times)
