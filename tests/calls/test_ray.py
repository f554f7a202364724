"""The same run on Ray Data: on a cluster of its own, and on a real one of two nodes of which one is killed."""

import ipaddress
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prbench.data import write_pairs
from ray_cluster import ENVIRONMENT, two_nodes
from small_suite import mirrored

psutil = pytest.importorskip("psutil")
pytest.importorskip("ray")

MODELS = """
import os, time
from pathlib import Path

def slow(question, answer, posts):
    Path(f"pid-{os.getppid()}-{os.getpid()}").touch()
    time.sleep(0.02)
    text = " ".join(post.text for post in posts)
    return sum(text.count(word.strip(".")) for word in answer.split()) + len(answer) / 7

def slower(question, answer, posts):
    time.sleep(0.08)
    return slow(question, answer, posts)

def poisoned(question, answer, posts):
    if "tea" in question and "u0a" in posts[0].text:
        os.kill(os.getpid(), 9)
    return len(answer)

def deadly(question, answer):
    os.kill(os.getpid(), 9)
"""

PATIENCE_S = 400
"""A few times what a busy machine takes."""

started = []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_pairs(mirrored(couples=6, questions=8), tmp_path / "pairs.jsonl")
    (tmp_path / "ray_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    while started:
        with started.pop() as process:
            process.kill()  # nothing, where it has ended


def start(out, *options, model="slow", contexts="none,profile", **variables):
    arguments = ["--suite", "pairs.jsonl", "--model", f"py:ray_models:{model}", "--resamples", "100"]
    process = subprocess.Popen(
        [sys.executable, "-m", "prbench", "run", *arguments, "-c", contexts, "-o", out, "--format", "json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**{name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}, **variables},
    )
    started.append(process)
    return process


def finish(process):
    printed, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    return json.loads(printed)["result"]


def wait_until(condition, process):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def records(out):
    return sorted(Path(out, "records.jsonl").read_text().splitlines())


def parents():
    """Who started the processes in which the model was asked: on Ray, one per node."""
    return {path.name.split("-")[1] for path in Path().glob("pid-*")}


def test_a_run_on_a_cluster_of_its_own_is_that_of_one_process_and_nobody_else_can_reach_it(folder):
    process = start("ray", "--engine", "ray", "--workers", "2")
    wait_until(parents, process)
    listening = {
        ipaddress.ip_address(connection.laddr.ip.removeprefix("::ffff:")).is_loopback
        for child in psutil.Process(process.pid).children(recursive=True)
        for connection in child.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {True}
    children = psutil.Process(process.pid).children(recursive=True)
    finish(process)
    finish(start("local"))
    assert records("ray") == records("local")
    assert psutil.wait_procs(children, timeout=20)[1] == []


@pytest.mark.slow
def test_a_node_that_is_killed_in_the_middle_costs_nothing(folder):
    with two_nodes() as cluster:
        several = {"model": "slower", "RAY_ADDRESS": cluster.address, **ENVIRONMENT}
        process = start("ray", "--engine", "ray", "--workers", "2", **several)
        wait_until(lambda: len(parents()) == 2, process)
        cluster.kill_second_node()
        found = finish(process)
    assert found["timing"]["note"] == "1 worker process(es) died; their open calls were asked again"
    finish(start("local", model="slower"))
    assert records("ray") == records("local")


def test_the_ledger_tells_a_death_from_answers_that_were_lost():
    from prbench.calls.ray_data import ShardLedger

    ledger = ShardLedger(workers=1)
    for _ in range(3):  # the node that held its answers died each time: nobody died of the call
        assert ledger.begin(7, whole=False) == "go"
        ledger.end(7, answered=True)
    assert ledger.count() == 0
    assert [ledger.begin(7, whole=False) for _ in range(2)] == ["go", "give up"]
    assert [ledger.begin(8, whole=True) for _ in range(3)] == ["go", "go", "split"]
    assert ledger.count() == 3
    assert [ledger.begin(number, whole=True) for number in (9, 9, 9)][-1] == "hopeless"


crashes = pytest.mark.skipif("RAY_CRASHES" not in os.environ, reason="run by make test-ray")


@crashes
def test_a_call_that_kills_its_actor_fails_alone(folder):
    found = finish(start("ray", "--engine", "ray", "--workers", "2", model="poisoned", contexts="profile"))
    failed = [record for record in map(json.loads, records("ray")) if record["status"] == "failed"]
    assert [(record["pair"], record["reason"]) for record in failed] == [("u0a:tea", "the worker that was asked died")]
    assert found["usage"]["records"] == 96


@crashes
def test_a_model_that_always_kills_its_actor_is_an_error_in_the_end(folder):
    process = start("ray", "--engine", "ray", "--workers", "2", model="deadly", contexts="none")
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "error: py:ray_models:deadly: workers die before they answer" in said
