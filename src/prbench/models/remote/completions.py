"""One chat model on one server: calls in, texts out, with what the server was found not to take.

A parameter that the endpoint refuses by name is left out, or said otherwise, for all later calls: learned once, from
the endpoint's own error, and told in the run's record. A refusal that meets every first call ends the run.
"""

import json
import math
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import httpx

from prbench.config import Price
from prbench.errors import ModelError
from prbench.models.effort import Effort
from prbench.models.meter import Meter, current_meter
from prbench.models.remote.dialects import Call, Dialect, Said
from prbench.models.remote.stream import stream
from prbench.models.remote.wire import Bill, Fault, StatusRefused, Wire
from prbench.types import Outcome, Prompt

__all__ = ["Call", "Completion", "Completions", "estimate_tokens"]

_BYTES_PER_TOKEN = 3.5
_TOKENS_PER_MESSAGE = 8
_MOST_CHARACTERS = 200_000
"""The longest text that is kept of one call; no verdict or answer has a tenth of it."""
_SPEAKING = 1024
"""The default limit on a reply's tokens: ample for a verdict, too little for a model that thinks before it."""
_THINKING = 16_384
"""Largest number of tokens for a model that thinks, in its place."""
_HOPELESS = 5
"""Number of first calls, all refused for one reason, that are enough to know that the others would be."""
_REFUSING = frozenset({400, 422})
_UNSUPPORTED = re.compile(
    r"unsupported|not supported|does not support|not support|unrecognized|unknown|unexpected|invalid|extra|forbidden"
    r"|not permitted|not allowed|deprecated|only the default|cannot be used",
    re.IGNORECASE,
)
"""Words by which endpoints say that a parameter is at fault."""
_LONGEST_COMPLAINT = 4000
_OTHER_WORD = {"max_tokens": "max_completion_tokens"}
_LENGTH_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "maxOutputTokens"})
"""The names by which providers limit the tokens of a reply."""
_REPLIES = frozenset({"n", "best_of", "candidateCount"})
"""The names by which a user can ask for several replies at once (`--body`)."""
_DISPENSABLE = {
    "temperature": ("temperature",),
    "seed": ("seed",),
    "logprobs": ("logprobs", "top_logprobs", "responseLogprobs"),
    "schema": ("response_format", "json_schema", "responseJsonSchema", "responseSchema"),
}
"""Parameters that a call can do without, with the names by which endpoints speak of them."""


class Completion(NamedTuple):
    """Reply of a chat model."""

    text: str
    finish: str
    """Reason why the text ended: `stop`, `length` or `refused`."""
    usage: dict[str, float]
    """Tokens, cost and latency, as an `Outcome` takes them."""
    thought: bool = False
    """Whether it thought before, or instead."""
    tokens: tuple[tuple[str, dict[str, float]], ...] = ()
    """Each token with the log-probabilities of its rivals, where the endpoint gives them."""

    @property
    def cut_off(self) -> str:
        """Place where the text stopped, for a message."""
        spent = f"{self.usage['tokens_out'] or 'too many'} tokens"
        if self.thought and not self.text.strip():
            return f"cut off while thinking, after {spent}: raise --max-tokens"
        return f"cut off after {spent}"


