"""The server: loopback only, GET only, its own name only."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from prbench.report.view.live import Live, page_policy

LOOPBACK = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_NOTHING = "default-src 'none'; frame-ancestors 'none'"


class Server(ThreadingHTTPServer):
    """Serves the pages of some runs on this machine.

    Args:
        live: The pages.
        port: Where; if it is taken, any free one.
    """

    daemon_threads = True
    # A viewer that is started again finds its port; on Windows two could listen there and answer for each other.
    allow_reuse_address = os.name == "posix"

    def __init__(self, live: Live, port: int = 0) -> None:
        self.live = live
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError:
            super().__init__((LOOPBACK, 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away while it was answered is nobody's fault; anything else keeps its traceback."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address to open."""
        return f"http://{LOOPBACK}:{self.port}/"


@contextmanager
def serve(live: Live, port: int = 0) -> Iterator[Server]:
    """Serve in threads of their own until the block ends."""
    with Server(live, port) as server:
        works = (partial(server.serve_forever, poll_interval=0.1), live.follow)
        threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield server
        finally:
            live.stop()
            server.shutdown()
            for thread in threads:
                thread.join(timeout=5)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "prbench"
    sys_version = ""

    def parse_request(self) -> bool:
        """Read the request; nothing but GET goes any further."""
        if not super().parse_request():
            return False
        if self.command != "GET":
            self.close_connection = True
            self._send(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", "only GET is answered\n")
            return False
        return True

    def do_GET(self) -> None:
        """Answer with a page or the progress."""
        if not self._named():
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", "this server answers to its own name only\n")
            return
        address, live = urlsplit(self.path).path, self.server.live
        if address == "/progress.json":
            runs = [run._asdict() for run in live.progress()]
            data = {"version": live.version, "problem": live.problem, "runs": runs}
            self._send(HTTPStatus.OK, "application/json", json.dumps(data, ensure_ascii=False))
        elif address in live.pages:
            page = live.pages[address]
            self._send(HTTPStatus.OK, "text/html", page, page_policy(page))
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "there is no such page\n")

    def _named(self) -> bool:
        """Whether the request is for us by name: a name rebound to this machine is refused."""
        hosts = {f"{name}:{self.server.port}" for name in (LOOPBACK, "localhost")}
        return self.headers.get("Host", "") in hosts

    def _send(self, status: HTTPStatus, kind: str, text: str, policy: str = _NOTHING) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the user."""
