"""A real vLLM server on loopback: `http:` scores what `hf:` scores, activated scores are refused, prefixes are cached.

Run by `make test-vllm`, which installs vLLM into an environment of its own and names its Python in VLLM_PYTHON.
"""

import json
import math
import os
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

import pytest

import tiny_models
from prbench.config import ModelOptions
from prbench.data import load_pairs
from prbench.errors import ModelError
from prbench.models import load_model
from prbench.models.local import weights
from prbench.models.remote.known_score import probe_score
from prbench.types import AnswerView, PairView, Post

pytestmark = pytest.mark.skipif("VLLM_PYTHON" not in os.environ, reason="make test-vllm")

START_S = 600
QUIET = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
}


@contextmanager
def vllm(folder, name, log, *arguments):
    """Serve a folder; yields the server's URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [os.environ["VLLM_PYTHON"], "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--model", str(folder), "--served-model-name", name, "--dtype", "float32"]
    command += ["--enforce-eager", "--max-num-seqs", "8", *arguments]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **QUIET})
        try:
            wait_until_up(url, process, log)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=60)


def wait_until_up(url, process, log):
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    pytest.fail("vLLM did not start:\n" + log.read_text()[-4000:])


@contextmanager
def deaf_gateway(url):
    """A gateway that drops a field it does not know, as an older server would ignore it."""

    class Gateway(BaseHTTPRequestHandler):
        def do_GET(self):
            self.forward(None)

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body.pop("use_activation", None)
            self.forward(json.dumps(body).encode())

        def forward(self, body):
            headers = {"Content-Type": "application/json"}
            with urllib.request.urlopen(urllib.request.Request(url + self.path, body, headers)) as reply:
                payload = reply.read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format, *args):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def reward_model(tmp_path_factory):
    """As small as vLLM's attention on CPU takes: heads of 32."""
    return tiny_models.save_reward_model(
        tmp_path_factory.mktemp("models") / "rm",
        seed=3,
        pad_token="<pad>",
        pad_token_id=5,
        hidden_size=128,
        intermediate_size=128,
        initializer_range=0.15,
    )


@pytest.fixture(scope="module")
def pooling(reward_model, tmp_path_factory):
    log = tmp_path_factory.mktemp("vllm") / "pooling.log"
    with vllm(reward_model, "tiny/rm", log, "--runner", "pooling", "--max-model-len", "512") as url:
        yield url


def answer_views():
    posts = tuple(Post(id=str(number), text=text) for number, text in enumerate(tiny_models.CORPUS[:2]))
    return [
        AnswerView(question, answer, shown, user="ann")
        for question in tiny_models.CORPUS[2:6]
        for answer in ("One clear step.", "Show me the numbers first; then, as ever, the reason behind them.")
        for shown in ((), posts)
    ]


def test_the_server_scores_what_the_weights_score_here(pooling, reward_model):
    served, local = load_model(f"http:vllm:tiny/rm@{pooling}"), load_model(f"hf:{reward_model}")
    views = answer_views()
    there, here = dict(served.rate(views)), dict(local.rate(views))
    scores = [there[index].score for index in range(len(views))]
    assert scores == pytest.approx([here[index].score for index in range(len(views))], rel=1e-2, abs=1e-3)
    assert len({round(score, 3) for score in scores}) == len(views)
    assert any(not 0 <= score <= 1 for score in scores)
    # Not one special token more or less than here.
    assert [there[index].tokens_in for index in there] == [here[index].tokens_in for index in there]
    assert served.window == 512


def test_a_known_logit_is_checked_on_connect(pooling, reward_model):
    address = f"http:vllm:tiny/rm@{pooling}"
    known = probe_score(f"hf:{reward_model}")
    load_model(address, ModelOptions(expect_logit=known))
    with pytest.raises(ModelError, match="was expected"):
        load_model(address, ModelOptions(expect_logit=known + 0.5))


def test_activated_scores_are_refused(pooling, reward_model):
    known = probe_score(f"hf:{reward_model}")
    with deaf_gateway(pooling) as url:
        with pytest.raises(ModelError, match="look like activated scores"):
            load_model(f"http:vllm:tiny/rm@{url}")
        with pytest.raises(ModelError, match="that is its sigmoid"):
            load_model(f"http:vllm:tiny/rm@{url}", ModelOptions(expect_logit=known))
        assert 1 / (1 + math.exp(-known)) == pytest.approx(probe_through(url), rel=1e-2)


def probe_through(url):
    """What the deaf gateway gives for the probe, past our checks."""
    from prbench.models.remote.known_score import PROBES

    messages = [{"role": "user", "content": PROBES[0].question}, {"role": "assistant", "content": PROBES[0].answer}]
    body = json.dumps({"model": "tiny/rm", "messages": messages, "use_activation": False}).encode()
    request = urllib.request.Request(f"{url}/pooling", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["data"][0]["data"][0]


def test_what_is_too_long_is_refused_not_cut(pooling):
    served = load_model(f"http:vllm:tiny/rm@{pooling}")
    view = AnswerView("Which tea?", "tea " * 600)
    assert served.length(served.render(view)) > 512
    [(_, outcome)] = served.rate([view])
    assert (outcome.status, outcome.score) == ("failed", None)
    assert "512" in outcome.reason


def test_a_judges_prompts_share_their_prefix(tmp_path):
    """Two users' pairs in both orders: the posts of each are read once."""
    folder = weights.pull("smollm2")
    by_user = load_pairs("mirror", split="validation").by_user()
    pairs = [pair for _, own in islice(by_user.items(), 2) for pair in own[:2]]
    shown = [PairView(pair.question, pair.chosen, pair.rejected, pair.profile[:6], user=pair.user) for pair in pairs]
    views = [view for pair in zip(shown, (view.swap() for view in shown), strict=True) for view in pair]
    arguments = ["--enable-prefix-caching", "--enable-prompt-tokens-details", "--max-model-len", "4096"]
    with vllm(Path(folder), "smollm2", tmp_path / "chat.log", *arguments) as url:
        judge = load_model(
            f"chat:smollm2@{url}/v1", ModelOptions(max_tokens=12, concurrency=1, timeout_s=300, retries=0)
        )
        outcomes = dict(judge.compare(views))
    # A model of this size seldom gives a verdict that can be read; it must never be guessed, and every call answered.
    assert {outcome.status for outcome in outcomes.values()} <= {"ok", "invalid"}
    assert all(outcome.raw for outcome in outcomes.values())
    assert judge.effort.naive_tokens == sum(outcome.tokens_in for outcome in outcomes.values())
    assert judge.effort.computed_tokens < 0.6 * judge.effort.naive_tokens
