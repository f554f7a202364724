"""Guard of every page: the server's own name only, headers that let nothing in, requests of bounded size."""

from collections.abc import Collection
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prbench.annotate.answer import Form

MAX_BODY = 2_000_000
MAX_FIELDS = 500
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # not no-referrer, under which a browser hides the origin of our own forms
    "X-Content-Type-Options": "nosniff",
}


class UnreadableForm(Exception):
    """A request that is no form of ours: too long, or damaged."""


class Guard:
    """Answers to its own hosts only, takes forms from its own pages only, and puts the headers on everything.

    Args:
        app: Application that is guarded.
        hosts: The names and ports under which it may be asked for; a name rebound to this machine is refused.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with headers added."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self._hosts:
            return PlainTextResponse("this server answers to its own name only\n", 421)
        origin = headers.get("origin")
        if scope["method"] == "POST" and origin is not None and origin.partition("://")[2] not in self._hosts:
            return PlainTextResponse("forms are taken from this server's own pages only\n", 403)
        return None


async def read_form(request: Request) -> Form:
    """The fields of a form; a body that is too long is not read to its end.

    Raises:
        UnreadableForm: If it is.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise UnreadableForm
    try:
        return parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError as error:  # not UTF-8, or more fields than any form here has
        raise UnreadableForm from error
