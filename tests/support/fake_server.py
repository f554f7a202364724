"""A real HTTP server on loopback that answers like a model server and goes wrong on request.

It speaks POST {url}/v1/chat/completions (text from `answer`) and, for served reward models, GET /health and POST /score
(numbers from `score`). A `plan` decides for every request which fault, if any, it meets. All requests are kept, so that
a test can assert what really arrived. It binds a free port of 127.0.0.1 and ends with its `with` block.
"""

import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple, Self

Kind = Literal[
    "status",  # answers with `status` (and `retry_after`, and `body`)
    "hang",  # says nothing until the server stops
    "slow",  # answers correctly, after `seconds`
    "drip",  # sends its headers and then byte after byte for ever
    "half_json",  # a whole reply that holds half a JSON text
    "half_sent",  # promises more bytes than it sends
    "wrong_schema",  # JSON, but not what was agreed
    "empty_choices",  # the right form, but nothing in it
    "reset",  # cuts the connection without a word
    "body",  # answers 200 with `body` in place of the reply
]


@dataclass(frozen=True)
class Fault:
    """One way to go wrong."""

    kind: Kind
    status: int = 500
    retry_after: str | None = None
    seconds: float = 0.05
    encoding: str = ""
    """What the reply says of its compression; the body is sent as it is."""
    body: Any = field(default_factory=lambda: {"error": {"message": "injected fault"}})


class Seen(NamedTuple):
    """A request as it arrived."""

    number: int
    """1 for the first request of all."""
    attempt: int
    """1 when this body comes for the first time, 2 when it comes again …"""
    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def text(self) -> str:
        """All that the model is told, of a chat request."""
        return "\n".join(message["content"] for message in self.body.get("messages", ()))


Plan = Callable[[Seen], Fault | None]


def no_fault(seen: Seen) -> Fault | None:
    """Everything works."""
    return None


def first_attempts(count: int, fault: Fault) -> Plan:
    """The first `count` attempts of every distinct request meet the fault; later ones do not."""
    return lambda seen: fault if seen.attempt <= count else None


def every(step: int, fault: Fault) -> Plan:
    """Every `step`-th request meets the fault."""
    return lambda seen: fault if seen.number % step == 0 else None


def where(part: str, fault: Fault) -> Plan:
    """Every request whose body holds `part` meets the fault, however often it comes."""
    return lambda seen: fault if part in json.dumps(seen.body, ensure_ascii=False) else None


def chat_reply(text: str | None, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    """A well-formed chat completion."""
    return {
        "id": "1",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish_reason}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


class FakeServer:
    """The server; use it in a `with` block.

    Args:
        answer: Makes the text of a chat reply from the request's body.
        score: Makes the score of one item of a request to /score.
        plan: Which request meets which fault.
        health: What GET /health answers.
    """

    def __init__(
        self,
        answer: Callable[[dict[str, Any]], str] = lambda body: "Result: A",
        score: Callable[[dict[str, Any]], Any] = lambda item: 0.0,
        plan: Plan = no_fault,
        health: Any = None,
    ) -> None:
        self.answer = answer
        self.score = score
        self.plan = plan
        self.health = health or {"model": "fake", "revision": "r1", "reads": ["posts", "plan"]}
        self.requests: list[Seen] = []
        self.most_at_once = 0
        self._at_once = 0
        self._attempts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def root(self) -> str:
        """Where /health and /score are."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def url(self) -> str:
        """The base URL of the chat endpoint."""
        return f"{self.root}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def seen(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Seen:
        """Keep a request."""
        with self._lock:
            identity = path + json.dumps(body, sort_keys=True)
            self._attempts[identity] += 1
            seen = Seen(len(self.requests) + 1, self._attempts[identity], path, body, headers)
            self.requests.append(seen)
            return seen

    def busy(self, change: int) -> None:
        """Count the requests under way."""
        with self._lock:
            self._at_once += change
            self.most_at_once = max(self.most_at_once, self._at_once)

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep, but wake up when the server stops; whether it did."""
        return self._stopped.wait(seconds)

    def reply(self, seen: Seen) -> Any:
        """The right answer to a request; None where there is nothing under that path."""
        if seen.path == "/v1/chat/completions":
            text = self.answer(seen.body)
            return text if isinstance(text, dict) else chat_reply(text)
        if seen.path == "/score":
            return {"scores": [self.score(item) for item in seen.body["items"]]}
        return self.health if seen.path == "/health" else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up in the middle is what the tests are about, not an error."""


def _handler(server: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._handle({})

        def do_POST(self) -> None:
            self._handle(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _handle(self, body: dict[str, Any]) -> None:
            seen = server.seen(self.path, body, {name.lower(): value for name, value in self.headers.items()})
            server.busy(+1)
            try:
                fault = server.plan(seen)
                self._go_wrong(fault, seen) if fault else self._answer(seen)
            finally:
                server.busy(-1)

        def _answer(self, seen: Seen) -> None:
            reply = server.reply(seen)
            self._send(200 if reply is not None else 404, json.dumps(reply).encode())

        def _send(
            self,
            status: int,
            payload: bytes,
            retry_after: str | None = None,
            promised: int | None = None,
            encoding: str = "",
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload) if promised is None else promised))
            if retry_after is not None:
                self.send_header("Retry-After", retry_after)
            if encoding:
                self.send_header("Content-Encoding", encoding)
            self.end_headers()
            self.wfile.write(payload)

        def _go_wrong(self, fault: Fault, seen: Seen) -> None:
            whole = json.dumps(server.reply(seen)).encode()
            body = fault.body if isinstance(fault.body, bytes) else json.dumps(fault.body).encode()
            match fault.kind:
                case "status":
                    self._send(fault.status, body, fault.retry_after)
                case "body":
                    self._send(200, body, encoding=fault.encoding)
                case "hang":
                    server.wait()
                    self.close_connection = True
                case "slow":
                    server.wait(fault.seconds)
                    self._answer(seen)
                case "drip":
                    self._send(200, b"", promised=10**6)
                    with suppress(OSError):
                        while not server.wait(0.02):
                            self.wfile.write(b" ")
                    self.close_connection = True
                case "half_json":
                    self._send(200, whole[: len(whole) // 2])
                case "half_sent":
                    self._send(200, whole[: len(whole) // 2], promised=len(whole))
                    self.close_connection = True
                case "wrong_schema":
                    self._send(200, b'{"answer": "Result: A", "score": 1.0}')
                case "empty_choices":
                    self._send(200, b'{"choices": [], "scores": []}')
                case "reset":
                    # Lingering for zero seconds makes the system send a reset in place of an orderly end.
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the requests are kept."""

    return Handler
