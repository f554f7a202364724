"""Web servers of this package: one event loop each, with deadlines for headers and bodies and a bound on connections.

A client that opens a connection and says nothing, or sends its request a byte a minute, is disconnected, also where it
does not read what it was sent. The bound is on all connections together: it protects the server, but a machine that
opens many at once can still keep others out until its time is up. Used by the reward server, the annotation study and
the viewer of runs.
"""

import asyncio
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

LOOPBACK = "127.0.0.1"
HEADER_S = 10.0
"""The longest that sending a request's headers may take, from the connection or from their first byte."""
BODY_S = 40.0
"""The longest that sending a request's body may take."""
READ_S = 30.0
"""The longest that a client may take to read the next `_READ_BYTES` of what it was sent, or the rest of it."""
_READ_BYTES = 65536
MAX_CONNECTIONS = 512
"""Connections that may be open at once; one more is told to come again."""
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("[::1]"), is_loopback("0.0.0.0")
        (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Bind a listening socket; port 0 takes a free one.

    Raises:
        OSError: If the place is taken, or is none of this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS)


def server_config(app: Callable[..., Any], **settings: Any) -> uvicorn.Config:
    """The settings that all servers share: no log of addresses, no banner, and the deadlines of this module.

    Args:
        app: An ASGI application.
        settings: Of uvicorn, beside these.
    """
    shared = {
        "loop": "asyncio",
        "http": _Connection,
        "ws": "none",
        "lifespan": "off",
        "log_level": "error",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
    }
    return uvicorn.Config(app, **{**shared, **settings})


class _Connection(H11Protocol):
    """One connection, cut off when its client takes too long to say what it wants or to read what it asked for."""

    _deadline: asyncio.TimerHandle | None = None
    _awaited: Any = None
    """Part of a request that the deadline is for."""
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.write(_BUSY)
            transport.close()
            return
        self._await(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        state = self.conn.their_state
        self._await(state if state in (h11.IDLE, h11.SEND_BODY) else None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await(h11.SEND_BODY if self.conn.their_state is h11.SEND_BODY else None)
        if not self.flow.write_paused:
            self._await_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def send_400_response(self, msg: str) -> None:
        """Refuse a damaged request; the output of an application already at work on its beginning is dropped."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._await(None)
        if self._reading is not None:
            self._reading.cancel()
        super().connection_lost(exc)

    def _await(self, part: Any) -> None:
        """Give this part of a request its time; what has its time already gets no more of it."""
        if part is self._awaited:
            return
        self._awaited = part
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if part is not None:
            self._deadline = self.loop.call_later(HEADER_S if part is h11.IDLE else BODY_S, self.transport.abort)

    def _await_reader(self) -> None:
        """Cut off a client that does not read: closing would wait for it for as long as it likes."""
        if self._reading is not None:
            self._reading.cancel()
        if unread := self.transport.get_write_buffer_size():
            self._reading = self.loop.call_later(READ_S, self._look_at_reader, unread)

    def _look_at_reader(self, before: int) -> None:
        if self.transport.get_write_buffer_size() > max(0, before - _READ_BYTES):
            self.transport.abort()
        else:
            self._await_reader()
