"""The clients: they raise, or drop and count; and they take exactly the calls that trainers make."""

import importlib
import inspect
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from prbench.errors import ConfigError
from prbench.serve import RewardClient, RewardError, ScoreItem, label, trl_reward
from prbench.serve.clients import openrlhf_reward, verl_reward
from prbench.serve.items import BadRequestError
from prbench.serve.rollout import answer_text, items_of
from prbench.types import Post
from serve_models import Adaptive, Recorder, known_score

trl_module = importlib.import_module("prbench.serve.clients.trl_reward")  # the package has a function of that name
SIGNATURES = json.loads(Path(__file__).with_name("signatures.json").read_text())
POSTS = ["I like tea."]
SHOWN = (Post(id="1", text="I like tea."),)


def signature(framework, part):
    (found,) = [row for row in SIGNATURES if row["framework"] == framework and part in row["call"]]
    return found


def expected(answer, question="Tea?"):
    return known_score(question, answer, SHOWN)


def item(answer):
    return {"question": "Tea?", "answer": answer, "posts": POSTS}


@pytest.fixture
def url(faulty):
    return str(faulty.base_url)


@pytest.fixture
def raising(url):
    with RewardClient(url) as client:
        yield trl_reward(client)


@pytest.fixture
def dropping(url):
    with RewardClient(url, on_error="drop") as client:
        yield trl_reward(client)


@pytest.fixture
def closed(monkeypatch):
    """The clients that modules keep for a process are those of one test."""
    opened = []

    def opening(*arguments, **settings):
        opened.append(RewardClient(*arguments, **settings))
        return opened[-1]

    for module, cached in ((openrlhf_reward, openrlhf_reward.environment_client), (verl_reward, verl_reward._client)):
        monkeypatch.setattr(module, "RewardClient", opening)
        cached.cache_clear()
    yield
    for client in opened:
        client.close()
    openrlhf_reward.environment_client.cache_clear()
    verl_reward._client.cache_clear()


@pytest.fixture
def reward_url(monkeypatch, closed, url):
    monkeypatch.setenv("PRBENCH_REWARD_URL", url)
    return url


def test_scores_come_in_the_order_of_the_items(url):
    answers = [f"answer {number}" for number in range(30)]
    with RewardClient(url, batch=7) as client:
        assert client.score([item(answer) for answer in answers]) == [expected(answer) for answer in answers]
        assert client.score([ScoreItem(question="Tea?", answer="x", posts=POSTS)]) == [expected("x")]
        assert client.score([]) == []
        assert (client.tally.asked, client.tally.scored, client.tally.retries) == (31, 31, 0)


@pytest.mark.parametrize(("answer", "kind"), [("nan", "invalid"), ("raise", "failed"), ("unanswered", "failed")])
def test_the_client_raises_or_drops_and_counts(url, answer, kind):
    with RewardClient(url) as client, pytest.raises(RewardError, match=rf"no score for item 1: .*\({kind}\)"):
        client.score([item("good"), item(answer)])
    with RewardClient(url, on_error="drop") as client:
        assert client.score([item("good"), item(answer), item("fine")]) == [expected("good"), None, expected("fine")]
        assert client.score([item(answer)]) == [None]
        assert (client.tally.asked, client.tally.scored, dict(client.tally.dropped)) == (4, 2, {kind: 2})


def test_a_request_that_is_wrong_raises_even_where_samples_are_dropped(url):
    with RewardClient(url, on_error="drop") as client, pytest.raises(RewardError, match=r"items\[0\]\.answer is 3"):
        client.score([{"question": "Tea?", "answer": 3}])
    with pytest.raises(ValueError, match="on_error is 'ignore'"):
        RewardClient(url, on_error="ignore")


