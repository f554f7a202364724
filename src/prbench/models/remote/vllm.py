"""`http:vllm:MODEL@URL[#label=N]`: a sequence-classifier reward model on a vLLM server, read as raw logits.

Each conversation goes to POST /pooling as messages, so that the server renders the model's own chat template, once and
without further special tokens. Logits are asked for without activation, and that they came so is checked on
connect; nothing is ever squashed or unsquashed here. What does not fit is refused by the server, never cut.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import httpx
from pydantic import BaseModel, Field

from prbench.config import ModelOptions
from prbench.errors import AddressError, ModelError, did_you_mean
from prbench.models.head import Head
from prbench.models.local.encoding import TEMPLATE_DATE
from prbench.models.protocols import ModelCard
from prbench.models.remote.completions import estimate_tokens
from prbench.models.remote.known_score import PROBES
from prbench.models.remote.order import prefix_order, restored
from prbench.models.remote.stream import stream
from prbench.models.remote.vllm_check import check_known, check_logits
from prbench.models.remote.wire import PATIENT, Backoff, Fault, StatusRefused, Wire, WireReply, clean_url
from prbench.prompts import Template
from prbench.types import AnswerView, Count, Message, Outcome, Prompt

_SURELY = 2
"""A prompt whose estimated tokens fit so many times over fits; only a longer one is worth asking the server about."""


class _Served(BaseModel):
    id: str
    max_model_len: int | None = None


class _Models(BaseModel):
    data: list[_Served] = Field(fail_fast=True)


class _Pooled(BaseModel):
    data: list[float | list[Any]] = Field(fail_fast=True)


class _Usage(BaseModel):
    prompt_tokens: Count = 0


class _Pooling(BaseModel):
    """Fields of a reply that are read; other fields may come and are ignored."""

    data: list[_Pooled] = Field(min_length=1, max_length=1, fail_fast=True)
    usage: _Usage = _Usage()


class _Tokens(BaseModel):
    count: int


class Address(NamedTuple):
    """Address of a served model: what stands behind `http:vllm:`."""

    model: str
    base_url: str
    label: int | None

    @classmethod
    def parse(cls, rest: str) -> "Address":
        """Read an address `MODEL@URL[#label=N]`.

        Example:
            >>> Address.parse("my/rm@http://127.0.0.1:8000/v1#label=1")
            Address(model='my/rm', base_url='http://127.0.0.1:8000', label=1)
        """
        named, mark, fragment = rest.partition("#")
        model, _, url = named.partition("@")
        if not model or not url:
            raise AddressError(
                f"'http:vllm:{model}' names no {'server' if model else 'model'}",
                hint="http:vllm:MODEL@URL, for example http:vllm:my/rm@http://127.0.0.1:8000",
            )
        key, _, label = fragment.partition("=")
        if mark and (key != "label" or not label.isdecimal()):
            raise AddressError(f"http:vllm:{model}: cannot read {'#' + fragment!r}", hint="write #label=1")
        base_url = clean_url(url, f"http:vllm:{model}@…").removesuffix("/v1")
        return cls(model, base_url, int(label) if mark else None)

    def __str__(self) -> str:
        return f"http:vllm:{self.model}@{self.base_url}" + ("" if self.label is None else f"#label={self.label}")


def open_pooling(rest: str, options: ModelOptions, backoff: Backoff = PATIENT) -> "PoolingRater":
    """Connect to a vLLM server and check that it gives the raw logits of this model.

    Args:
        rest: `MODEL@URL[#label=N]`. The key, where there is one, is taken from VLLM_API_KEY.
        options: Patience, concurrency, template, and the probe's known logit.
        backoff: How long to wait before a request is sent again.
    """
    address = Address.parse(rest)
    wire = Wire(
        address.base_url,
        key_variable="VLLM_API_KEY",
        timeout_s=options.timeout_s,
        retries=options.retries,
        backoff=backoff,
    )
    server = PoolingServer(wire, address.model)
    greeting = _greet(server, str(address))
    head = _head(greeting.raw[0], address)
    if options.expect_logit is None:
        check_logits(greeting.raw, greeting.activated, str(address))
    else:
        check_known(_score(head, greeting.raw[0]), options.expect_logit, str(address))
    return PoolingRater(server, address, head, options, greeting.window)


class PoolingServer:
    """One classifier on one vLLM server."""

    def __init__(self, wire: Wire, model: str) -> None:
        self.wire = wire
        self.model = model

    async def served(self, client: httpx.AsyncClient) -> list[_Served]:
        """Return the models that the server says it serves."""
        return (await self.wire.send(client, "/v1/models", _Models)).body.data

    async def logits(
        self, client: httpx.AsyncClient, prompt: Prompt, *, activation: bool = False
    ) -> tuple[list[float], WireReply[_Pooling]]:
        """All labels' logits for one conversation."""
        body = {**self._conversation(prompt), "task": "classify", "use_activation": activation}
        reply = await self.wire.send(client, "/pooling", _Pooling, body)
        values = reply.body.data[0].data
        if not values or any(isinstance(value, list) for value in values):
            raise Fault(f"{len(values)} rows of scores came where one row was asked for")
        return [float(value) for value in values if not isinstance(value, list)], reply

    async def count(self, client: httpx.AsyncClient, prompt: Prompt) -> int:
        """Tokens that the model's chat template makes of a conversation."""
        return (await self.wire.send(client, "/tokenize", _Tokens, self._conversation(prompt))).body.count

    def _conversation(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [message._asdict() for message in prompt.messages],
            "add_generation_prompt": False,
            "add_special_tokens": False,
            "chat_template_kwargs": {"date_string": TEMPLATE_DATE},
        }


