"""Check that a served classifier's scores are raw logits. It runs on connect, as squashed scores look like any number.

vLLM puts logits through a sigmoid or a softmax unless asked not to, and a server or a gateway may not listen. Three
signs, the surest first: a known logit of the probe conversation that the user states; the same probes asked for with
activation are the squashed ones; some score lies outside [0, 1]. Without any of them the scores are refused.
"""

import math
from collections.abc import Sequence

from prbench.errors import ModelError

Logits = Sequence[float]
_OFF = "start the server with --pooler-config '{\"use_activation\": false}'"
_TOLERANCE = 0.03
"""Half precision on another machine moves a logit by about one part in a hundred."""


def check_logits(raw: Sequence[Logits], activated: Sequence[Logits], address: str) -> None:
    """Refuse scores that look like probabilities.

    Args:
        raw: The probes' logits, asked for without activation.
        activated: The same, asked for with activation.
        address: Who answered, for the message.

    Example:
        >>> check_logits([[3.0], [-1.0]], [[0.953], [0.269]], "http:vllm:m@…")
        >>> check_logits([[0.953], [0.269]], [[0.953], [0.269]], "http:vllm:m@…")
        Traceback (most recent call last):
        prbench.errors.ModelError: http:vllm:m@…: all scores of the probe texts lie in [0, 1] (0.953, 0.269), ...
    """
    if _are_squashed(raw, activated) or any(not 0 <= value <= 1 for row in raw for value in row):
        return
    shown = ", ".join(f"{value:.3g}" for row in raw for value in row)
    raise ModelError(
        f"{address}: all scores of the probe texts lie in [0, 1] ({shown}), with and without activation: "
        "they look like activated scores, not like logits",
        hint=f"{_OFF}; if these are its logits, state a known one with --expect-logit",
    )


def check_known(score: float, expected: float, address: str) -> None:
    """Refuse a first probe whose score is not the known one.

    Example:
        >>> check_known(3.01, expected=3.0, address="http:vllm:m@…")
        >>> check_known(0.953, expected=3.0, address="http:vllm:m@…")
        Traceback (most recent call last):
        prbench.errors.ModelError: http:vllm:m@…: the probe's score is 0.953, but 3 was expected; that is its sigmoid
        <BLANKLINE>
        hint: start the server with --pooler-config '{"use_activation": false}'
    """
    if _close(score, expected):
        return
    squashed = _close(score, _squash([expected])[0])
    raise ModelError(
        f"{address}: the probe's score is {score:.4g}, but {expected:g} was expected"
        + ("; that is its sigmoid" if squashed else ""),
        hint=_OFF if squashed else "other weights, another chat template, or a calibration in the server's pooler",
    )


def _are_squashed(raw: Sequence[Logits], activated: Sequence[Logits]) -> bool:
    """Whether the second are the first after a sigmoid or softmax, and not the first again."""
    squashed = [_squash(row) for row in raw]
    return _all_close(squashed, activated) and not _all_close(raw, activated)


def _squash(logits: Logits) -> list[float]:
    if len(logits) == 1:
        return [1 / (1 + math.exp(-min(max(logits[0], -60.0), 60.0)))]
    weights = [math.exp(logit - max(logits)) for logit in logits]
    return [weight / math.fsum(weights) for weight in weights]


def _all_close(left: Sequence[Logits], right: Sequence[Logits]) -> bool:
    pairs = [(one, other) for row, column in zip(left, right, strict=True) for one, other in zip(row, column)]  # noqa: B905
    return all(_close(one, other) for one, other in pairs)


def _close(value: float, expected: float) -> bool:
    return abs(value - expected) <= _TOLERANCE * max(1.0, abs(expected))
