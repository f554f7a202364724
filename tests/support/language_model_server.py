"""A real OpenAI-compatible server on loopback in front of a real local language model."""

import threading
from typing import Any

from fake_server import FakeServer, chat_reply
from prbench.models import Generator
from prbench.types import Message, Prompt


def serve(generator: Generator) -> FakeServer:
    """The server, to be used in a `with` block; requests come in parallel, the model answers one at a time."""
    alone = threading.Lock()

    def answer(body: dict[str, Any]) -> Any:
        prompt = Prompt(tuple(Message(**message) for message in body["messages"]))
        with alone:
            ((_, (outcome,)),) = generator.generate(
                [prompt], max_tokens=body["max_tokens"], temperature=body["temperature"], seed=body["seed"]
            )
        cut_off = outcome.reason.startswith("cut off")
        usage = {"prompt_tokens": outcome.tokens_in, "completion_tokens": outcome.tokens_out}
        return {**chat_reply(outcome.raw, "length" if cut_off else "stop"), "usage": usage}

    return FakeServer(answer=answer)
