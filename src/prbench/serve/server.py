"""The process: one socket, one event loop, one model thread; told to stop, it answers what it has accepted first."""

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from prbench.data import Suite
from prbench.errors import ConfigError
from prbench.models import Model
from prbench.serve.app import Door, make_app
from prbench.serve.config import ServeConfig
from prbench.serve.service import RewardService, open_service
from prbench.web import listen, server_config

_TICK_S = 0.02
KEEP_ALIVE_S = 60
"""Seconds that a connection stays open between two requests: a trainer computes for a while between two steps."""
_LAST_BYTES_S = 10.0
"""Seconds that replies may take to leave, once everything is answered."""


def serve(config: ServeConfig, ready: Callable[[str, RewardService], None], *, model: Model | None = None) -> bool:
    """Serve until SIGTERM or SIGINT; returns whether everything that was accepted has been answered.

    Args:
        config: What to serve, and where.
        ready: Told the URL as soon as requests are answered.
        model: In place of the configuration's address.
    """
    with _bound(config) as bound, open_service(config, model=model) as service:
        server = _server(service, config)
        ready(_url(config, bound), service)
        server.run(sockets=[bound])
    return service.batcher.idle and not service.batcher.abandoned and not server.cut_off


@contextmanager
def serving(config: ServeConfig, *, model: Model | None = None, suite: Suite | None = None) -> Iterator[str]:
    """Serve in a thread of this process until the block ends; yields the URL.

    Args:
        config: What to serve; port 0 takes a free one.
        model: In place of the configuration's address.
        suite: In place of the configuration's suite.

    Example:
        >>> import tempfile, httpx
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     config = ServeConfig(model="longer", context="none", port=0, state=Path(folder) / "judged.jsonl")
        ...     with serving(config, suite=Suite.of([])) as url:
        ...         item = {"question": "Tea?", "answer": "Green or black."}
        ...         httpx.post(f"{url}/score", json={"items": [item]}).json()["scores"]
        [3.0]
    """
    with _bound(config) as bound, open_service(config, model=model, suite=suite) as service:
        server = _server(service, config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="server")
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(_TICK_S)
            if not server.started:
                raise ConfigError("the server did not start")
            yield _url(config, bound)
        finally:
            service.batcher.drain()
            server.should_exit = True
            thread.join()


@contextmanager
def _bound(config: ServeConfig) -> Iterator[socket.socket]:
    """The socket, taken before a model is loaded, so that a port in use is told at once."""
    config.check_reach()  # here and not only in `ServeConfig.of`: this is the one way to a socket
    try:
        bound = listen(config.host, config.port)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {config.host}:{config.port}: {error.strerror}",
            hint="choose another --port; 0 takes a free one",
        ) from error
    with bound:
        yield bound


def _url(config: ServeConfig, bound: socket.socket) -> str:
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{bound.getsockname()[1]}"


def _server(service: RewardService, config: ServeConfig) -> "DrainingServer":
    app = make_app(service, Door(config.token, config.loopback, config.max_body))
    patience = {"timeout_keep_alive": KEEP_ALIVE_S, "timeout_graceful_shutdown": int(_LAST_BYTES_S)}
    settings = server_config(app, log_level="warning", **patience)
    return DrainingServer(settings, service, config.drain_s)


class DrainingServer(uvicorn.Server):
    """A server that, told to stop, refuses what is new and answers what it has.

    Args:
        config: Settings of the server.
        service: Whose queue is to run empty.
        drain_s: The most that this may take. A second signal does not wait at all.
    """

    def __init__(self, config: uvicorn.Config, service: RewardService, drain_s: float) -> None:
        super().__init__(config)
        self._service = service
        self._drain_s = drain_s
        self._draining: asyncio.Task[None] | None = None
        self.cut_off = False
        """Whether a second signal came while something was under way, so that its outcome is lost."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal in our own way; the signal is not raised again, for a clean stop is a success."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        kinds = (signal.SIGTERM, signal.SIGINT)
        before = {kind: signal.signal(kind, lambda *_: loop.call_soon_threadsafe(self._told)) for kind in kinds}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)

    def _told(self) -> None:
        if self._draining is not None:
            self._draining.cancel()
            self.cut_off = self.cut_off or not self._service.batcher.idle
            self._service.batcher.abandon()
            self.should_exit = self.force_exit = True
            return
        self._service.batcher.drain()
        self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        """Keep the door open while what was accepted is answered, so that newcomers are told to come again."""
        until = time.monotonic() + self._drain_s
        while not self._service.batcher.idle and time.monotonic() < until:
            await asyncio.sleep(_TICK_S)
        self._service.batcher.abandon()  # after all that time; mostly there is nothing left
        self.should_exit = True
