"""A loopback server that answers like vLLM 0.32 with a classifier: shapes as recorded from a real one.

`logits` are those of the pretended weights; `listens=False` pretends a server or gateway that ignores `use_activation`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from fake_server import FakeServer, Seen

NAME = "tiny/rm"


def length_logit(messages: Sequence[dict[str, str]]) -> list[float]:
    """Different for different answers, on both sides of 0."""
    return [len(messages[-1]["content"]) / 10 - 3]


def squash(logits: Sequence[float]) -> list[float]:
    """What vLLM makes of logits where activation is on."""
    if len(logits) == 1:
        return [1 / (1 + math.exp(-logits[0]))]
    return [math.exp(logit) / sum(map(math.exp, logits)) for logit in logits]


def token_count(messages: Sequence[dict[str, str]]) -> int:
    """One token per word, and three for each turn."""
    return sum(len(message["content"].split()) + 3 for message in messages)


class FakeVllm(FakeServer):
    """The server; use it in a `with` block.

    Args:
        logits: Makes the logits of a conversation.
        listens: Whether `use_activation` is heeded; if not, activation is always on.
        activates: Whether there is an activation at all; a regression head has none.
        window: The server's `max_model_len`.
        extra_tokens: Tokens that scoring adds to what the chat template writes.
    """

    def __init__(
        self,
        logits: Callable[[Sequence[dict[str, str]]], list[Any]] = length_logit,
        *,
        listens: bool = True,
        activates: bool = True,
        window: int = 512,
        extra_tokens: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.logits = logits
        self.listens = listens
        self.activates = activates
        self.window = window
        self.extra_tokens = extra_tokens

    @property
    def address(self) -> str:
        """Where `http:` finds it."""
        return f"http:vllm:{NAME}@{self.root}"

    def reply(self, seen: Seen) -> Any:
        """The right answer to a request; None where there is nothing under that path."""
        match seen.path:
            case "/v1/models":
                model = {"id": NAME, "object": "model", "owned_by": "vllm", "root": "/models/rm", "parent": None}
                return {"object": "list", "data": [{**model, "max_model_len": self.window}]}
            case "/tokenize":
                count = token_count(seen.body["messages"])
                return {"count": count, "max_model_len": self.window, "tokens": [7] * count, "token_strs": None}
            case "/pooling":
                return self._pooling(seen.body)
        return None

    def _pooling(self, body: dict[str, Any]) -> dict[str, Any]:
        values = self.logits(body["messages"])
        if self.activates and (body.get("use_activation", True) or not self.listens):
            values = squash(values)
        tokens = token_count(body["messages"]) + self.extra_tokens
        return {
            "id": "pooling-a3e215142dfb9b48",
            "object": "list",
            "created": 1794796395,
            "model": NAME,
            "data": [{"index": 0, "object": "pooling", "data": values}],
            "usage": {
                "prompt_tokens": tokens,
                "total_tokens": tokens,
                "completion_tokens": 0,
                "prompt_tokens_details": None,
                "completion_tokens_details": None,
            },
        }
