"""Requests to a model server, with one retry layer; shared by `chat:` and `http:`.

What passes (429, 408, 5xx, time-outs, lost connections, replies that are not what was agreed) is tried again with
back-off and jitter; what does not is a `StatusRefused`, and both end as an outcome of status failed, never as a score.
Only a server that has never answered and that nothing can be asked of raises a `ModelError`. The key is sent, and
appears nowhere else: not in an address, not in a message, and every reply is cleared of it before it is read, for a
server may echo it. A reply is read no further than a bound on its decoded bytes.
"""

import asyncio
import email.utils
import logging
import random
import time
import zlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from prbench.errors import AddressError, MissingExtraError, ModelError
from prbench.models.meter import Meter
from prbench.models.remote.secret import SecretKey

try:
    import httpx
    import stamina
except ImportError as missing:
    raise MissingExtraError("a model behind an address with a URL", "api") from missing

# Without a handler of the application's own, Python would print every retry over the progress bar.
logging.getLogger("stamina").addHandler(logging.NullHandler())
# These log what a server says in its status line and headers, which may be the key; an application may still ask them.
for _talker in map(logging.getLogger, ("httpx", "httpcore")):
    _talker.setLevel(_talker.level or logging.WARNING)

_PASSING = frozenset({408, 429})
_TURNED_AWAY = frozenset({429, 503, 529})
"""Passing faults of a server that did not begin: it has too many requests. After any other it may have done the work,
and a provider may bill it."""
_UNUSABLE = {
    401: "the server does not accept {key}",
    403: "the server does not open this model to {key}",
    404: "check the path of the URL and the name of the model",
}
MAX_REPLY_BYTES = 8 * 2**20
"""The longest reply that is read, decoded; a verdict has some kilobytes."""
_DECODERS = {"": None, "identity": None, "gzip": 31, "x-gzip": 31, "deflate": 47}


class Backoff(NamedTuple):
    """Waiting time before a request is sent again: `initial_s`, doubled each time, plus jitter."""

    initial_s: float = 0.5
    max_s: float = 30.0
    jitter_s: float = 1.0
    retry_after_max_s: float = 60.0
    """The longest wait that a server may ask for."""


PATIENT = Backoff()


class Fault(Exception):
    """Something that may pass: worth another try."""

    def __init__(
        self, reason: str, retry_after_s: float | None = None, reached: bool = True, free: bool = False
    ) -> None:
        super().__init__(reason)
        self.free = free or not reached
        """Whether the request is known to have cost nothing: no server, or one that turned it away."""
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.reached = reached
        """Whether there was a server at all."""


class StatusRefused(Exception):
    """A status that another try would not change."""

    def __init__(self, reason: str, status: int, text: str = "") -> None:
        super().__init__(reason)
        self.free = not 200 <= status < 300
        """Whether the request is known to have cost nothing."""
        self.reason = reason
        self.status = status
        self.text = text
        """Text of the whole reply."""


Payload = TypeVar("Payload", bound=BaseModel)


class WireReply(NamedTuple, Generic[Payload]):
    """A reply of the agreed form."""

    body: Payload
    latency_ms: float
    """Latency of the attempt that succeeded; waiting and failed attempts are not the model's time."""
    number: int | None = None
    """Number by which the meter knows the attempt; its cost is still to be settled."""


class Bill(NamedTuple):
    """The price of a request, announced to a meter each time that it is sent."""

    meter: Meter
    most_usd: float

    def begin(self, *, again: bool) -> int:
        """Announce an attempt; returns the number under which its cost is settled."""
        return self.meter.begin(self.most_usd, again=again)

    def end(self, number: int, error: BaseException) -> None:
        """Close an attempt that brought no reply: it was free, or may have cost all that was announced."""
        if isinstance(error, Fault | StatusRefused) and error.free:
            self.meter.settle(number, 0.0)
        else:
            self.meter.abandon(number)


class _Received(NamedTuple):
    """One reply, decoded and without the key."""

    status: int
    body: bytes
    retry_after_s: float | None

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


def _bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"}