class Completions:
    """One model on one server.

    Args:
        wire: The server.
        model: The model's name there.
        dialect: How it is spoken to.
        concurrency: The most requests under way at any moment.
        price: For the cost of a call.
        body: Further fields of every request, as the user gave them; never left out.
        structured: Whether a schema that the endpoint refuses is an error, or left out.
    """

    def __init__(
        self,
        wire: Wire,
        model: str,
        dialect: Dialect,
        *,
        concurrency: int,
        price: Price | None = None,
        body: dict[str, Any] | None = None,
        structured: str = "off",
    ) -> None:
        self.wire = wire
        self.model = model
        self.dialect = dialect
        self.concurrency = concurrency
        self.price = price
        self._body = dict(body or {})
        self._structured = structured
        self._learned: dict[str, str] = {}
        self._room = 0
        self._thought_tokens = self._written_tokens = 0
        self._answered = False
        self._refusals: dict[str, int] = {}
        self.effort = Effort()
        """Effort over the replies that say how much of the prompt the server's prefix cache held."""

    @property
    def note(self) -> str | None:
        """Note on what was changed for this endpoint, and how much was thought; None where nothing was."""
        said = list(self._learned.values())
        if self._thought_tokens:
            said.append(f"{self._thought_tokens:,} of {self._written_tokens:,} tokens written were thoughts")
        return "; ".join(said) or None

    def ask(
        self, count: int, call: Callable[[int], Call], read: Callable[[int, Completion], Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        """Send `call(index)` for every index below `count`; yield what `read(index, reply)` makes of each.

        A call is made only when it is about to be sent, so that a hundred thousand prompts are never in memory at once.
        """
        meter = current_meter()  # of the thread that asks: requests are sent by another one

        async def job(client: httpx.AsyncClient, index: int) -> Outcome:
            return await self._answer(client, call(index), partial(read, index), meter)

        return self._unless_hopeless(stream(count, job, self.wire.open, self.concurrency))

    def _unless_hopeless(self, replies: Generator[tuple[int, Outcome]]) -> Iterator[tuple[int, Outcome]]:
        """Hold refusals back until a call is answered: a run in which all are refused ends and records none of them."""
        held: list[tuple[int, Outcome]] = []
        with closing(replies):
            for reply in replies:
                held.append(reply)
                if self._answered or _alike(reply[1].reason) not in self._refusals:
                    yield from held
                    held.clear()
        yield from held

    async def _answer(
        self, client: httpx.AsyncClient, call: Call, read: Callable[[Completion], Outcome], meter: Meter | None
    ) -> Outcome:
        try:
            completion = await self._complete(client, call, meter)
        except Fault as error:
            return Outcome.failed(error.reason)
        except StatusRefused as error:
            self._count(error)
            return Outcome.failed(error.reason)
        self._answered = True
        if len(completion.text) > _MOST_CHARACTERS:
            said = f"a text of {len(completion.text):,} characters, over the limit of {_MOST_CHARACTERS:,}"
            return Outcome.failed(said, **completion.usage)
        if completion.finish == "refused":
            return Outcome.invalid("refused", raw=completion.text, **completion.usage)
        return read(completion)

    async def _complete(self, client: httpx.AsyncClient, call: Call, meter: Meter | None) -> Completion:
        """Ask until the endpoint takes the parameters; each that it refuses is learned once."""
        before = None
        while True:
            fitted = self._fitted(call)
            body = {**self.dialect.request(self.model, fitted), **self._body}
            try:
                bill = None if meter is None else Bill(meter, self._most_usd(body))
                reply = await self.wire.send(client, self.dialect.path(self.model), self.dialect.body, body, bill)
            except StatusRefused as error:
                if not self._learn(error, call, fitted):
                    raise
                continue
            said = self._cleared(self.dialect.read(reply.body))
            if meter is not None and reply.number is not None:
                self._settle(meter, reply.number, said, call.prompt)
            completion = self._completion(said, reply.latency_ms, call.prompt, before)
            limit = fitted.parameters.get("max_tokens")
            cut = completion.finish == "length" and completion.thought and not completion.text.strip()
            if not (cut and limit == _SPEAKING and before is None):
                return completion
            self._room = _THINKING
            self._learned["room"] = (
                f"the model thinks: up to {_THINKING:,} tokens were allowed in place of {_SPEAKING:,}"
            )
            before = completion  # it was paid for

    def _settle(self, meter: Meter, number: int, said: Said, prompt: Prompt) -> None:
        """Tell the meter what a reply cost; where the server does not say, it may be all that was announced."""
        if said.tokens_in and (said.tokens_out or not said.text):
            meter.settle(number, self._cost_usd(said, prompt))
        else:
            meter.abandon(number)

    def _cleared(self, said: Said) -> Said:
        """Remove the key from a reply, which a server may have sent in pieces that only together are one."""
        return said if said.text is None else said._replace(text=self.wire.without_key(said.text))

    def _fitted(self, call: Call) -> Call:
        """A call as this endpoint takes it."""
        parameters: dict[str, Any] = {}
        for name, value in call.parameters.items():
            if name == "max_tokens" and self._room and value == _SPEAKING:
                value = self._room
            if name in _DISPENSABLE and (name in self._learned or name not in self.dialect.abilities):
                continue
            parameters[_OTHER_WORD[name] if name in _OTHER_WORD and name in self._learned else name] = value
        return call._replace(parameters=parameters)

    def _learn(self, error: StatusRefused, call: Call, fitted: Call) -> bool:
        """Whether a refusal names a parameter that can be left out or said otherwise."""
        said = _complaint(error.text)
        if error.status not in _REFUSING or not _UNSUPPORTED.search(said):
            return False
        named = set(re.findall(r"[A-Za-z_]+", said))
        if "max_tokens" in fitted.parameters and "max_completion_tokens" in named:
            self._learned["max_tokens"] = "'max_completion_tokens' was sent in place of 'max_tokens'"
            return True
        for name, words in _DISPENSABLE.items():
            if not named & set(words) or name not in call.parameters:
                continue
            if name not in fitted.parameters:
                return False
            if name == "schema" and self._structured == "json-schema":
                raise ModelError(
                    f"{self.wire.base_url} refuses the schema: {error.reason}",
                    hint="--structured off reads the verdict from text",
                ) from error
            why = {"temperature": "so the judge samples", "schema": "verdicts are read from text"}.get(name, "")
            self._learned[name] = f"{name!r} was left out, which the endpoint refuses" + (f": {why}" if why else "")
            return True
        return False

    def _count(self, error: StatusRefused) -> None:
        """End the run where every first call is refused for one reason: the others would be, too."""
        if self._answered or error.status not in _REFUSING:
            return
        reason = _alike(error.reason)
        self._refusals[reason] = self._refusals.get(reason, 0) + 1
        if self._refusals[reason] >= _HOPELESS:
            raise ModelError(
                f"{self.wire.base_url} refuses every call: {error.reason}",
                hint="check the name of the model and what --body, --temperature and --max-tokens send",
            )

    def _completion(self, said: Said, latency_ms: float, prompt: Prompt, before: Completion | None) -> Completion:
        usage = self._usage(said, latency_ms, prompt)
        self._thought_tokens += said.tokens_thought
        self._written_tokens += said.tokens_out
        if before is not None:
            usage = {name: value + before.usage[name] for name, value in usage.items()}
        text = said.text or ""
        if said.finish == "length" and "<think" in text and "</think" not in text:
            text = ""  # all of it was thought
        # Tokens that were spent on no text were spent on thoughts, also where the endpoint does not show them.
        thought = said.thought or (said.finish == "length" and not text.strip())
        finish = "refused" if said.finish == "refused" or (said.text is None and said.finish == "stop") else said.finish
        return Completion(text, finish, usage, thought, said.tokens)

    def _usage(self, said: Said, latency_ms: float, prompt: Prompt) -> dict[str, float]:
        if said.tokens_cached is not None:
            self.effort.naive_tokens += said.tokens_in
            self.effort.computed_tokens += said.tokens_in - said.tokens_cached
        return {
            "tokens_in": said.tokens_in,
            "tokens_out": said.tokens_out,
            "tokens_cached": said.tokens_cached or 0,
            "tokens_stored": said.tokens_stored,
            "latency_ms": latency_ms,
            "cost_usd": self._cost_usd(said, prompt),
        }

    def _cost_usd(self, said: Said, prompt: Prompt) -> float:
        if self.price is None:
            return 0.0
        # A server that reports no usage must not make an answer look free.
        tokens_in = said.tokens_in or estimate_tokens(prompt)
        tokens_out = said.tokens_out or _tokens(said.text or "")
        return self.price.cost_usd(tokens_in, tokens_out, said.tokens_cached or 0, said.tokens_stored)

    def _most_usd(self, body: Mapping[str, Any]) -> float:
        """The most that a request can cost: every byte of it a token, and a reply of the longest length allowed."""
        if self.price is None:
            return 0.0
        size = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        numbers = list(_numbers(body))
        limits = [value for name, value in numbers if name in _LENGTH_LIMITS]
        replies = max((value for name, value in numbers if name in _REPLIES), default=1)
        return self.price.most_usd(size, max(limits, default=_THINKING) * max(1, replies))


def _alike(reason: str) -> str:
    """A refusal without its numbers: two that differ in nothing else have one cause."""
    return re.sub(r"[0-9]+", "#", reason)[:120]


def _numbers(body: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The whole numbers of a request by name, at any depth."""
    for name, value in body.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield name, value


def _complaint(text: str) -> str:
    """Return what an error reply says of the request, without its general kind (`invalid_request_error`)."""
    try:
        value = json.loads(text)
    except ValueError:
        return text[:_LONGEST_COMPLAINT]
    found: list[str] = []

    def gather(value: Any, key: str = "") -> None:
        if isinstance(value, dict):
            for name, one in value.items():
                gather(one, name)
        elif isinstance(value, list):
            for one in value:
                gather(one, key)
        elif isinstance(value, str) and key not in ("type", "status"):
            found.append(value)

    gather(value)
    return " ".join(found)[:_LONGEST_COMPLAINT]


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