class _Greeting(NamedTuple):
    """Facts that a server gives of itself before it is trusted."""

    window: int | None
    raw: list[list[float]]
    activated: list[list[float]]


def _greet(server: PoolingServer, address: str) -> _Greeting:
    async def job(client: httpx.AsyncClient, _: int) -> _Greeting:
        served = await server.served(client)
        window = _window(served, server.model, address)
        prompts = [_conversation(probe.question, probe.answer) for probe in PROBES]
        replies = [await server.logits(client, prompt) for prompt in prompts]
        activated = [(await server.logits(client, prompt, activation=True))[0] for prompt in prompts]
        scored, written = replies[0][1].body.usage.prompt_tokens, await _count(server, client, prompts[0])
        if written is not None and scored and scored != written:
            raise ModelError(
                f"{address}: the server scores {scored} tokens where its chat template writes {written}",
                hint="special tokens are added twice: see that nothing between here and vLLM changes requests",
            )
        return _Greeting(window, [logits for logits, _ in replies], activated)

    try:
        [(_, greeting)] = stream(1, job, server.wire.open, concurrency=1)
    except (Fault, StatusRefused) as error:
        raise ModelError(
            f"{address}: the server gives no scores of a classifier: {error.reason}",
            hint="serve a sequence classifier with a chat template: vllm serve MODEL --runner pooling",
        ) from error
    return greeting


def _window(served: Sequence[_Served], model: str, address: str) -> int | None:
    for one in served:
        if one.id == model:
            return one.max_model_len
    raise ModelError(
        f"{address}: the server has no model {model!r}", hint=did_you_mean(model, [one.id for one in served])
    )


async def _count(server: PoolingServer, client: httpx.AsyncClient, prompt: Prompt) -> int | None:
    """None where a server does not tokenise for others."""
    try:
        return await server.count(client, prompt)
    except (Fault, StatusRefused):
        return None


def _head(logits: Sequence[float], address: Address) -> Head:
    """Choose the number that is the score; the server does not tell what its labels mean, so nothing is guessed."""
    count, label = len(logits), address.label
    if label is None and count == 1:
        return Head(0)
    if label is None or label >= count:
        wanted = "no #label says which is the score" if label is None else f"there is no label {label}"
        raise ModelError(f"{address}: the head has {count} labels and {wanted}", hint=f"name one: #label={count - 1}")
    return Head(label, against=1 - label if count == 2 else None)


def _score(head: Head, logits: Sequence[float]) -> float:
    return logits[head.label] - (0.0 if head.against is None else logits[head.against])


class PoolingRater:
    """A reward model on a vLLM server. The server batches; prompts that begin alike are sent one after the other."""

    def __init__(
        self, server: PoolingServer, address: Address, head: Head, options: ModelOptions, window: int | None
    ) -> None:
        self._server = server
        self._head = head
        self._concurrency = options.concurrency
        self._template = Template.load(options.template, "turn", "turn.jinja")
        self._window = options.window or window
        self._counted = lru_cache(maxsize=4096)(self._ask_length)
        self._card = ModelCard(
            address=str(address),
            reads=self._template.reads,
            parameters={"template": self._template.digest, "head": head.describe(), "window": self._window},
            # Behind the same URL there may be other weights tomorrow.
            reusable=False,
            units="log-odds",
        )

    @property
    def card(self) -> ModelCard:
        """Description of the model that answers; never the key."""
        return self._card

    @property
    def window(self) -> int | None:
        """The most tokens a prompt may have, as the server says."""
        return self._window

    def length(self, prompt: Prompt) -> int:
        """Tokens of a prompt: estimated from its bytes where it fits in any case, else counted by the server."""
        estimate = estimate_tokens(prompt)
        if self._window is None or estimate * _SURELY <= self._window:
            return estimate
        return self._counted(prompt)

    def render(self, view: AnswerView) -> Prompt:
        """The user's posts, plan and question as one user turn, the answer as the assistant's turn."""
        return _conversation(self._template.render(view), view.answer)

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view; closing the iterator early cancels what is under way."""
        order = prefix_order(views)

        async def job(client: httpx.AsyncClient, place: int) -> Outcome:
            try:
                logits, reply = await self._server.logits(client, self.render(views[order[place]]))
            except (Fault, StatusRefused) as error:
                return Outcome.failed(error.reason)
            tokens = reply.body.usage.prompt_tokens
            return Outcome.scored(_score(self._head, logits), tokens_in=tokens, latency_ms=reply.latency_ms)

        return restored(order, stream(len(views), job, self._server.wire.open, self._concurrency))

    def _ask_length(self, prompt: Prompt) -> int:
        async def job(client: httpx.AsyncClient, _: int) -> int | None:
            return await _count(self._server, client, prompt)

        [(_, count)] = stream(1, job, self._server.wire.open, concurrency=1)
        return estimate_tokens(prompt) if count is None else count


def _conversation(turn: str, answer: str) -> Prompt:
    return Prompt((Message("user", turn), Message("assistant", answer)))