class Wire:
    """Connection to one server: its address, how to show who we are, how patient to be.

    Args:
        base_url: Checked by `clean_url`.
        key_variable: The environment variable with a key to send as bearer token; there need not be one.
        timeout_s: The most that one attempt may take, from connecting to the last byte.
        retries: How often a request that met a passing fault is sent again.
        backoff: How long to wait before that.
        headers: Makes the headers that carry the key.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout_s: float,
        retries: int,
        backoff: Backoff = PATIENT,
        key_variable: str | None = None,
        headers: Callable[[str], Mapping[str, str]] = _bearer,
    ) -> None:
        self.base_url = base_url
        self._key = SecretKey(key_variable)
        self._headers = headers
        self._timeout_s = timeout_s
        self._attempts = retries + 1
        self._backoff = backoff
        self._answered = False

    def open(self) -> httpx.AsyncClient:
        """A client for one event loop."""
        headers = {"Accept-Encoding": "gzip, deflate"}
        if self._key.value:
            headers |= self._headers(self._key.value)
        # No limit on connections here: the stream bounds how many requests are under way.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        return httpx.AsyncClient(headers=headers, timeout=self._timeout_s, limits=limits, verify=self._certificates)

    async def send(
        self,
        client: httpx.AsyncClient,
        path: str,
        schema: type[Payload],
        body: Mapping[str, Any] | None = None,
        bill: "Bill | None" = None,
    ) -> WireReply[Payload]:
        """Post `body` (get where there is none) until a reply fits `schema`.

        Every attempt is announced by the bill; one that may have been paid for though no reply was read is abandoned.

        Raises:
            BudgetError: If nothing more may be spent.
            Fault: If no attempt brought such a reply.
            StatusRefused: If this request will never be answered.
            ModelError: If the server has never answered anything and cannot be asked at all.
        """
        try:
            reply = await self._persist(client, path, schema, body, bill)
        except (Fault, StatusRefused) as error:
            if not self._answered:
                self._give_up(error)
            raise
        self._answered = True
        return reply

    async def _persist(
        self,
        client: httpx.AsyncClient,
        path: str,
        schema: type[Payload],
        body: Mapping[str, Any] | None,
        bill: "Bill | None",
    ) -> WireReply[Payload]:
        attempts = stamina.retry_context(
            on=self._again,
            attempts=self._attempts,
            timeout=None,
            wait_initial=self._backoff.initial_s,
            wait_max=self._backoff.max_s,
            wait_jitter=self._backoff.jitter_s,
        )
        async for attempt in attempts:
            with attempt:
                number = bill.begin(again=attempt.num > 1) if bill is not None else None
                start = time.perf_counter()
                try:
                    received = await self._once(client, path, body)
                    payload = self._read(received, schema)
                except BaseException as error:  # also what is cancelled may have been paid for
                    if bill is not None and number is not None:
                        bill.end(number, error)
                    if isinstance(error, Fault | StatusRefused):
                        self._clear(error)
                    raise
                return WireReply(payload, (time.perf_counter() - start) * 1e3, number)
        raise AssertionError("the last attempt neither returned nor raised")

    def _again(self, error: Exception) -> bool | float:
        if not isinstance(error, Fault) or error.retry_after_s is None:
            return isinstance(error, Fault)
        jitter_s = random.uniform(0, self._backoff.jitter_s)  # noqa: S311  # spreads requests, guards nothing
        return min(error.retry_after_s, self._backoff.retry_after_max_s) + jitter_s

    async def _once(self, client: httpx.AsyncClient, path: str, body: Mapping[str, Any] | None) -> "_Received":
        method = "GET" if body is None else "POST"
        try:
            # The client's own limit is per read: a server that drips bytes would never meet it.
            async with (
                asyncio.timeout(self._timeout_s),
                client.stream(method, self.base_url + path, json=body) as response,
            ):
                sent = await _decoded(response, self._key.hidden)
        except (TimeoutError, httpx.TimeoutException) as error:
            reached = not isinstance(error, httpx.ConnectTimeout)
            raise Fault(f"no answer within {self._timeout_s:g} s", reached=reached) from error
        except httpx.ConnectError as error:
            raise Fault(f"cannot connect: {error}", reached=False) from error
        except httpx.RequestError as error:
            raise Fault(f"connection lost: {type(error).__name__}") from error
        except zlib.error as error:
            raise Fault("the reply's compression is damaged") from error
        return _Received(response.status_code, self._key.cleared(sent), _retry_after_s(response))

    def _read(self, received: "_Received", schema: type[Payload]) -> Payload:
        status = received.status
        if status in _PASSING or status >= 500:
            free = status in _TURNED_AWAY
            raise Fault(_describe(received), retry_after_s=received.retry_after_s, free=free)
        if not 200 <= status < 300:
            raise StatusRefused(_describe(received), status, received.text)
        try:
            return schema.model_validate_json(received.body)
        except ValidationError as error:
            raise Fault(_schema_reason(error)) from error

    def without_key(self, text: str) -> str:
        """A text of the server's without the key."""
        return self._key.hidden(text)

    def _clear(self, error: "Fault | StatusRefused") -> None:
        """Take the key out of what an error says: its words may come from several places of a reply."""
        error.reason = self._key.hidden(error.reason)
        error.args = (error.reason,)

    def _give_up(self, error: Fault | StatusRefused) -> None:
        if isinstance(error, StatusRefused) and error.status in _UNUSABLE:
            raise ModelError(f"{self.base_url} answered {error.reason}", hint=self._hint(error.status)) from error
        if isinstance(error, Fault) and not error.reached:
            raise ModelError(
                f"{self.base_url} cannot be reached: {error.reason}",
                hint="check the URL and that the server is running",
            ) from error

    def _hint(self, status: int) -> str:
        named = self._key.variable
        unset = f"a request without a key: set {named}" if named else "a request without a key"
        return _UNUSABLE[status].format(key=f"the key in {named}" if self._key.value else unset)

    @cached_property
    def _certificates(self) -> Any:
        return httpx.create_ssl_context()


