"""Hostile requests to all three servers: none ends in a traceback, none changes what others see or have said."""

import http.client
import logging
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import annotate_study
from campaigns import Campaign, times
from hostile_requests import Door, Sent, draw
from prbench import evaluate, web
from prbench.data import Suite
from prbench.models.python import wrap
from prbench.report.view import LivePages, build_pages, serve
from prbench.serve import ServeConfig, serving
from prbench.serve import server as rewards
from serve_models import Adaptive
from small_suite import follows_posts, mirrored

SEED = 14
REQUESTS = times(200)
"""Of each server; there are three."""
OWNED = b"<script>window.owned"


class Server(NamedTuple):
    """A server under attack."""

    port: int
    door: Door
    sound: Callable[[], object]
    """What an honest client sees and has said, which must stay as it is."""


@contextmanager
def _serve(folder: Path) -> Iterator[Server]:
    model = wrap(Adaptive())
    config = ServeConfig.of(model=model.card.address, context="profile", port=0, state=folder / "judged.jsonl")
    suite = Suite.of(mirrored(couples=2, questions=3), name="small")
    with serving(config, model=model, suite=suite) as url, httpx.Client(base_url=url, timeout=30) as client:
        red = {"question": "Which ink?", "chosen": "The red ink.", "rejected": "The blue ink."}
        client.post("/users/alice/feedback", json=red).raise_for_status()

        def sound() -> object:
            items = [{"question": "Yarn?", "answer": answer, "user": "alice"} for answer in ("red yarn", "blue yarn")]
            scores = client.post("/score", json={"items": items}).json()["scores"]
            return scores, client.get("/users/alice/feedback").json()

        bodies = [
            {"items": [{"question": "Tea?", "answer": "Green.", "posts": ["I like tea."], "plan": ["short"]}]},
            {"items": [{"question": "Tea?", "answer": "Green.", "user": "u0a"}, {"question": "Q", "answer": ""}]},
            {"question": "Which ink?", "chosen": "red", "rejected": "blue"},
            {"query": ["Q A"], "prompts": ["Q"], "labels": ['{"question": "Tea?", "posts": ["I like tea."]}']},
        ]
        paths = ["/score", "/get_reward", "/users/mallory/feedback", "/metrics", "/health"]
        port = httpx.URL(url).port
        assert port is not None
        yield Server(port, Door(f"127.0.0.1:{port}", paths, bodies), sound)


@contextmanager
def _annotate(folder: Path) -> Iterator[Server]:
    with (
        annotate_study.served(folder, names=("ann", "eve")) as site,
        httpx.Client(base_url=site.url, timeout=30) as browser,
        httpx.Client(base_url=site.url, timeout=30) as other,
    ):
        ann = annotate_study.Client(browser, site.links[0])
        ann.answer()

        def sound() -> object:
            page = browser.get("/", follow_redirects=True)
            return page.text, [row for row in site.answers() if row[0] == 1]

        eve = annotate_study.Client(other, site.links[1])
        cookie = "; ".join(f"{name}={value}" for name, value in other.cookies.items())
        form = {**annotate_study.marks(), **annotate_study.hidden_fields(eve.page.text)}
        paths = ["/", eve.page.url.path, "/posts", "/last", "/done", "/leave", "/pair/none", "/join/none"]
        port = httpx.URL(site.url).port
        assert port is not None
        bodies = [form, {"consent": "yes"}, {"form_token": form["form_token"], "posts": "mine"}]
        yield Server(port, Door(f"127.0.0.1:{port}", paths, bodies, form=True, cookie=cookie), sound)


@contextmanager
def _view(folder: Path) -> Iterator[Server]:
    run = folder / "run"
    evaluate(wrap(follows_posts, "py:view:follows"), mirrored(), contexts=["none", "profile"], resamples=100, out=run)
    with serve(LivePages([run], build_pages)) as server:

        def sound() -> object:
            return [httpx.get(f"{server.url}{path}").text for path in ("", "progress.json")]

        yield Server(server.port, Door(f"127.0.0.1:{server.port}", ["/", "/progress.json", "/none"], [{}]), sound)


SERVERS = {"serve": _serve, "annotate": _annotate, "view": _view}


class Errors(logging.Handler):
    """Keeps what servers log as errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self.said.append(f"{text} {record.exc_info[1]!r}" if record.exc_info else text)


def _send(port: int, sent: Sent) -> tuple[int | None, bytes, str]:
    """Status, body and kind of what comes back; None where the connection is closed without a word."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.settimeout(30 if sent.whole else 0.15)
        with suppress(OSError):  # refused before its end: the reply is there
            connection.sendall(sent.data)
        reply = http.client.HTTPResponse(connection)
        try:
            reply.begin()
            return reply.status, reply.read(), reply.getheader("Content-Type", "")
        except TimeoutError:
            if sent.whole:
                raise
            return None, b"", ""
        except (http.client.HTTPException, OSError):
            return None, b"", ""


