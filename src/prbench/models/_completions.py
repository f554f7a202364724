"""The one endpoint of `chat:`: POST {base}/chat/completions, as OpenAI, vLLM, llama.cpp, Ollama and others serve it.

Turns a prompt into a request and a reply into a `Completion`: text, or the reason why there is none.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
from pydantic import BaseModel, Field

from prbench.config import Price
from prbench.models._flops import Effort
from prbench.models._stream import stream
from prbench.models._wire import Fault, Refused, Reply, Wire
from prbench.types import Outcome, Prompt

_BYTES_PER_TOKEN = 3.5
_TOKENS_PER_MESSAGE = 8
_MOST_TOKENS = 10**9
"""More tokens than any call has: a server that reports them is not counting."""
_MOST_CHARACTERS = 200_000
"""The longest text that is kept of one call; no verdict or answer has a tenth of it."""


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _PromptDetails(BaseModel):
    cached_tokens: int | None = Field(default=None, ge=0, le=_MOST_TOKENS)


class _Usage(BaseModel):
    prompt_tokens: int = Field(default=0, ge=0, le=_MOST_TOKENS)
    completion_tokens: int = Field(default=0, ge=0, le=_MOST_TOKENS)
    prompt_tokens_details: _PromptDetails | None = None

    @property
    def cached_tokens(self) -> int | None:
        """Tokens that the server had computed before; None where it does not say."""
        return self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details else None


class _Body(BaseModel):
    """What of a reply is read; other fields may come and are ignored."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


class Completion(NamedTuple):
    """What a chat model wrote."""

    text: str
    finish: str
    """`stop`, `length` or `refused`."""
    usage: dict[str, float]
    """Tokens, cost and latency, as an `Outcome` takes them."""

    @property
    def cut_off(self) -> str:
        """Where the text stopped, for a message."""
        return f"cut off after {self.usage['tokens_out'] or 'too many'} tokens"


class Call(NamedTuple):
    """One request: a prompt and the parameters that go with it."""

    prompt: Prompt
    parameters: dict[str, Any]


class Completions:
    """One model on one server.

    Args:
        wire: The server.
        model: The model's name there.
        concurrency: The most requests under way at any moment.
        price: For the cost of a call.
    """

    def __init__(self, wire: Wire, model: str, *, concurrency: int, price: Price | None = None) -> None:
        self.wire = wire
        self.model = model
        self.concurrency = concurrency
        self.price = price
        self.effort = Effort()
        """Over the replies that say how much of the prompt the server's prefix cache held."""

    def ask(
        self, count: int, call: Callable[[int], Call], read: Callable[[Completion], Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        """Send `call(index)` for every index below `count`; yield what `read` makes of each reply.

        A call is made only when it is about to be sent, so that a hundred thousand prompts are never in memory at once.
        """

        async def job(client: httpx.AsyncClient, index: int) -> Outcome:
            return await self._answer(client, call(index), read)

        return stream(count, job, self.wire.open, self.concurrency)

    async def _answer(self, client: httpx.AsyncClient, call: Call, read: Callable[[Completion], Outcome]) -> Outcome:
        messages = [message._asdict() for message in call.prompt.messages]
        body = {"model": self.model, "messages": messages, **call.parameters}
        try:
            reply = await self.wire.send(client, "/chat/completions", _Body, body)
        except (Fault, Refused) as error:
            return Outcome.failed(error.reason)
        completion = self._completion(reply, call.prompt)
        if len(completion.text) > _MOST_CHARACTERS:
            said = f"a text of {len(completion.text):,} characters, over the limit of {_MOST_CHARACTERS:,}"
            return Outcome.failed(said, **completion.usage)
        if completion.finish == "refused":
            return Outcome.invalid("refused", raw=completion.text, **completion.usage)
        return read(completion)

    def _completion(self, reply: Reply[_Body], prompt: Prompt) -> Completion:
        choice = reply.body.choices[0]
        usage = self._usage(reply, prompt)
        refusal = choice.message.refusal
        if refusal or choice.message.content is None or choice.finish_reason == "content_filter":
            return Completion(refusal or choice.message.content or "", "refused", usage)
        return Completion(choice.message.content, "length" if choice.finish_reason == "length" else "stop", usage)

    def _usage(self, reply: Reply[_Body], prompt: Prompt) -> dict[str, float]:
        used = reply.body.usage or _Usage()
        if used.cached_tokens is not None:
            self.effort.naive_tokens += used.prompt_tokens
            self.effort.computed_tokens += used.prompt_tokens - used.cached_tokens
        cost_usd = 0.0
        if self.price is not None:
            # A server that reports no usage must not make a run look free: a budget would never end it.
            text = reply.body.choices[0].message.content or ""
            tokens_in = used.prompt_tokens or estimate_tokens(prompt)
            cost_usd = self.price.cost_usd(tokens_in, used.completion_tokens or _tokens(text))
        return {
            "tokens_in": used.prompt_tokens,
            "tokens_out": used.completion_tokens,
            "latency_ms": reply.latency_ms,
            "cost_usd": cost_usd,
        }


def estimate_tokens(prompt: Prompt) -> int:
    """Estimate a prompt's tokens from its bytes: the server's tokenizer is not ours to load.

    Example:
        >>> from prbench.types import Message
        >>> estimate_tokens(Prompt((Message("user", "x" * 35),)))
        18
    """
    return sum(_tokens(message.content) + _TOKENS_PER_MESSAGE for message in prompt.messages)


def _tokens(text: str) -> int:
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / _BYTES_PER_TOKEN)
