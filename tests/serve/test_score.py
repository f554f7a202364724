"""POST /score: what comes back for what, and that an error is never a number."""

import json
import threading
import time

import httpx
import pytest
from prometheus_client import generate_latest

from prbench.data import Suite
from prbench.errors import ModelError
from prbench.serve.rollout import answer_text
from prbench.serve.service import RewardService
from prbench.types import Post
from serve_models import Faulty, Recorder, known_score
from small_suite import follows_posts

POSTS = (Post(id="1", text="I like tea."),)
ANN = {"question": "Tea?", "posts": ["I like tea."], "answer": "Green."}


def item(answer, **fields):
    return {**ANN, "answer": answer, **fields}


def test_scores_come_in_the_order_of_the_items(start, ask):
    with start(Recorder()) as client:
        answers = [f"answer {number}" for number in range(50)]
        response = client.post("/score", json={"items": [item(answer) for answer in answers]})
    assert response.status_code == 200
    expected = [known_score("Tea?", answer, POSTS) for answer in answers]
    revision = response.json()["revision"]
    assert len(revision) == 16
    assert response.json() == {
        "scores": expected,
        "items": [{"score": score} for score in expected],
        "revision": revision,
    }


@pytest.mark.parametrize(
    ("answer", "kind", "status"),
    [
        ("nan", "invalid", 422),
        ("inf", "invalid", 422),
        ("-inf", "invalid", 422),
        ("unreadable", "invalid", 422),
        ("nothing", "invalid", 422),
        ("smuggled", "invalid", 422),
        ("unanswered", "failed", 500),
        ("raise", "failed", 500),
    ],
)
def test_an_error_is_never_a_number(faulty, answer, kind, status):
    alone = faulty.post("/score", json={"items": [item(answer)]})
    among = faulty.post("/score", json={"items": [item("good"), item(answer), item("fine")]})
    label = json.dumps({"question": "Tea?", "posts": ["I like tea."]})
    remote = faulty.post("/get_reward", json={"query": [f"Q{answer}"], "prompts": ["Q"], "labels": [label]})
    assert (alone.status_code, alone.json()["scores"]) == (status, [None])
    assert alone.json()["items"][0]["error"]["kind"] == kind
    assert among.status_code == 207
    assert [sorted(entry) for entry in among.json()["items"]] == [["score"], ["error"], ["score"]]
    assert among.json()["scores"][1] is None
    assert among.json()["items"][1]["error"]["kind"] == kind
    assert remote.status_code == status
    assert set(remote.json()) == {"error"}


def test_one_item_that_breaks_the_model_costs_its_neighbours_nothing(start, ask):
    model = Faulty()
    with start(model, max_wait_ms=200) as client:
        status, entries = ask(client, item("one"), item("raise"), item("two"))
    assert status == 207
    assert [entry.get("score") for entry in entries] == [
        known_score("Tea?", "one", POSTS),
        None,
        known_score("Tea?", "two", POSTS),
    ]
    assert "RuntimeError" in entries[1]["error"]["message"]
    assert [len(batch) for batch in model.batches] == [3, 1, 1, 1]


