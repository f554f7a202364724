"""The HTTP face: routes, who may ask, how much may be sent, and which status says what.

    POST   /score                    items in, one score or error for each, in their order
    POST   /rank                     the answers to one question, scored together
    POST   /get_reward               the same in OpenRLHF's form
    GET POST DELETE /users/ID/feedback   what a user has judged; one more judgment; forget
    GET    /health  /metrics

200: every item has a score. 207: some have, the others say why not. 413, 422 and 500: none has, because the items are
too large or cannot be scored, or because the model failed. 400, 401, 404, 405, 408, 409, 413, 415, 421: the request
itself. 503 with Retry-After: later. In no case does an error carry a number.
"""

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from prbench.serve.batching import OverloadedError
from prbench.serve.items import (
    BadRequestError,
    Body,
    FeedbackRequest,
    ItemError,
    RemoteRewardRequest,
    Scored,
    ScoreItem,
    ScoreRequest,
    TooManyError,
    entry,
    parse,
)
from prbench.serve.lists import RankRequest
from prbench.serve.metrics import CONTENT_TYPE
from prbench.serve.rollout import items_of
from prbench.serve.service import (
    ListsOnlyError,
    NotAdaptiveError,
    RefusedJudgmentError,
    RewardService,
    ScoredReply,
    TooLargeError,
    UnusedFeedbackError,
)
from prbench.types import Judgment
from prbench.web import is_loopback

_LOG = logging.getLogger(__name__)
_BODY_S = 30.0
"""The longest that sending a body may take."""
_SMALL_BODY = 65536
"""Bytes up to which a body is read at once, in a few milliseconds at most."""
_STATUS_OF = {
    BadRequestError: (400, "request"),
    ListsOnlyError: (409, "lists-only"),
    NotAdaptiveError: (501, "not-adaptive"),
    RefusedJudgmentError: (409, "model"),
    TooLargeError: (413, "too-large"),
    TooManyError: (413, "items"),
    UnusedFeedbackError: (409, "context"),
}

Result = TypeVar("Result")
Endpoint = Callable[[Request], Awaitable[Response]]


class HttpError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, kind: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.headers = status, kind, message, headers


class Door(NamedTuple):
    """Limits at the entrance: the token, the host names and the size of a body."""

    token: str | None = None
    loopback: bool = True
    """Whether the server is bound to this machine only, and so answers to its names only."""
    max_body: int = 16 * 2**20


class _Gone(Exception):
    """The client did not wait for its answer."""


def make_app(service: RewardService, door: Door) -> Starlette:
    """The application for one service."""
    face = _Face(service, door)
    feedback = "/users/{user:path}/feedback"
    return Starlette(
        routes=[
            Route("/score", face.guarded(face.score, "/score"), methods=["POST"]),
            Route("/rank", face.guarded(face.rank, "/rank"), methods=["POST"]),
            Route("/get_reward", face.guarded(face.get_reward, "/get_reward"), methods=["POST"]),
            Route(feedback, face.guarded(face.judge, "/feedback"), methods=["POST"]),
            Route(feedback, face.guarded(face.judged, "/feedback"), methods=["GET"]),
            Route(feedback, face.guarded(face.forget, "/feedback"), methods=["DELETE"]),
            Route("/metrics", face.guarded(face.metrics, "/metrics"), methods=["GET"]),
            Route("/health", face.guarded(face.health, "/health", public=True), methods=["GET"]),
        ],
        exception_handlers={HTTPException: _nothing_there},
    )


