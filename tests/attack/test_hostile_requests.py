"""Hostile requests to all three servers: none ends in a traceback, none changes what others see or have said."""

import http.client
import logging
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import annotate_study
from campaigns import Campaign, times
from hostile_requests import Door, Sent, draw
from prbench import evaluate
from prbench.data import Suite
from prbench.models.python import wrap
from prbench.report.view import LivePages, build_pages, serve
from prbench.serve import ServeConfig, serving
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