def test_a_model_that_breaks_its_protocol_does_not_hang_the_server(start, ask):
    class Mad(Recorder):
        def rate(self, views):
            yield 0, "a number, honestly"

    with start(Mad()) as client:
        status, entries = ask(client, item("one"))
        assert (status, entries[0]["error"]["kind"]) == (500, "failed")
        assert client.get("/health").json()["status"] == "ready"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "the body is not JSON"),
        (b"[]", "the body is []"),
        (b'{"items": []}', "items is []"),
        (
            b'{"items": [{"question": "Tea?", "answer": "x"}, {"question": "Tea?", "answer": 3}]}',
            "items[1].answer is 3",
        ),
        (b'{"items": [{"question": "Tea?"}]}', "items[0].answer is missing"),
        (b'{"items": [{"question": "", "answer": "x"}]}', "items[0].question is ''"),
        (b'{"items": [{"question": "T", "answer": "x", "profile": ["p"]}]}', "items[0].profile is ['p']"),
        (b'{"items": [{"question": "T", "answer": "x", "posts": "p"}]}', "items[0].posts is 'p'"),
        (b'{"items": [{"question": "T", "answer": "x", "posts": [""]}]}', "items[0].posts[0].text is ''"),
        (b'{"items": [{"question": "T", "answer": "\\ud800"}]}', "the body is not JSON"),
    ],
)
def test_a_wrong_request_is_told_where_and_what(faulty, body, says):
    response = faulty.post("/score", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert says in response.json()["error"]["message"]


@pytest.mark.parametrize("answer", ["", " \n\t", ".....", "?! — …", "***"])
def test_an_answer_that_says_nothing_earns_less_than_any_sound_one_and_stops_nobody(start, ask, suite, answer):
    sound = [{"question": pair.question, "answer": pair.chosen, "user": pair.user} for pair in suite]
    with start(Recorder()) as client:
        status, entries = ask(client, item(answer), item("Green."))
        _, scored = ask(client, *sound)
    assert status == 200
    assert entries[0]["degenerate"] is True
    assert "degenerate" not in entries[1]
    assert entries[0]["score"] < min(entry["score"] for entry in scored)
    assert entries[0]["score"] < entries[1]["score"]


def test_the_floor_can_be_set_or_taken_away(start, ask):
    with start(Recorder(), floor=-7.5) as client:
        assert ask(client, item("..."))[1] == [{"score": -7.5, "degenerate": True}]
    with start(Recorder(), floor="off") as client:
        assert ask(client, item("..."))[1] == [{"score": known_score("Tea?", "...", POSTS)}]
    with start(Recorder(), suite=Suite.of([]), context="none") as client:
        status, [entry] = ask(client, item(""))
    assert (status, entry["error"]["kind"]) == (422, "unfit")
    assert "--floor VALUE" in entry["error"]["message"]


def test_servers_with_other_floors_do_not_share_a_cache(start, ask):
    class Reusable(Recorder):
        def __init__(self):
            super().__init__()
            self.card = self.card.model_copy(update={"reusable": True})

    found = []
    for floor in ("auto", "off", -5.0, -7.5):
        with start(Reusable(), floor=floor) as client:
            found.append(client.get("/health").json()["revision"])
            ask(client, item("..."))
            assert client.get("/health").json()["revision"] == found[-1] != ""
    assert len(set(found)) == 4


def test_a_body_that_is_too_large_is_cut_off_while_it_comes(start):
    sent = 0

    def endless():
        nonlocal sent
        while sent < 50_000_000:
            sent += 65536
            yield b" " * 65536

    with start(Recorder(), max_body=200_000) as client:
        told = client.post("/score", content=b" " * 200_001, headers={"Content-Type": "application/json"})
        try:
            status = client.post("/score", content=endless(), headers={"Content-Type": "application/json"}).status_code
        except httpx.WriteError:  # the server has closed already
            status = 413
        assert client.post("/score", json={"items": [ANN]}).status_code == 200
    assert (told.status_code, status) == (413, 413)
    assert sent < 20_000_000


def test_only_json_is_taken(faulty):
    body = json.dumps({"items": [ANN]})
    assert faulty.post("/score", content=body, headers={"Content-Type": "text/plain"}).status_code == 415
    assert faulty.post("/score", content=body).status_code == 415


def test_the_token_opens_everything_but_the_bare_health(start, monkeypatch):
    monkeypatch.setenv("REWARD_TOKEN", "s3cret")
    with start(Recorder(), token_env="REWARD_TOKEN") as client:
        for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}):
            refused = client.post("/score", json={"items": [ANN]}, headers=header)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            assert client.get("/metrics", headers=header).status_code == 401
            assert client.delete("/users/ann/feedback", headers=header).status_code == 401
        assert client.get("/health").json() == {"status": "ready"}
        known = {"Authorization": "Bearer s3cret"}
        assert client.post("/score", json={"items": [ANN]}, headers=known).status_code == 200
        assert client.get("/health", headers=known).json()["model"] == "recorder"


@pytest.mark.parametrize(
    ("name", "status"),
    [("evil.example", 421), ("evil.example:80", 421), ("localhost", 200), ("[::1]:9", 200), ("[::1", 400)],
)
def test_on_loopback_a_foreign_name_is_refused(faulty, name, status):
    assert faulty.get("/health", headers={"Host": name}).status_code == status


def test_what_is_not_there_is_told_like_any_error(faulty):
    for method, path, status in (("GET", "/nothing", 404), ("GET", "/score", 405), ("POST", "/users/zoe", 404)):
        refused = faulty.request(method, path)
        assert refused.status_code == status
        assert refused.json() == {"error": {"kind": "path", "message": f"there is no {method} {path}"}}
    assert "POST" in faulty.get("/score").headers["allow"]


def test_a_bug_is_in_the_log_and_not_in_the_reply(start, monkeypatch, caplog):
    def broken(*_):
        raise ValueError("secret/path")

    monkeypatch.setattr(RewardService, "judged", broken)
    with start(Faulty()) as client:
        refused = client.get("/users/zoe/feedback")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (500, "internal")
    assert "secret" not in refused.text
    assert "ValueError: secret/path" in caplog.text


