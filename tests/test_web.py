"""Slow and silent connections are closed, and others are answered meanwhile: serve, annotate and view alike."""

import http.client
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn
from markupsafe import Markup

from prbench import web
from prbench.data import Suite
from prbench.models.python import wrap
from prbench.report.view import LivePages
from prbench.report.view import serve as view
from prbench.serve import ServeConfig, serving
from prbench.show.page import shell
from serve_models import Recorder
from small_suite import mirrored


@contextmanager
def plain(tmp_path, body=b"ok"):
    """The bare application that every server stands on, with annotate's own settings."""

    async def app(scope, receive, send):
        more = True
        while more:
            more = (await receive()).get("more_body", False)
        length = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": body})

    listener = web.listen("127.0.0.1", 0)
    server = uvicorn.Server(web.server_config(app, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield listener.getsockname()[1], "/"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def viewer(tmp_path):
    with view(LivePages([tmp_path], lambda runs: {"/": shell("t", Markup("<p>x</p>"))})) as server:
        yield server.port, "/"


@contextmanager
def rewards(tmp_path):
    config = ServeConfig.of(model="recorder", context="none", port=0, state=tmp_path / "judged.jsonl")
    with serving(config, model=wrap(Recorder()), suite=Suite.of(mirrored(couples=2, questions=2))) as url:
        yield int(url.rpartition(":")[2]), "/health"


LONG = 20_000_000
SERVERS = {"plain": plain, "view": viewer, "serve": rewards}


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(web, "HEADER_S", 0.5)
    monkeypatch.setattr(web, "BODY_S", 0.5)


def answered(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def closed_within(connection, seconds):
    connection.settimeout(seconds)
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def drip(connection, piece, seconds):
    """Send a piece again and again; how long the other side bore it."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        try:
            connection.sendall(piece)
        except ConnectionError:
            break
        time.sleep(0.05)
    return time.monotonic() - began


HALF = {
    "nothing": b"",
    "half a line": b"GET / HT",
    "half the headers": b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "half a body": b"POST /score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n{",
}


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
@pytest.mark.parametrize("sent", HALF.values(), ids=HALF)
def test_a_request_that_does_not_come_to_its_end_is_closed(tmp_path, hurried, server, sent):
    with server(tmp_path) as (port, _), socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(sent)
        assert closed_within(client, 5)


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_dripping_headers_buy_no_time(tmp_path, hurried, server):
    with server(tmp_path) as (port, _), socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert drip(client, b"X-A: b\r\n", seconds=5) < 4


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_two_hundred_half_sent_requests_keep_nobody_waiting(tmp_path, server):
    before = threading.active_count()
    with server(tmp_path) as (port, path):
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        for client in slow:
            client.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        began = time.monotonic()
        assert [answered(port, path) for _ in range(50)] == [200] * 50
        assert time.monotonic() - began < 5
        assert threading.active_count() < before + 10
        for client in slow:
            client.close()


def test_connections_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "MAX_CONNECTIONS", 5)
    with plain(tmp_path) as (port, _):
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        time.sleep(0.1)
        with socket.create_connection(("127.0.0.1", port)) as one_more:
            one_more.settimeout(5)
            assert one_more.recv(4096).startswith(b"HTTP/1.1 503")
        for client in held:
            client.close()
        time.sleep(0.1)
        assert answered(port, "/") == 200


def received(connection, pause_s):
    """All that is sent, read with pauses; a connection that is cut off ends it."""
    total = 0
    connection.settimeout(20)
    try:
        while piece := connection.recv(4_000_000):
            total += len(piece)
            time.sleep(pause_s)
    except ConnectionError:
        pass
    return total


@pytest.mark.parametrize("head", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
@pytest.mark.parametrize("reads", [False, True], ids=["asleep", "slow"])
def test_a_client_that_does_not_read_is_cut_off_and_a_slow_one_is_not(tmp_path, monkeypatch, head, reads):
    monkeypatch.setattr(web, "READ_S", 0.5)
    with plain(tmp_path, body=b"x" * LONG) as (port, _), socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n")
        time.sleep(0 if reads else 1.5)
        assert (received(client, 0.005 if reads else 0) > LONG) == reads


def test_a_connection_that_is_kept_open_between_requests_is_not_slow(tmp_path, hurried):
    with plain(tmp_path) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        for _ in range(2):
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"ok"
            time.sleep(1)
        connection.close()


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_a_damaged_body_leaves_no_traceback_in_the_log(tmp_path, capfd, server):
    """Chunks that are none, sent to an address that answers before it reads the body."""
    with server(tmp_path) as (port, path):
        head = f"POST /none HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(head + b"zz\r\nabc\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")
        time.sleep(0.2)
        assert answered(port, path) == 200
    assert "Traceback" not in "".join(capfd.readouterr())