def clean_url(url: str, address: str) -> str:
    """Check a base URL and take off its last slash.

    Example:
        >>> clean_url("http://127.0.0.1:8000/v1/", "chat:m@…")
        'http://127.0.0.1:8000/v1'
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        shown = url.rpartition("@")[2]  # what stands before may be a password
        raise AddressError(f"{shown!r} in {address!r} is not a URL", hint="for example http://127.0.0.1:8000/v1")
    if parts.username is not None or parts.query or parts.fragment:
        # The URL is written into every record, so it may not carry a secret, and neither may this message.
        raise AddressError(
            f"the URL of host {parts.hostname!r} has a user, a query or a fragment",
            hint="give only scheme, host, port and path; the key of chat: belongs into OPENAI_API_KEY",
        )
    return url.rstrip("/")


async def _decoded(response: httpx.Response, without_key: Callable[[str], str]) -> bytes:
    """The whole body, decoded piece by piece so that a small reply cannot become a large one unseen."""
    named = response.headers.get("Content-Encoding", "").strip()
    encoding = named.lower()
    if encoding not in _DECODERS:
        shown = without_key(named)[:40]  # in this order: a part of the key would not be known for one
        raise StatusRefused(f"HTTP {response.status_code}: a reply encoded as {shown!r}", response.status_code)
    bits = _DECODERS[encoding]
    decoder = zlib.decompressobj(bits) if bits is not None else None
    body = bytearray()
    async for piece in response.aiter_raw(2**16):
        body += decoder.decompress(piece, MAX_REPLY_BYTES + 1 - len(body)) if decoder else piece
        if len(body) > MAX_REPLY_BYTES:
            said = f"a reply of more than {MAX_REPLY_BYTES // 2**20} MiB"
            raise StatusRefused(f"HTTP {response.status_code}: {said}", response.status_code)
    return bytes(body)


def _describe(received: _Received) -> str:
    said = " ".join(received.text[:2000].split())
    return f"HTTP {received.status}: {said[:200]}" if said else f"HTTP {received.status}"


def _retry_after_s(response: httpx.Response) -> float | None:
    """Seconds or a date (RFC 9110, 10.2.3); None where there is neither."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _schema_reason(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return "the reply is not JSON"
    place = ".".join(str(step) for step in first["loc"]) or "the reply"
    return f"the reply does not fit the schema at {place}: {first['msg']}"
