"""The server as a process of its own: many clients at once, a clean stop, and what a kill leaves behind."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from prbench.data import write_pairs
from prbench.errors import ConfigError
from prbench.serve import ServeConfig, serve
from serve_models import known_score
from small_suite import mirrored

SUPPORT = Path(__file__).parents[1] / "support"
START_S = 90
CLIENTS = 64
PAIRS = mirrored(couples=3, questions=4)


def in_a_thread(work):
    """A browser's driver may keep a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def command(folder, *options):
    write_pairs(PAIRS, folder / "pairs.jsonl")
    arguments = ["--suite", str(folder / "pairs.jsonl"), "--port", "0", "--state", str(folder / "judged.jsonl")]
    return [sys.executable, "-m", "prbench", "serve", *arguments, *options]


def environment():
    path = os.pathsep.join(filter(None, [str(SUPPORT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


@contextmanager
def server(folder, *options):
    """Yields the process and its URL; whatever happens, the process is gone afterwards."""
    process = subprocess.Popen(
        command(folder, *options),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    guard = threading.Timer(START_S, process.kill)
    guard.start()
    try:
        line = process.stdout.readline()
        guard.cancel()
        found = re.match(r"(http://127\.0\.0\.1:\d+) ", line)
        assert found, process.stderr.read()
        yield process, found[1]
    finally:
        guard.cancel()
        process.kill()
        process.communicate()


def item(pair, answer):
    return {"question": pair.question, "answer": answer, "user": pair.user}


def expected(pair, answer):
    return known_score(pair.question, answer, pair.profile)


async def one_client(url, number, rounds):
    """Asks for its own answers, alone and in small batches, over its own connection; returns what is wrong."""
    wrong = []
    async with httpx.AsyncClient(base_url=url, timeout=120) as client:
        for turn in range(rounds):
            asked = [
                (PAIRS[(number + turn + place) % len(PAIRS)], f"client {number}, turn {turn}, answer {place}")
                for place in range(1 + (number + turn) % 4)
            ]
            response = await client.post("/score", json={"items": [item(*one) for one in asked]})
            scores = response.json().get("scores")
            if response.status_code != 200 or scores != [expected(*one) for one in asked]:
                wrong.append((number, turn, response.status_code, scores))
    return wrong


def test_64_clients_at_once_get_their_own_answers_and_all_of_them(tmp_path):
    async def all_clients(url):
        return await asyncio.gather(*(one_client(url, number, rounds=5) for number in range(CLIENTS)))

    with server(tmp_path, "--model", "py:serve_models:Slow", "--max-wait-ms", "5") as (process, url):
        wrong = in_a_thread(all_clients(url))
        page = httpx.get(f"{url}/metrics").text
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert wrong == [[]] * CLIENTS
    items = sum(1 + (number + turn) % 4 for number in range(CLIENTS) for turn in range(5))
    assert f"prbench_items_total {items}.0\n" in page
    batches = int(re.search(r"^prbench_batch_items_count (\d+)", page, re.MULTILINE)[1])
    assert batches < items / 4  # they were scored together


def test_told_to_stop_it_answers_what_it_has_and_refuses_the_rest(tmp_path):
    answers = [f"answer {number}" for number in range(16)]

    async def scenario(process, url):
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:
            body = [{"items": [item(PAIRS[0], answer)]} for answer in answers]
            accepted = [asyncio.ensure_future(client.post("/score", json=one)) for one in body]
            while "prbench_queue_items 0.0\n" in (await client.get("/metrics")).text:
                await asyncio.sleep(0.01)
            while sum(map(int, re.findall(r"queue_items (\d+)", (await client.get("/metrics")).text))) < 8:
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            while (health := await client.get("/health")).status_code == 200:
                await asyncio.sleep(0.01)
            late = await client.post("/score", json={"items": [item(PAIRS[0], "late")]})
            return await asyncio.gather(*accepted), health, late

    with server(tmp_path, "--model", "py:serve_models:VerySlow", "--max-batch", "4") as (process, url):
        accepted, health, late = in_a_thread(scenario(process, url))
        assert process.wait(30) == 0
        assert "everything accepted was answered" in process.stderr.read()
    assert [reply.json().get("scores") for reply in accepted] == [[expected(PAIRS[0], answer)] for answer in answers]
    assert (health.status_code, health.json()["status"]) == (503, "draining")
    assert (late.status_code, "retry-after" in late.headers) == (503, True)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


@pytest.mark.parametrize(("model", "count"), [("Stuck", 1), ("Slow", 2000)])
def test_told_twice_it_does_not_wait_and_does_not_claim_that_all_was_answered(tmp_path, model, count):
    """Whether the model is at the last item already, or more waits."""
    body = {"items": [item(PAIRS[0], str(number)) for number in range(count)]}
    with (
        server(tmp_path, "--model", f"py:serve_models:{model}", "--max-batch", "1") as (process, url),
        ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(httpx.post, f"{url}/score", json=body, timeout=60)
        while "prbench_batch_items_count 0.0\n" in httpx.get(f"{url}/metrics").text:
            assert not asked.done()
        process.send_signal(signal.SIGTERM)
        while httpx.get(f"{url}/health").status_code != 503:
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 1
        assert "stopped before everything was answered" in process.stderr.read()
        assert asked.exception() or asked.result().status_code >= 500


def test_a_judgment_survives_a_kill(tmp_path):
    judgment = {"question": "Which ink?", "chosen": "red ink", "rejected": "blue ink"}
    with server(tmp_path, "--model", "py:serve_models:Adaptive") as (process, url):
        assert httpx.post(f"{url}/users/zoe/feedback", json=judgment).status_code == 200
        process.kill()  # as hard as can be, right after it was confirmed
        process.wait(30)
    with (tmp_path / "judged.jsonl").open("ab") as file:
        file.write(b'{"user": "zoe", "question": "To')  # the trace of a write that was cut short
    with server(tmp_path, "--model", "py:serve_models:Adaptive") as (process, url):
        assert httpx.get(f"{url}/users/zoe/feedback").json()["judgments"] == [judgment]
        items = [{"question": "Which kite?", "answer": answer, "user": "zoe"} for answer in ("red kite", "blue kite")]
        assert httpx.post(f"{url}/score", json={"items": items}).json()["scores"] == [1.0, 0.0]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_what_breaks_the_model_is_told_on_the_servers_side(tmp_path):
    with server(tmp_path, "--model", "py:serve_models:Faulty") as (process, url):
        reply = httpx.post(f"{url}/score", json={"items": [item(PAIRS[0], "raise")]})
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        said = process.stderr.read()
    assert "out of memory" not in reply.text
    assert "Traceback" in said
    assert "RuntimeError: out of memory" in said


def test_a_mistake_is_a_message_and_a_hint(tmp_path):
    options = ("--model", "py:small_suite:likes_first")
    found = subprocess.run(
        command(tmp_path, *options), cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=START_S
    )
    assert found.returncode == 2
    assert "compares two answers" in found.stderr
    assert "hint: serve a Rater" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_port_that_is_taken_is_told_before_a_model_is_loaded(tmp_path):
    with taken_port() as port, pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}") as caught:
        serve(ServeConfig.of(model="py:no_such:thing", port=port, state=tmp_path / "judged.jsonl"), print)
    assert "--port" in caught.value.hint


@contextmanager
def taken_port():
    """A port that is taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]
