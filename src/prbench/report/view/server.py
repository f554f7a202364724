"""The server of the viewer: loopback only, GET only, its own name only."""

import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import uvicorn

from prbench.errors import ConfigError
from prbench.report.view.live import LivePages, page_policy
from prbench.web import LOOPBACK, listen, server_config

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_NOTHING = "default-src 'none'; frame-ancestors 'none'"
_TICK_S = 0.02

Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class Server:
    """Serves the pages of some runs on this machine; made by `serve`.

    Args:
        live: The pages.
        listener: The socket it answers on.
    """

    def __init__(self, live: LivePages, listener: socket.socket) -> None:
        self.live = live
        self.server_address: tuple[str, int] = listener.getsockname()
        self._hosts = {f"{name}:{self.port}".encode() for name in (LOOPBACK, "localhost")}

    @property
    def port(self) -> int:
        """Port where the server listens."""
        return self.server_address[1]

    @property
    def url(self) -> str:
        """The address to open."""
        return f"http://{LOOPBACK}:{self.port}/"

    async def __call__(self, scope: Mapping[str, Any], receive: object, send: Send) -> None:
        """Answer one request with a page, the progress, or why not."""
        if scope["type"] != "http":
            return
        if scope["method"] != "GET":
            await _send(send, HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", "only GET is answered\n", close=True)
        elif dict(scope["headers"]).get(b"host", b"") not in self._hosts:  # also a name rebound to this machine
            await _send(
                send, HTTPStatus.MISDIRECTED_REQUEST, "text/plain", "this server answers to its own name only\n"
            )
        elif scope["path"] == "/progress.json":
            await _send(send, HTTPStatus.OK, "application/json", self._progress())
        elif scope["path"] in self.live.pages:
            page = self.live.pages[scope["path"]]
            await _send(send, HTTPStatus.OK, "text/html", page, page_policy(page))
        else:
            await _send(send, HTTPStatus.NOT_FOUND, "text/plain", "there is no such page\n")

    def _progress(self) -> str:
        runs = [run._asdict() for run in self.live.progress()]
        data = {"version": self.live.version, "problem": self.live.problem, "runs": runs}
        return json.dumps(data, ensure_ascii=False)


@contextmanager
def serve(live: LivePages, port: int = 0) -> Iterator[Server]:
    """Serve in threads of their own until the block ends.

    Args:
        live: The pages, which are kept up to date meanwhile.
        port: Where; if it is taken, any free one.
    """
    try:
        listener = listen(LOOPBACK, port)
    except OSError:
        listener = listen(LOOPBACK, 0)
    server = Server(live, listener)
    process = uvicorn.Server(server_config(server, timeout_graceful_shutdown=1))
    threads = [
        threading.Thread(target=process.run, kwargs={"sockets": [listener]}, daemon=True),
        threading.Thread(target=live.follow, daemon=True),
    ]
    with listener:
        for thread in threads:
            thread.start()
        try:
            while not process.started and threads[0].is_alive():
                time.sleep(_TICK_S)
            if not process.started:
                raise ConfigError("the viewer did not start")
            yield server
        finally:
            live.stop()
            process.should_exit = True
            for thread in threads:
                thread.join(timeout=5)


async def _send(
    send: Send, status: HTTPStatus, kind: str, text: str, policy: str = _NOTHING, *, close: bool = False
) -> None:
    body = text.encode()
    headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body)), **_HEADERS}
    headers |= {"Content-Security-Policy": policy, **({"Connection": "close"} if close else {})}
    encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status.value, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