class _Face:
    """Endpoints of the service."""

    def __init__(self, service: RewardService, door: Door) -> None:
        self._service = service
        self._door = door
        self._reading = asyncio.Semaphore(2)

    def guarded(self, endpoint: Endpoint, path: str, *, public: bool = False) -> Endpoint:
        """An endpoint behind the door: checked, counted, and with every error as an HTTP error."""

        async def guarded(request: Request) -> Response:
            began = time.perf_counter()
            try:
                self._check_name(request)
                if not public and not self._known(request):
                    raise HttpError(401, "token", "send the token: Authorization: Bearer …", **_CHALLENGE)
                response = await endpoint(request)
            except Exception as error:
                response = self._refused(error)
            self._service.metrics.requests.labels(path, response.status_code).inc()
            self._service.metrics.request_seconds.observe(time.perf_counter() - began)
            return response

        return guarded

    async def score(self, request: Request) -> Response:
        """Score a batch of items."""
        asked = await self._in_thread_if_large(partial(self._parsed, ScoreRequest), await self._body(request))
        return _scores(await _unless_gone(request, self._service.score(asked.items, _patience_s(request))))

    async def rank(self, request: Request) -> Response:
        """Score the answers to one question together."""
        asked = await self._in_thread_if_large(partial(self._parsed, RankRequest), await self._body(request))
        return _scores(await _unless_gone(request, self._service.rank(asked, _patience_s(request))))

    async def get_reward(self, request: Request) -> Response:
        """Score for OpenRLHF, whose client knows only success and failure: one item without a score fails all."""
        items = await self._in_thread_if_large(self._remote_items, await self._body(request))
        scored, _ = await _unless_gone(request, self._service.score(items, _patience_s(request)))
        for place, one in enumerate(scored):
            if isinstance(one, ItemError):
                raise HttpError(_status([one]), one.kind, f"query[{place}]: {one.message}")
        return JSONResponse({"rewards": scored, "scores": scored, "extra_logs": {}})

    async def judge(self, request: Request) -> Response:
        """Learn from one judgment."""
        user = _user(request)
        asked = await self._in_thread_if_large(partial(self._parsed, FeedbackRequest), await self._body(request))
        if asked.chosen == asked.rejected:
            raise BadRequestError("chosen and rejected are the same text")
        count = await self._service.adapt(user, Judgment.model_validate(asked.model_dump()))
        return JSONResponse({"user": user, "count": count})

    async def judged(self, request: Request) -> Response:
        """Return the judgments of a user."""
        user = _user(request)
        found = [judgment.model_dump() for judgment in self._service.judged(user)]
        return JSONResponse({"user": user, "count": len(found), "judgments": found})

    async def forget(self, request: Request) -> Response:
        """Forget all judgments of a user."""
        user = _user(request)
        return JSONResponse({"user": user, "forgotten": await self._service.forget(user)})

    async def health(self, request: Request) -> Response:
        """Return the model's description and state; without the token only the state."""
        health = self._service.health()
        shown = health if self._known(request) else {"status": health["status"]}
        return JSONResponse(shown, 200 if health["status"] == "ready" else 503)

    async def metrics(self, request: Request) -> Response:
        """Return all that was counted."""
        return Response(self._service.metrics.text(), headers={"content-type": CONTENT_TYPE})

    def _known(self, request: Request) -> bool:
        if self._door.token is None:
            return True
        sent = request.headers.get("authorization", "").encode("latin-1", "replace")
        return hmac.compare_digest(sent, f"Bearer {self._door.token}".encode())

    def _check_name(self, request: Request) -> None:
        """Refuse names other than this machine's on loopback: a foreign page's name may have been rebound to it."""
        sent = request.headers.get("host", "")
        try:
            name = urlsplit(f"//{sent}").hostname or ""
        except ValueError:
            raise HttpError(400, "host", f"{sent!r} is no host") from None
        if self._door.loopback and not is_loopback(name):
            raise HttpError(421, "host", f"this server does not answer to {name!r}")

    async def _body(self, request: Request) -> bytes:
        """The body, never more of it than is allowed."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # also keeps out what a foreign page can send without being asked
            raise HttpError(415, "content-type", f"the body should be application/json, not {kind!r}")
        try:
            async with asyncio.timeout(_BODY_S):
                return await self._read(request)
        except TimeoutError:
            raise HttpError(408, "slow", f"the body did not come within {_BODY_S:g} s", Connection="close") from None

    async def _read(self, request: Request) -> bytes:
        body = bytearray()
        promised = request.headers.get("content-length", "0")
        if int(promised) > self._door.max_body:
            raise self._too_large()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._door.max_body:
                raise self._too_large()
        return bytes(body)

    async def _in_thread_if_large(self, read: Callable[[bytes], Result], body: bytes) -> Result:
        """Read a body; a large one is read in a thread, so that no other client waits for it."""
        if len(body) <= _SMALL_BODY:
            return read(body)
        async with self._reading:
            return await asyncio.to_thread(read, body)

    def _parsed(self, schema: type[Body], body: bytes) -> Body:
        return parse(schema, body, self._service.bounds)

    def _remote_items(self, body: bytes) -> list[ScoreItem]:
        asked = self._parsed(RemoteRewardRequest, body)
        return items_of(asked.query, asked.prompts, asked.labels, self._service.bounds)

    def _too_large(self) -> HttpError:
        return HttpError(413, "body", f"the body is over {self._door.max_body} bytes", Connection="close")

    def _refused(self, error: Exception) -> Response:
        if isinstance(error, OverloadedError):
            wait = str(self._service.batcher.retry_after_s)
            error = HttpError(503, "overloaded", str(error), **{"Retry-After": wait})
        if isinstance(error, _Gone | ClientDisconnect):
            error = HttpError(499, "disconnected", "the client went away")
        for known, (status, kind) in _STATUS_OF.items():
            if isinstance(error, known):
                error = HttpError(status, kind, str(error))
        if not isinstance(error, HttpError):
            _LOG.error("a request failed", exc_info=error)  # there in full; what is inside is not the client's to read
            error = HttpError(500, "internal", "something went wrong in the server; its log says what")
        self._service.metrics.errors.labels(error.kind).inc()
        return _told(error)


def _told(error: HttpError) -> Response:
    return JSONResponse({"error": {"kind": error.kind, "message": error.message}}, error.status, error.headers)


async def _nothing_there(request: Request, error: Exception) -> Response:
    """A path or a method that there is not, told like any other error."""
    known = cast(HTTPException, error)
    message = f"there is no {request.method} {request.scope['path']}"
    return _told(HttpError(known.status_code, "path", message, **(known.headers or {})))


_WAIT = re.compile(r"(?:^|,)\s*wait\s*=\s*(\d{1,6})\b", re.IGNORECASE)
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


def _scores(reply: ScoredReply) -> Response:
    """The reply to items or to a list: scores in their order, and beside them why one is missing."""
    body = {
        "revision": reply.revision,
        "scores": [None if isinstance(one, ItemError) else one for one in reply.scored],
        "items": [*map(entry, reply.scored)],
    }
    return JSONResponse(body, _status(reply.scored))


def _status(scored: Sequence[Scored]) -> int:
    """200 if every item has a score, 207 if some have, else whose fault it is."""
    errors = [one for one in scored if isinstance(one, ItemError)]
    if not errors:
        return 200
    if len(errors) < len(scored):
        return 207
    kinds = {error.kind for error in errors}
    return 500 if "failed" in kinds else 413 if kinds == {"too-large"} else 422


def _patience_s(request: Request) -> float | None:
    """Return the seconds that the client says it waits: `Prefer: wait=SECONDS` (RFC 7240)."""
    found = _WAIT.search(request.headers.get("prefer", ""))
    return float(found[1]) if found else None


def _user(request: Request) -> str:
    if user := str(request.path_params["user"]):
        return user
    raise BadRequestError("the path names no user: it should be /users/NAME/feedback")


async def _unless_gone(request: Request, work: Awaitable[ScoredReply]) -> ScoredReply:
    """Wait for scores only as long as the client does; items that no client waits for are taken out of the queue."""
    scoring = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_leaving(request))
    await asyncio.wait({scoring, leaving}, return_when=asyncio.FIRST_COMPLETED)
    leaving.cancel()
    if not scoring.done():
        scoring.cancel()
        raise _Gone
    if scoring.cancelled():
        raise OverloadedError("the server has stopped")
    return scoring.result()


async def _leaving(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
