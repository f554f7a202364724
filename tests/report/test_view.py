"""`prbench view`: who may ask, what is answered, and that pages follow a run that goes on."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import quote

import pytest
from markupsafe import Markup

from prbench import evaluate
from prbench.data import Suite
from prbench.models.python import wrap
from prbench.report.view import LivePages, build_pages, expand, serve
from prbench.show.page import shell
from small_suite import follows_posts, mirrored


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("view") / "run"
    evaluate(wrap(follows_posts, "py:view:follows"), mirrored(), contexts=["none", "profile"], resamples=100, out=out)
    return out


@pytest.fixture
def half(run, tmp_path):
    """The same run in the middle: a third of the records, the last line torn, no result."""
    folder = shutil.copytree(run, tmp_path / "half")
    (folder / "result.json").unlink()
    (folder / "records.parquet").unlink()
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"".join(lines[:24]) + lines[24][:-20])
    return folder


def small(runs):
    return {"/": shell("t", Markup(f"<p>{len(list(runs))} runs</p>"))}


def ask(server, path="/", method="GET", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{server.port}"})
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    return reply, body


def test_pages_carry_their_policy_as_a_header(run):
    with serve(LivePages([run], small)) as server:
        reply, body = ask(server)
    assert (reply.status, reply.getheader("Content-Type")) == (200, "text/html; charset=utf-8")
    policy = reply.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert reply.getheader("X-Content-Type-Options") == "nosniff"
    assert "<p>1 runs</p>" in body


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "evil.example:{port}", "localhost:1", "127.0.0.1:{port}."]
)
def test_another_name_is_refused(run, host):
    with serve(LivePages([run], small)) as server:
        reply, body = ask(server, host=host.format(port=server.port))
        assert reply.status == 421
        assert "<p>" not in body
        assert ask(server, host=f"localhost:{server.port}")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"])
def test_only_get_is_answered(run, method):
    with serve(LivePages([run], small)) as server:
        assert ask(server, method=method)[0].status == 405


@pytest.mark.parametrize("path", ["/nothing", "/../config.toml", "/records.jsonl", "/%2e%2e/run.json", "//run.json"])
def test_no_file_can_be_had(run, path):
    with serve(LivePages([run], small)) as server:
        assert ask(server, path)[0].status == 404


def test_it_listens_on_loopback_only_and_takes_a_free_port(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with serve(LivePages([run], small), taken.getsockname()[1]) as server:
            assert server.server_address[0] == "127.0.0.1"
            assert server.port != taken.getsockname()[1]
            assert ask(server)[0].status == 200


def test_a_viewer_that_is_started_again_finds_its_port(run):
    with serve(LivePages([run], small)) as server, socket.create_connection(("127.0.0.1", server.port)) as browser:
        port = server.port
        browser.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        while browser.recv(65536):  # to the end: the server is the first to close, and its port rests for a while
            pass
    with serve(LivePages([run], small), port) as server:
        assert server.port == port


def test_an_unfinished_run_is_shown_as_far_as_it_is(half):
    pages = build_pages([half])
    assert list(pages) == ["/", "/leaderboard"]
    assert "24 of 72 records" in pages["/"]
    assert "is not finished" in pages["/leaderboard"]
    (progress,) = LivePages([half], small).progress()
    assert progress == ("half", 24, 72, False)


def test_pages_follow_a_run_that_goes_on(run, half):
    def build(runs):
        return {"/": shell("t", Markup(f"<p>{(half / 'records.jsonl').stat().st_size} bytes</p>"))}

    live = LivePages([half], build, pause_s=0.05)
    with serve(live) as server:
        before = json.loads(ask(server, "/progress.json")[1])
        assert f'data-version="{before["version"]}"' in ask(server)[1]
        with (half / "records.jsonl").open("ab") as handle:
            handle.write(b"\n")
        shutil.copyfile(run / "records.jsonl", half / "records.jsonl")
        shutil.copyfile(run / "result.json", half / "result.json")
        after = _when(lambda: json.loads(ask(server, "/progress.json")[1]), lambda found: found["runs"][0]["finished"])
        assert after["runs"][0]["records"] == 72
        changed = _when(
            lambda: json.loads(ask(server, "/progress.json")[1]), lambda found: found["version"] != before["version"]
        )
        page = ask(server)[1]
    assert f'data-version="{changed["version"]}"' in page
    assert f"<p>{(run / 'records.jsonl').stat().st_size} bytes</p>" in page


def test_a_run_that_cannot_be_read_for_a_moment_leaves_the_older_page(half):
    from prbench.errors import RunError

    broken = []

    def build(runs):
        if broken:
            raise RunError("line 3 is damaged")
        return small(runs)

    live = LivePages([half], build, pause_s=0.05)
    with serve(live) as server:
        broken.append(True)
        (half / "records.jsonl").write_bytes(b"")
        found = _when(lambda: json.loads(ask(server, "/progress.json")[1]), lambda found: found["problem"])
        assert found["problem"] == "line 3 is damaged"
        assert ask(server)[0].status == 200


def test_pages_are_followed_also_after_an_accident(half):
    accidents = [FileNotFoundError("records.jsonl"), KeyError("odd")]

    def build(runs):
        if grown() and accidents:
            raise accidents.pop()
        return small(runs)

    def grown():
        return (half / "records.jsonl").stat().st_size == 0

    live = LivePages([half], build, pause_s=0.05)
    with serve(live) as server:
        before = live.version
        (half / "records.jsonl").write_bytes(b"")
        _when(lambda: live.version, lambda version: version != before)
        assert (accidents, json.loads(ask(server, "/progress.json")[1])["problem"]) == ([], "")


def _when(look, ready):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = look()
        if ready(found):
            return found
        time.sleep(0.05)
    raise AssertionError(f"still {found}")


def test_runs_on_different_suites_have_pages_of_their_own(run, tmp_path):
    evaluate(wrap(follows_posts, "py:view:follows"), mirrored(couples=2), contexts=["profile"], out=tmp_path / "two")
    pages = build_pages([run, tmp_path / "two"])
    assert next(iter(pages)) == "/"
    assert [address for address in pages if re.fullmatch(r"/report/pairs-[0-9a-f]{8}", address)] == list(pages)[1:]
    assert len(pages) == 3


def test_the_address_of_a_report_is_one_that_a_browser_sends_as_it_is(run, tmp_path):
    suite = Suite.of(mirrored(couples=2), name="Tée & 茶")
    evaluate(wrap(follows_posts, "py:view:follows"), suite, contexts=["profile"], resamples=100, out=tmp_path / "two")
    assert all(quote(address) == address for address in build_pages([run, tmp_path / "two"]))


def test_folders_of_runs_are_expanded(run, tmp_path):
    assert expand([run]) == [run]
    assert expand([run.parent, run]) == [run]
    from prbench.errors import ConfigError

    with pytest.raises(ConfigError, match="there is no run in"):
        expand([tmp_path])


def test_the_command_serves_and_stops_on_interrupt(run):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "prbench", "view", str(run), "--port", "0", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            line = process.stdout.readline()
            port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", line)[1])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/leaderboard")
            assert connection.getresponse().status == 200
            connection.close()
            process.send_signal(signal.SIGINT)
            process.wait(timeout=10)
        finally:
            process.kill()
        assert process.returncode == 0
        assert "Traceback" not in process.stderr.read()