def test_overload_is_told_with_a_time_to_come_again(start, ask):
    model = Recorder()
    model.gate.clear()
    with start(model, max_queue=4, max_batch=2, max_wait_ms=0) as client:
        waiting = [threading.Thread(target=ask, args=(client, item(f"{n}a"), item(f"{n}b"))) for n in range(3)]
        for number, thread in enumerate(waiting):
            thread.start()
            wait_until(lambda: model.batches)
            wait_for(client, f"prbench_queue_items {2 * number}.0\n")
        refused = client.post("/score", json={"items": [item("x")]})
        model.gate.set()
        for thread in waiting:
            thread.join()
        assert ask(client, item("x"))[0] == 200
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error"]["kind"] == "overloaded"


def wait_until(happened, seconds=20):
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.005)


def wait_for(client, line):
    wait_until(lambda: line in client.get("/metrics").text)


def test_metrics_count_what_happened(start, ask):
    with start(Faulty()) as client:
        ask(client, item("one"), item("two"), item("two"), item("nan"))
        client.post("/score", content=b"{", headers={"Content-Type": "application/json"})
        page = client.get("/metrics").text
    lines = page.splitlines()
    for line in (
        'prbench_requests_total{path="/score",status="207"} 1.0',
        'prbench_requests_total{path="/score",status="400"} 1.0',
        "prbench_items_total 3.0",
        'prbench_errors_total{kind="invalid"} 1.0',
        'prbench_errors_total{kind="request"} 1.0',
        "prbench_items_shared_total 1.0",
        "prbench_batch_items_count 1.0",
        "prbench_batch_items_sum 4.0",
        "prbench_queue_items 0.0",
    ):
        assert line in lines
    assert [line for line in lines if line.startswith("prbench_request_seconds_count")]


def test_each_server_counts_for_itself(start, ask, tmp_path):
    with start(Faulty()) as one, start(Faulty(), state=tmp_path / "other.jsonl") as other:
        ask(one, item("one"), item("two"))
        pages = [client.get("/metrics") for client in (one, other)]
    assert "prbench_items_total 2.0\n" in pages[0].text
    assert "prbench_items_total 0.0\n" in pages[1].text
    assert pages[0].headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b"prbench_items" not in generate_latest()  # of the program that they are part of


@pytest.mark.parametrize(
    ("filler", "is_end"), [("\n", True), ("<pad>", True), ("\n<|im_end|>", True), ("<|", False), ("|>", False)]
)
def test_a_long_answer_does_not_keep_the_server_busy(faulty, filler, is_end):
    label = json.dumps({"question": "Tea?", "posts": ["I like tea."]})
    inner = "x" + filler * (100_000 // len(filler)) + "y"
    began = time.perf_counter()
    reply = faulty.post("/get_reward", json={"query": [f"Q{inner}<pad>\n"], "prompts": ["Q"], "labels": [label]})
    assert reply.json()["rewards"] == [known_score("Tea?", inner, POSTS)]
    assert answer_text(inner[:-1]) == ("x" if is_end else inner[:-1])
    assert time.perf_counter() - began < 5


def test_what_a_function_raised_is_in_the_log_and_not_in_the_reply(start, ask, caplog):
    def fussy(question, answer):
        if answer == "raise":
            raise ValueError("secret/path")
        return 1.0

    with start(fussy, context="none") as client:
        assert ask(client, item("one"))[0] == 200
        reply = client.post("/score", json={"items": [item("raise"), item("two")]})
    assert reply.json()["scores"] == [None, 1.0]
    assert "secret" not in reply.text
    assert "secret/path" in caplog.text


def test_why_a_model_cannot_be_shown_an_item_is_in_the_log_and_not_in_the_reply(start, ask, caplog):
    class Fussy(Recorder):
        def render(self, view):
            if view.answer == "raise":
                raise ModelError("secret/path")
            return super().render(view)

    with start(Fussy()) as client:
        status, [entry] = ask(client, item("raise"))
    assert (status, entry["error"]["kind"]) == (422, "unfit")
    assert "secret" not in entry["error"]["message"]
    assert "secret/path" in caplog.text


def test_a_function_is_served_too(start, ask):
    with start(follows_posts) as client:
        status, entries = ask(client, {"question": "Which?", "answer": "red", "posts": ["red red"]})
    assert (status, entries) == (200, [{"score": 2.0}])