def _look(campaign: Campaign, what: str, status: int | None, body: bytes, kind: str) -> None:
    if status is not None and status >= 500 and status != 503:
        campaign.tracebacks.append(f"{what}: status {status}: {body[:300]!r}")
    if b"Traceback" in body or b'File "' in body:
        campaign.tracebacks.append(f"{what}: {body[:300]!r}")
    if OWNED in body and "html" in kind:
        campaign.changed.append(f"{what}: a script came back as it was sent")


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVERS)
def test_no_request_breaks_a_server_or_changes_what_others_see(
    name: str, tmp_path: Path, attack: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    errors = Errors()
    with attack(f"hostile requests: {name}") as campaign, SERVERS[name](tmp_path) as server:
        loggers = [logging.getLogger(logger) for logger in ("uvicorn", "prbench", "asyncio")]
        for logger in loggers:
            logger.addHandler(errors)
        wanted = server.sound()
        for number in range(REQUESTS):
            sent = draw(server.door, random.Random(f"{SEED} {name} {number}"))
            what = f"{number}: {sent.way} {sent.data[:120]!r}"
            campaign.tried += 1
            try:
                _look(campaign, what, *_send(server.port, sent))
            except TimeoutError:
                campaign.lost.append(f"{what}: no answer")
            if errors.said:
                campaign.tracebacks.append(f"{what}: logged {errors.said}")
                errors.said.clear()
            if number % 10 == 9 and server.sound() != wanted:
                campaign.changed.append(f"{what}: or one of the nine before changed what an honest client sees")
                break
        if server.sound() != wanted:
            campaign.changed.append("what an honest client sees")
        for logger in loggers:
            logger.removeHandler(errors)
    said = "".join(capfd.readouterr())
    assert "Traceback" not in said, said[:2000]


def _slow_client(kind: str, port: int, door: Door) -> socket.socket:
    """A connection that says little, or does not read what it asked for."""
    path = door.paths[0]
    head = f"POST {path} HTTP/1.1\r\nHost: {door.host}\r\nContent-Type: application/json\r\n"
    long = "/metrics" if "/metrics" in door.paths else "/"
    opened = socket.create_connection(("127.0.0.1", port), timeout=1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    said = {
        "silent": "",
        "half a header": head[:25],
        "no end of headers": head,
        "half a body": head + "Content-Length: 1000\r\n\r\n{",
        "half a chunk": head + "Transfer-Encoding: chunked\r\n\r\n500\r\nx",
        "does not read": f"GET {long} HTTP/1.1\r\nHost: {door.host}\r\n\r\n" * 100,
    }[kind]
    with suppress(OSError):
        opened.sendall(said.encode())
    return opened


SLOW_KINDS = ("silent", "half a header", "no end of headers", "half a body", "half a chunk", "does not read")


def _still_open(port: int, connections: list[tuple[str, socket.socket]], patience_s: float) -> list[str]:
    """The kinds of connections that the server does not end, though nothing is read from them.

    The system's own table says so: a client that does not read does not hear of the end either.
    """
    kinds = {connection.getsockname()[1]: kind for kind, connection in connections}
    until = time.monotonic() + patience_s
    while True:
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        established = [row for row in rows if row[3] == "01" and int(row[1].rpartition(":")[2], 16) == port]
        left = [kinds[place] for row in established if (place := int(row[2].rpartition(":")[2], 16)) in kinds]
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks into Linux's table of connections")
@pytest.mark.parametrize("name", SERVERS)
def test_slow_clients_are_cut_off_and_keep_nobody_waiting(
    name: str, tmp_path: Path, attack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for deadline in ("HEADER_S", "BODY_S", "READ_S"):
        monkeypatch.setattr(web, deadline, 2.0)
    monkeypatch.setattr(rewards, "KEEP_ALIVE_S", 3)  # what fits the system's own buffers looks like a read reply
    with attack(f"slow clients: {name}") as campaign, SERVERS[name](tmp_path) as server:
        wanted = server.sound()
        opened: list[tuple[str, socket.socket]] = []
        for number in range(times(300)):
            kind = SLOW_KINDS[number % len(SLOW_KINDS)]
            opened.append((kind, _slow_client(kind, server.port, server.door)))
            campaign.tried += 1
            if number % 10 == 9:
                began = time.monotonic()
                if server.sound() != wanted:
                    campaign.changed.append(f"{number}: what an honest client sees")
                if (waited_s := time.monotonic() - began) > 10:
                    campaign.lost.append(f"{number}: an honest client waited {waited_s:.1f} s")
        campaign.lost += [f"{kind}: still open" for kind in _still_open(server.port, opened, 60.0)]
        for _, connection in opened:
            connection.close()
        if server.sound() != wanted:
            campaign.changed.append("what an honest client sees in the end")
