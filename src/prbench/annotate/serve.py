"""The server process: a socket that is bound before any link is printed, and one uvicorn over it.

Loopback unless another host is named. Another host is spoken to in plain HTTP, so naming one brings a warning.
"""

import socket
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import urlsplit

from prbench.annotate.store import Store
from prbench.annotate.study import Invitation
from prbench.errors import ConfigError, MissingExtraError
from prbench.web import LOOPBACK
from prbench.web import listen as bind


class Endpoint(NamedTuple):
    """Socket of the server, and the address under which people reach it."""

    listener: socket.socket
    url: str
    hosts: frozenset[str]

    def link(self, invitation: Invitation) -> str:
        """Return the link that one person is sent."""
        return f"{self.url}/join/{invitation.token}"


def require_extra() -> None:
    """Say what to install, before anything is made, where the server's libraries are missing."""
    if any(find_spec(name) is None for name in ("starlette",)):
        raise MissingExtraError("prbench annotate", "annotate")


def listen(host: str = LOOPBACK, port: int = 0, url: str | None = None) -> Endpoint:
    """Bind the socket of the server.

    Args:
        host: An address of this machine.
        port: 0 takes a free one.
        url: How people reach the server, where it is not `http://HOST:PORT` (behind a proxy, say).

    Raises:
        ConfigError: If the place is taken or is none of this machine's, or if the address cannot be used in links.
    """
    if url is None and host in ("0.0.0.0", "::"):  # noqa: S104  (refused, not bound)
        raise ConfigError(f"--host {host} is no address to send people to", hint="say with --url how they reach it")
    try:
        listener = bind(host, port)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}", hint="choose another --port or --host"
        ) from error
    port = listener.getsockname()[1]
    own = [f"http://{_bracketed(name)}:{port}" for name in (LOOPBACK, "localhost", host)]
    url = (url or own[-1]).rstrip("/")
    try:
        return Endpoint(listener, url, frozenset(map(_host_header, [*own, url])))
    except ValueError as error:
        listener.close()
        hint = "for example https://study.example"
        raise ConfigError(f"--url {url!r} is no address to send people to", hint=hint) from error


def serve(store: Store, place: Endpoint) -> None:
    """Answer until interrupted; then move everything into the one file."""
    import uvicorn

    from prbench.annotate.app import make_app
    from prbench.web import server_config

    app = make_app(store, place.hosts, secure=place.url.startswith("https:"))
    config = server_config(app, timeout_graceful_shutdown=3)
    try:
        uvicorn.Server(config).run(sockets=[place.listener])
    finally:
        place.listener.close()
        store.settle()


def links(place: Endpoint, invitations: Sequence[Invitation]) -> list[str]:
    """One line for each person: name and link."""
    width = max((len(invitation.name) for invitation in invitations), default=0)
    return [f"  {invitation.name:<{width}}  {place.link(invitation)}" for invitation in invitations]


def _host_header(url: str) -> str:
    """Return the host as a browser sends it: in lower case, without the port that goes without saying.

    Example:
        >>> _host_header("http://Study.Example:80"), _host_header("https://study.example:80")
        ('study.example', 'study.example:80')
    """
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}
    if parts.scheme not in usual or not parts.hostname or "@" in parts.netloc:
        raise ValueError(url)
    if parts.path or parts.query or parts.fragment:
        raise ValueError(url)
    name = _bracketed(parts.hostname)
    return name if parts.port in (None, usual[parts.scheme]) else f"{name}:{parts.port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