class Scripted(BaseHTTPRequestHandler):
    """Answers as it is told, one reply after the other; the last one again and again."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        replies = self.server.replies
        status, headers, body = replies.pop(0) if len(replies) > 1 else replies[0]
        self.server.seen += 1
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(payload)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format, *args):
        """Say nothing."""


@pytest.fixture
def scripted():
    with ThreadingHTTPServer(("127.0.0.1", 0), Scripted) as server:
        server.seen = 0
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def client_of(server, **settings):
    settings = {"max_wait_s": 0.01, "retries": 3, **settings}
    return RewardClient(f"http://127.0.0.1:{server.server_port}", **settings)


def test_an_overloaded_server_is_asked_again_for_a_while(scripted):
    later = (503, {"Retry-After": "1"}, {"error": {"kind": "overloaded", "message": "4 items are waiting"}})
    scripted.replies = [later, later, (200, {}, {"items": [{"score": 2}]})]
    with client_of(scripted) as client:
        assert client.score([item("x")]) == [2.0]
        assert client.tally.retries == 2
    scripted.replies, scripted.seen = [later], 0
    with (
        client_of(scripted, on_error="drop") as client,
        pytest.raises(RewardError, match=r"4 tries.*4 items are waiting"),
    ):
        client.score([item("x")])
    assert scripted.seen == 4


@pytest.mark.parametrize(
    "body",
    [
        b'{"items": [{"score": NaN}]}',
        b'{"items": [{"score": Infinity}]}',
        {"items": [{"score": "0.5"}]},
        {"items": [{"score": True}]},
        {"items": [{"score": None}]},
        {"items": [{}]},
        {"items": [0.5]},
        {"items": []},
        {"items": [{"score": 1}, {"score": 2}]},
        {"items": {"score": 1}},
        {"scores": [0.5]},
        [0.5],
        b"0.5",
        b"",
    ],
)
def test_whatever_a_server_says_nothing_but_a_finite_number_is_a_score(scripted, body):
    scripted.replies = [(200, {}, body)]
    with client_of(scripted) as client, pytest.raises(RewardError):
        client.score([item("x")])


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422, 500])
@pytest.mark.parametrize(
    "body",
    [
        {"scores": [0.5], "reward": 0.5},
        {"items": [{"score": 0.5}], "error": {"kind": "internal", "message": "boom"}},
        {"items": [{"score": 0.5, "error": None}]},
    ],
)
def test_an_http_error_is_an_error_even_with_a_number_in_it(scripted, status, body):
    scripted.replies = [(status, {}, body)]
    with client_of(scripted, on_error="drop") as client, pytest.raises(RewardError, match=f"HTTP {status}"):
        client.score([item("x")])


@pytest.mark.parametrize("status", [200, 207, 422, 500])
def test_an_entry_with_an_error_is_dropped_even_with_a_number_in_it(scripted, status):
    entry = {"score": 0.5, "error": {"kind": "failed", "message": "boom"}}
    scripted.replies = [(status, {}, {"items": [entry]})]
    with client_of(scripted, on_error="drop") as client:
        assert client.score([item("x")]) == [None]
        assert client.tally.dropped == {"failed": 1}


def test_a_server_that_is_not_there_is_an_error():
    gone = RewardClient("http://127.0.0.1:9", retries=1, max_wait_s=0.01)
    with gone as client, pytest.raises(RewardError, match="2 tries; last: ConnectError"):
        client.score([item("x")])


def test_the_token_is_sent(start, monkeypatch):
    monkeypatch.setenv("REWARD_TOKEN", "s3cret")
    with start(Recorder(), token_env="REWARD_TOKEN") as server:
        address = str(server.base_url)
        with RewardClient(address, token_env="REWARD_TOKEN") as client:
            assert client.score([item("x")]) == [expected("x")]
            assert client.health()["model"] == "recorder"
        with RewardClient(address) as client, pytest.raises(RewardError, match="HTTP 401"):
            client.score([item("x")])


@pytest.mark.parametrize(
    "body", [{"error": {"message": "no: s3cret-token"}}, "x" * 460 + "s3cret-token", "s3cret-token"]
)
@pytest.mark.parametrize("status", [400, 503])
def test_an_echoed_token_is_in_no_error(scripted, monkeypatch, status, body):
    monkeypatch.setenv("REWARD_TOKEN", "s3cret-token")
    scripted.replies = [(status, {}, body)]
    address = f"http://127.0.0.1:{scripted.server_port}"
    client = RewardClient(address, token_env="REWARD_TOKEN", retries=0)
    with client, pytest.raises(RewardError) as refused:
        client.score([item("x")])
    assert f"HTTP {status}" in str(refused.value)
    assert "s3c" not in str(refused.value)


def test_a_score_of_400_digits_is_no_score(scripted):
    scripted.replies = [(200, {}, {"items": [{"score": 10**400}]})] * 2
    with client_of(scripted, on_error="drop") as client:
        assert client.score([item("x")]) == [None]
    with client_of(scripted) as client, pytest.raises(RewardError, match="no score for item 0") as refused:
        client.score([item("x")])
    assert len(str(refused.value)) <= 500


def test_judgments_go_through_the_client(start):
    with start(Adaptive()) as server, RewardClient(str(server.base_url)) as client:
        assert client.judge("a/b", "Which ink?", "red ink", "blue ink") == 1
        scores = client.score([{"question": "Q?", "answer": answer, "user": "a/b"} for answer in ("red", "blue")])
        assert scores == [1.0, 0.0]
        assert client.forget("a/b") == 1
    with (
        start(Recorder()) as server,
        RewardClient(str(server.base_url)) as client,
        pytest.raises(RewardError, match="fit_user"),
    ):
        client.judge("ann", "Which ink?", "red ink", "blue ink")


# ---------------------------------------------------------------- TRL


def trl_call(prompts, completions, **columns):
    """The call as TRL makes it."""
    recorded = signature("trl", "reward function")
    given = {"prompts": prompts, "completions": completions, "completion_ids": [[1]] * len(prompts)}
    assert sorted(given) == recorded["keywords"]
    return {**given, **dict.fromkeys(recorded["besides"]), **columns}


def test_trl_calls_it_with_texts(raising):
    logged = {}
    call = trl_call(["Tea?"] * 2, ["one", "two"], posts=[POSTS] * 2, log_metric=logged.__setitem__)
    inspect.signature(raising).bind(**call)
    assert raising(**call) == [expected("one"), expected("two")]
    assert logged == {"prbench/dropped": 0.0}
    assert not inspect.iscoroutinefunction(raising)


def test_trl_calls_it_with_conversations(raising):
    prompts = [[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Tea?"}]] * 2
    completions = [
        [{"role": "assistant", "content": "one"}],
        [{"role": "assistant", "content": [{"type": "text", "text": "two"}]}],
    ]
    assert raising(**trl_call(prompts, completions, posts=[POSTS] * 2)) == [expected("one"), expected("two")]
    with_question = trl_call(prompts, completions, posts=[POSTS] * 2, question=["Rain?"] * 2)
    assert raising(**with_question) == [expected("one", "Rain?"), expected("two", "Rain?")]


def test_trl_gets_none_for_a_dropped_sample_and_the_count(raising, dropping):
    logged = {}
    call = trl_call(["Tea?"] * 3, ["one", "nan", "raise"], posts=[POSTS] * 3, log_metric=logged.__setitem__)
    assert dropping(**call) == [expected("one"), None, None]
    assert logged == {"prbench/dropped": 2.0}
    with pytest.raises(RewardError):
        raising(**call)


def test_a_trl_that_pays_0_for_a_dropped_sample_is_refused(url, monkeypatch):
    def installed(version):
        monkeypatch.setattr(trl_module.metadata, "version", lambda name: version)

    with RewardClient(url, on_error="drop") as dropping, RewardClient(url) as raising:
        for old in ("0.29.1", "1.5.1"):
            installed(old)
            with pytest.raises(ConfigError, match=f"TRL {old} pays 0 for a dropped sample"):
                trl_reward(dropping)
            trl_reward(raising)
        for new in ("1.6.0", "1.16.0", "2.0.0.dev0"):
            installed(new)
            trl_reward(dropping)

        def missing(name):
            raise trl_module.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(trl_module.metadata, "version", missing)
        trl_reward(dropping)


def test_what_is_asked_of_trl_reward_must_be_what_its_client_does(url):
    with RewardClient(url) as client:
        with pytest.raises(ConfigError, match="on_error is 'drop', but the client was opened with 'raise'"):
            trl_reward(client, on_error="drop")
        with pytest.raises(ConfigError, match="token_env is 'TOKEN'"):
            trl_reward(client, token_env="TOKEN")
        trl_reward(client, on_error="raise")
    with RewardClient(url, on_error="drop") as client, pytest.raises(ConfigError, match="opened with 'drop'"):
        trl_reward(client, on_error="raise")


def test_trl_without_a_user_is_an_error(raising):
    with pytest.raises(RewardError, match="for whom"):
        raising(**trl_call(["Tea?"], ["one"]))
    with pytest.raises(RewardError, match="no turn of the user"):
        raising(**trl_call([[{"role": "system", "content": "x"}]], ["one"], user=["ann"]))


# ---------------------------------------------------------------- OpenRLHF

PROMPT = "<|im_start|>user\nTea?<|im_end|>\n<|im_start|>assistant\n"


def test_openrlhf_calls_the_file(reward_url, caplog):
    recorded = signature("openrlhf", "of a file")
    arguments = ([f"{PROMPT}one<|im_end|>"], [PROMPT], [label("Tea?", posts=POSTS)])
    assert len(arguments) == recorded["positional"]
    found = openrlhf_reward.reward_func(*arguments)
    assert sorted(found) == recorded["reads"]
    assert [float(reward) for reward in found["rewards"]] == pytest.approx([expected("one")])
    assert caplog.records == []
    with pytest.raises(RewardError, match="invalid"):
        openrlhf_reward.reward_func([f"{PROMPT}nan"], [PROMPT], [label("Tea?", posts=POSTS)])
    with pytest.raises(BadRequestError):
        openrlhf_reward.reward_func([f"{PROMPT}one"], [PROMPT], ["ann"])
    told = [record for record in caplog.records if record.name == openrlhf_reward._LOG.name]
    assert [record.levelname for record in told] == ["ERROR", "ERROR"]
    assert "no score for item 0" in told[0].getMessage()


def test_openrlhf_posts_to_the_url(faulty):
    payload = {"query": [f"{PROMPT}one</s>"], "prompts": [PROMPT], "labels": [label("Tea?", posts=POSTS)]}
    assert sorted(payload) == signature("openrlhf", "remote URL")["sends"]
    reply = faulty.post("/get_reward", json=payload)
    assert reply.status_code == 200
    assert reply.json() == {"rewards": [expected("one")], "scores": [expected("one")], "extra_logs": {}}


@pytest.mark.parametrize(
    ("query", "prompt", "label", "says"),
    [
        ("x", "Tea?", '{"question": "Tea?"}', r"query\[0\] does not begin with prompts\[0\]"),
        ("Tea?x", "Tea?", "ann", r"labels\[0\] is 'ann'"),
        ("Tea?x", "Tea?", '{"user": "ann"}', r"labels\[0\]: question is missing"),
        ("Tea?x", "Tea?", '{"question": "Tea?", "usr": "ann"}', r"labels\[0\]: usr"),
    ],
)
def test_openrlhf_samples_that_do_not_say_for_whom_are_refused(faulty, query, prompt, label, says):
    with pytest.raises(BadRequestError, match=says):
        items_of([query], [prompt], [label])
    assert (
        faulty.post("/get_reward", json={"query": [query], "prompts": [prompt], "labels": [label]}).status_code == 400
    )


def test_openrlhf_lists_of_different_length_are_refused():
    with pytest.raises(BadRequestError, match="2 queries, 1 prompts and 1 labels"):
        items_of(["a", "b"], ["a"], ["{}"])


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("Green.<|im_end|>", "Green."),
        ("Green.</s>", "Green."),
        ("Green.<｜end▁of▁sentence｜>", "Green."),
        ("Green.<end_of_turn>\n<eos>", "Green."),
        ("\n\nGreen.", "Green."),
        ("a <|b|> c", "a <|b|> c"),
        ("x < y", "x < y"),
        ("<|eot_id|>", ""),
    ],
)
def test_the_policys_end_tokens_are_taken_off(written, answer):
    assert answer_text(written) == answer


# ---------------------------------------------------------------- verl


def verl_call(part, **given):
    assert sorted(given) == signature("verl", part)["keywords"]
    return given


def test_verl_calls_it_for_one_sample(reward_url):
    info = {"question": "Tea?", "posts": POSTS, "index": 3}
    call = verl_call("naive", data_source="mirror", solution_str="one", ground_truth="", extra_info=info)
    assert verl_reward.compute_score(**call) == expected("one")
    assert verl_reward.compute_score(**call, url=reward_url, reward_router_address="127.0.0.1:1") == expected("one")
    with pytest.raises(RewardError, match="invalid"):
        verl_reward.compute_score(**{**call, "solution_str": "nan"})


def test_verl_calls_it_for_a_batch(reward_url):
    import numpy

    infos = [{"question": "Tea?", "posts": numpy.array(POSTS, dtype=object)}] * 2
    texts = {"solution_strs": ["one", "two"], "ground_truths": ["", ""]}
    call = verl_call("batch", data_sources=["mirror"] * 2, extra_infos=infos, **texts)
    assert verl_reward.compute_score_batch(**call) == [expected("one"), expected("two")]
    with pytest.raises(RewardError, match="no score for item 1"):
        verl_reward.compute_score_batch(**{**call, "solution_strs": ["one", "raise"]})


def test_verl_posts_with_an_id_are_shown_as_the_benchmark_shows_them(start, closed):
    import numpy

    model = Recorder()
    posts = numpy.array([{"id": "7", "text": "I like tea."}, "I sleep badly."], dtype=object)
    with start(model) as server:
        info = {"question": "Tea?", "posts": posts, "plan": numpy.array(["Names one kind"], dtype=object)}
        verl_reward.compute_score("mirror", "one", "", info, url=str(server.base_url))
    (view,) = model.batches[-1]
    assert [(post.id, post.text) for post in view.posts] == [("7", "I like tea."), ("2", "I sleep badly.")]


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("posts", [3], r"extra_info\['posts'\]\[0\] is 3"),
        ("posts", ["I like tea.", ["a", "list"]], r"extra_info\['posts'\]\[1\] is \['a', 'list'\]"),
        ("posts", "I like tea.", r"extra_info\['posts'\] is 'I like tea.'; it should be a list"),
        ("posts", {"id": "7", "text": "I like tea."}, "it should be a list"),
        ("plan", [{"aspect": "Names one kind"}], r"extra_info\['plan'\]\[0\] is .*; it should be a text"),
    ],
)
def test_verl_posts_that_are_no_texts_are_refused(reward_url, name, given, says):
    with pytest.raises(RewardError, match=says):
        verl_reward.compute_score("mirror", "one", "", {"question": "Tea?", "posts": POSTS, name: given})


@pytest.mark.parametrize("info", [None, {}, {"question": "Tea?"}, {"user": "ann"}])
def test_verl_rows_that_do_not_say_for_whom_are_refused(reward_url, info):
    with pytest.raises(RewardError, match="for whom"):
        verl_reward.compute_score("mirror", "one", "", info)


def test_without_an_address_there_is_nobody_to_ask(monkeypatch):
    monkeypatch.delenv("PRBENCH_REWARD_URL", raising=False)
    openrlhf_reward.environment_client.cache_clear()
    with pytest.raises(ConfigError, match="PRBENCH_REWARD_URL is not set"):
        verl_reward.compute_score("mirror", "one", "", {"question": "Tea?", "user": "ann"})
