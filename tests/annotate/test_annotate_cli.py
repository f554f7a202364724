"""The commands as they are typed, and the server as a process: it may be killed at any moment."""

import json
import re
import signal
import subprocess
import sys

import httpx
import pytest
from typer.testing import CliRunner

from annotate_study import Client, fill, pairs, prefer_green, study
from prbench.annotate.serve import listen
from prbench.annotate.study import Invitation
from prbench.cli import app
from prbench.cli.annotate import _announce
from prbench.data import write_pairs
from prbench.errors import ConfigError, PrbenchError
from prbench.web import is_loopback

RUN = CliRunner()


def prbench(*words):
    return RUN.invoke(app, ["annotate", *map(str, words)])


class Server:
    """`prbench annotate` in a process of its own."""

    def __init__(self, suite, db, *words):
        command = [sys.executable, "-m", "prbench", "annotate", str(suite), "--db", str(db), *map(str, words)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if line.startswith("listening"):
                break
        self.links = [line.split()[-1] for line in self.lines if "/join/" in line]
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.lines[-1]) if self.lines else None
        assert found, self.process.stderr.read()
        self.port = int(found[1])

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=30)
        return errors


@pytest.fixture
def suite(tmp_path):
    return write_pairs(pairs(), tmp_path / "suite" / "pairs.jsonl")


def test_a_killed_server_loses_nothing_that_was_confirmed(suite, tmp_path):
    db = tmp_path / "annotations.sqlite"
    server = Server(suite.parent, db, "--port", 0, "--names", "ann,bob")
    try:
        assert len(server.links) == 2
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}") as http:
            ann = Client(http, server.links[0])
            ann.run(4)
            there = ann.page.url.path
            server.stop(signal.SIGKILL)
            again = Server(suite.parent, db, "--port", server.port, "--names", "ann,bob")
            try:
                assert any("continued" in line for line in again.lines)
                assert ann.get("/").url.path == there  # signed in still, and where they left
                assert "4 of 6 done" in ann.page.text
                ann.run()
                assert "Thank you" in ann.page.text
            finally:
                assert "stopped; the same command continues" in again.stop()
    finally:
        server.process.kill()
    assert [path.name for path in tmp_path.glob("annotations*")] == ["annotations.sqlite"]  # the log was moved in
    found = json.loads(prbench("report", db, "--format", "json").stdout)
    assert found["counts"] == {"judgments": 6, "annotators": 1, "pairs": 6, "texts": 6}


@pytest.fixture
def judged(tmp_path):
    opened = study(tmp_path, pairs(24), pairs=None)
    for annotator in (1, 2):
        fill(opened.store, annotator, prefer_green)
    return opened.store.path


def test_report_in_every_format(judged, tmp_path):
    for format in ("table", "md", "csv", "latex"):
        found = prbench("report", judged, "--format", format)
        assert found.exit_code == 0
        assert "factuality" in found.stdout
        assert "Krippendorff" in found.stdout
    found = prbench("report", judged, "--margin", "0.25", "-o", tmp_path / "out" / "report.json")
    assert "The claim holds here: quality is equal (within ±0.25), and preference follows the label." in found.stdout
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert written["claim"]["holds"] == "holds"
    assert set(written["preference"]["agreement"]) == {"value", "low", "high", "n"}


def test_export_says_what_to_do_next(tmp_path):
    opened = study(tmp_path, mode="self")
    fill(
        opened.store,
        1,
        lambda shown, green: prefer_green(shown, green).model_copy(update={"first": None, "second": None}),
    )
    found = prbench("export", opened.store.path, "-o", tmp_path / "out")
    assert found.exit_code == 0
    assert "prbench build mirror" in found.stdout
    assert "annotations.jsonl    6 rows" in found.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", "nowhere.sqlite"], "does not exist"),
        (["nosuchsuite"], "neither a suite nor a file"),
        (["mirror", "--names", "a,b", "--annotators", "3"], "--names has 2"),
        (["mirror", "--host", "203.0.113.9"], "cannot listen on 203.0.113.9"),
        (["mirror", "--url", "ftp://x", "--port", "0"], "no address to send people to"),
        (["mirror", "--url", "https://ann:pw@x", "--port", "0"], "no address to send people to"),
        (["mirror", "--url", "https://x:port", "--port", "0"], "no address to send people to"),
        (["mirror", "--host", "0.0.0.0"], "no address to send people to"),
    ],
)
def test_mistakes_are_told(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    found = prbench(*words)
    assert isinstance(found.exception, PrbenchError)
    assert message in str(found.exception)
    assert not (tmp_path / "annotations.sqlite").exists()


def test_help_names_the_commands():
    assert prbench("--help").exit_code == 0
    assert all(word in prbench("--help").stdout for word in ("serve", "report", "export"))
    assert "--overlap" in prbench("serve", "--help").stdout


def test_where_it_listens_and_what_links_say():
    place = listen(port=0, url="https://study.example/")
    try:
        assert place.listener.getsockname()[0] == "127.0.0.1"
        assert place.link(Invitation("ann", "TOKEN")) == "https://study.example/join/TOKEN"
        assert "study.example" in place.hosts
        with pytest.raises(ConfigError, match="cannot listen"):
            listen(port=place.listener.getsockname()[1])
    finally:
        place.listener.close()


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Study.Example:443", "study.example"),
        ("http://study.example:80", "study.example"),
        ("https://study.example:8443", "study.example:8443"),
        ("http://[2001:DB8::1]:80", "[2001:db8::1]"),
    ],
)
def test_it_answers_to_its_name_as_browsers_write_it(url, host):
    place = listen(port=0, url=url)
    place.listener.close()
    assert {each for each in place.hosts if not each.startswith(("127.0.0.1:", "localhost:"))} == {host}


@pytest.mark.parametrize(
    ("host", "safe"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("10.0.0.1", False)]
)
def test_only_loopback_is_safe(host, safe):
    assert is_loopback(host) is safe


def test_another_host_is_warned_of(tmp_path, capsys):
    opened = study(tmp_path)
    for host, url, warned in (("127.0.0.1", None, 0), ("127.0.0.2", "https://study.example", 0), ("10.0.0.1", None, 1)):
        place = listen(port=0, url=url)
        _announce(opened, place, host, new_links=False)
        place.listener.close()
        assert capsys.readouterr().err.count("warning") == warned
