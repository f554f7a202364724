"""`chat:` against a real server that goes wrong: a fault never changes a verdict, and every one is counted."""

import asyncio
import gc
import json
import logging
import os
import re
import signal
import threading
import time
from email.utils import formatdate

import pytest

from fake_server import FakeServer, Fault, chat_reply, every, first_attempts, where
from prbench.config import ModelOptions, Price
from prbench.errors import AddressError, ModelError, TemplateError
from prbench.models import load_model
from prbench.models.protocols import Windowed
from prbench.models.remote.chat import ChatComparer, ChatRater, load, load_generator
from prbench.models.remote.wire import Backoff
from prbench.types import AnswerView, Channel, Message, PairView, Post, Prompt

FAST = Backoff(initial_s=0.001, max_s=0.01, jitter_s=0.001, retry_after_max_s=0.05)
POSTS = (Post(id="p1", text="I drink only green tea."), Post(id="p2", text="Lists, please."))
CYCLE = ("Result: A", "Result: B", "Result: tie")
VERDICTS = ("first", "second", "tie")


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def options(**changes):
    return ModelOptions(**{"timeout_s": 5.0, "retries": 3, "concurrency": 4, **changes})


def judge(server, mode="compare", **changes):
    return load(f"org/judge:1@{server.url}#{mode}", options(**changes), backoff=FAST)


def pair_views(count):
    return [PairView(f"Question number {number}?", "Sencha.", "Assam.", POSTS, user="ann") for number in range(count)]


def number_of(body):
    return int(body["messages"][-1]["content"].split("Question number ")[1].split("?")[0])


def cycling(body):
    return CYCLE[number_of(body) % 3]


def verdicts(outcomes):
    return [outcomes[index].verdict for index in sorted(outcomes)]


PASSING = {
    "429": Fault("status", 429),
    "429 with seconds": Fault("status", 429, retry_after="0"),
    "429 with a long wait": Fault("status", 429, retry_after="3600"),
    "429 with a date": Fault("status", 429, retry_after=formatdate(time.time() + 3600, usegmt=True)),
    "429 with nonsense": Fault("status", 429, retry_after="soon"),
    "408": Fault("status", 408),
    "500": Fault("status", 500),
    "503": Fault("status", 503, retry_after="0"),
    "half a JSON": Fault("half_json"),
    "half a reply": Fault("half_sent"),
    "wrong schema": Fault("wrong_schema"),
    "empty choices": Fault("empty_choices"),
    "nested too deep": Fault("body", body=b"[" * 50_000),
    "not UTF-8": Fault("body", body=b'{"choices": "\xff"}'),
    "reset": Fault("reset"),
    "slow": Fault("slow"),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_fault_that_passes_changes_nothing(fault):
    with FakeServer(cycling, plan=first_attempts(1, fault)) as server:
        outcomes = dict(judge(server).compare(pair_views(9)))
    assert verdicts(outcomes) == [VERDICTS[number % 3] for number in range(9)]
    assert {outcome.status for outcome in outcomes.values()} == {"ok"}
    assert len(server.requests) == (9 if fault.kind == "slow" else 18)


@pytest.mark.parametrize("kind", ["hang", "drip"])
def test_a_time_out_passes_too(kind):
    with FakeServer(cycling, plan=first_attempts(1, Fault(kind))) as server:
        outcomes = dict(judge(server, timeout_s=0.6).compare(pair_views(4)))
    assert verdicts(outcomes) == ["first", "second", "tie", "first"]


def test_faults_here_and_there_change_nothing():
    faults = list(PASSING.values())

    def plan(seen):
        return faults[seen.number % len(faults)] if seen.number % 3 == 0 and seen.attempt < 3 else None

    with FakeServer(cycling, plan=plan) as server:
        outcomes = dict(judge(server).compare(pair_views(40)))
    assert verdicts(outcomes) == [VERDICTS[number % 3] for number in range(40)]
    assert len(server.requests) > 40


PERMANENT = {
    "429": (Fault("status", 429), "HTTP 429: .*injected fault"),
    "500": (Fault("status", 500), "HTTP 500: .*injected fault"),
    "hang": (Fault("hang"), "no answer within 0.6 s"),
    "drip": (Fault("drip"), "no answer within 0.6 s"),
    "half a JSON": (Fault("half_json"), "not JSON"),
    "half a reply": (Fault("half_sent"), "connection lost"),
    "wrong schema": (Fault("wrong_schema"), "schema at choices"),
    "empty choices": (Fault("empty_choices"), "schema at choices"),
    "reset": (Fault("reset"), "connection lost"),
    "a score in place of a text": (Fault("body", body=chat_reply(0.5)), "schema at choices.0.message.content"),
}


@pytest.mark.parametrize(("fault", "reason"), PERMANENT.values(), ids=PERMANENT.keys())
def test_a_fault_that_stays_is_a_failure_and_touches_no_other(fault, reason):
    with FakeServer(cycling, plan=where("Question number 2?", fault)) as server:
        timeout_s = 0.6 if fault.kind in ("hang", "drip") else 10
        outcomes = dict(judge(server, retries=1, timeout_s=timeout_s).compare(pair_views(6)))
    failed = outcomes.pop(2)
    assert (failed.status, failed.verdict, failed.score, failed.margin) == ("failed", None, None, None)
    assert re.search(reason, failed.reason)
    assert {index: outcome.verdict for index, outcome in outcomes.items()} == {
        number: VERDICTS[number % 3] for number in (0, 1, 3, 4, 5)
    }
    assert len(server.requests) == 7  # one retry, of the one that failed


def test_every_request_failing_is_counted_and_nothing_is_scored():
    with FakeServer(cycling, plan=every(1, Fault("status", 500))) as server:
        outcomes = dict(judge(server, retries=2).compare(pair_views(5)))
    assert [outcomes[index].status for index in range(5)] == ["failed"] * 5
    assert len(server.requests) == 15


@pytest.mark.parametrize("status", [400, 409, 413, 422])
def test_a_prompt_that_is_turned_down_fails_alone_and_at_once(status):
    with FakeServer(cycling, plan=where("Question number 0?", Fault("status", status))) as server:
        outcomes = dict(judge(server, concurrency=1).compare(pair_views(3)))
    assert outcomes[0].status == "failed"
    assert outcomes[0].reason.startswith(f"HTTP {status}")
    assert verdicts(outcomes)[1:] == ["second", "tie"]
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "name of the model")]
)
def test_a_server_that_cannot_be_asked_raises_at_once(status, hint):
    with FakeServer(plan=every(1, Fault("status", status))) as server:
        with pytest.raises(ModelError, match=f"HTTP {status}") as caught:
            list(judge(server).compare(pair_views(50)))
        assert hint in caught.value.hint
        assert len(server.requests) <= 4


def test_a_404_after_answers_is_a_failure():
    with FakeServer(plan=where("Question number 2?", Fault("status", 404))) as server:
        outcomes = dict(judge(server, concurrency=1).compare(pair_views(4)))
    assert [outcomes[index].status for index in range(4)] == ["ok", "ok", "failed", "ok"]


def test_no_server_at_all_raises():
    with FakeServer() as server:
        pass
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        list(judge(server, retries=1).compare(pair_views(3)))
    assert "running" in caught.value.hint


INVALID = {
    "garbage": (chat_reply("lorem ipsum dolor sit amet, consectetur"), "not a result line"),
    "both": (chat_reply("Result: Both"), "not A, B or tie"),
    "empty": (chat_reply(""), "empty reply"),
    "null": (chat_reply(None), "refused"),
    "only thoughts": (chat_reply("", reasoning_content="Hm."), "empty reply"),
    "refusal": (chat_reply(None, refusal="I cannot judge people."), "refused"),
    "filtered": (chat_reply("Result: A", "content_filter"), "refused"),
    "cut off": (chat_reply("A looks good. Result: A", "length"), "cut off after 10 tokens"),
    "unclosed thought": (chat_reply("<think>Result: A"), "does not end"),
}


@pytest.mark.parametrize(("reply", "reason"), INVALID.values(), ids=INVALID.keys())
def test_an_unreadable_reply_is_invalid_and_not_asked_again(reply, reason):
    with FakeServer(lambda body: reply) as server:
        [(_, outcome)] = judge(server).compare(pair_views(1))
    assert (outcome.status, outcome.verdict, outcome.score) == ("invalid", None, None)
    assert reason in outcome.reason
    message = reply["choices"][0]["message"]
    assert outcome.raw == (message["content"] or message.get("refusal") or "")
    assert (outcome.tokens_in, outcome.tokens_out) == (100, 10)
    assert len(server.requests) == 1


def test_the_posts_really_arrive():
    view = PairView("Which tea?", "Sencha.", "Assam.", POSTS, ("a green tea",), "ann")
    with FakeServer() as server:
        comparer = judge(server)
        list(comparer.compare([view]))
    [request] = server.requests
    assert request.text == comparer.render(view).messages[0].content
    for part in ("I drink only green tea.", "Lists, please.", "a green tea", "Which tea?", "Sencha.", "Assam."):
        assert part in request.text


def test_the_order_of_the_view_is_the_order_that_is_asked():
    view = PairView("Which tea?", "Sencha.", "Assam.")
    with FakeServer() as server:
        list(judge(server, concurrency=1).compare([view, view.swap()]))
    one, other = (request.text for request in server.requests)
    assert one.index("Sencha.") < one.index("Assam.")
    assert other.index("Assam.") < other.index("Sencha.")


def test_verdicts_keep_their_place_when_replies_overtake_each_other():
    def plan(seen):
        return Fault("slow", seconds=0.001 * (number_of(seen.body) * 7 % 13))

    with FakeServer(cycling, plan=plan) as server:
        outcomes = list(judge(server, concurrency=8).compare(pair_views(60)))
    assert sorted(index for index, _ in outcomes) == list(range(60))
    assert verdicts(dict(outcomes)) == [VERDICTS[number % 3] for number in range(60)]
    assert 1 < server.most_at_once <= 8


def test_ratings_are_scores_and_depend_on_the_answer():
    def answer(body):
        return "Warm.\nRating: 9/10" if "Sencha." in body["messages"][0]["content"] else "Rating: 2.5"

    with FakeServer(answer) as server:
        rater = judge(server, "rate")
        outcomes = dict(rater.rate([AnswerView("Q", "Sencha."), AnswerView("Q", "Assam.")]))
    assert isinstance(rater, ChatRater)
    assert [outcomes[0].score, outcomes[1].score] == [9.0, 2.5]
    assert outcomes[0].raw == "Warm.\nRating: 9/10"


@pytest.mark.parametrize(
    ("reply", "status"), [("Rating: 11", "invalid"), ("[2,2,2]", "invalid"), ("7 or 8", "invalid"), ("Rating: 7", "ok")]
)
def test_a_rating_is_one_number_on_the_scale(reply, status):
    with FakeServer(lambda body: reply) as server:
        [(_, outcome)] = judge(server, "rate").rate([AnswerView("Q", "A")])
    assert outcome.status == status
    assert (outcome.score is None) == (status == "invalid")


def test_cost_and_tokens_come_from_the_usage():
    price = Price(per_million_in=1.0, per_million_out=10.0)
    with FakeServer() as server:
        [(_, outcome)] = judge(server, price=price).compare(pair_views(1))
    assert (outcome.tokens_in, outcome.tokens_out) == (100, 10)
    assert outcome.cost_usd == pytest.approx(200e-6)
    assert 0 < outcome.latency_ms < 5000


def test_a_server_that_reports_no_usage_does_not_look_free():
    reply = {key: value for key, value in chat_reply("Result: A").items() if key != "usage"}
    with FakeServer(lambda body: reply) as server:
        [(_, outcome)] = judge(server, price=Price(per_million_in=1.0, per_million_out=1.0)).compare(pair_views(1))
    assert outcome.verdict == "first"
    assert outcome.tokens_in == 0
    assert outcome.cost_usd > 0


def test_latency_leaves_out_the_waiting():
    patient = Backoff(initial_s=0.5, max_s=0.5, jitter_s=0)
    with FakeServer(plan=first_attempts(1, Fault("status", 503))) as server:
        start = time.perf_counter()
        [(_, outcome)] = load(f"m@{server.url}", options(), backoff=patient).compare(pair_views(1))
        elapsed_ms = (time.perf_counter() - start) * 1e3
    assert outcome.latency_ms <= elapsed_ms - 500


def test_retry_after_is_honoured():
    patient = Backoff(initial_s=0, max_s=0, jitter_s=0)
    with FakeServer(plan=first_attempts(1, Fault("status", 429, retry_after="1"))) as server:
        start = time.monotonic()
        [(_, outcome)] = load(f"m@{server.url}", options(), backoff=patient).compare(pair_views(1))
    assert outcome.status == "ok"
    assert time.monotonic() - start >= 1


def test_the_key_is_sent_and_shown_nowhere(monkeypatch, caplog):
    key = "sk-very-secret-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    echo = Fault("status", 500, body={"error": f"Bearer {key} is odd"})
    with caplog.at_level(logging.DEBUG), FakeServer(plan=where("Question number 1?", echo)) as server:
        comparer = judge(server, retries=1)
        outcomes = dict(comparer.compare(pair_views(2)))
        server.plan = every(1, Fault("status", 401, body={"error": f"wrong key {key}"}))
        with pytest.raises(ModelError) as caught:
            list(judge(server).compare(pair_views(1)))
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {key}"}
    assert outcomes[1].reason == 'HTTP 500: {"error": "Bearer *** is odd"}'
    shown = [comparer.card.model_dump_json(), repr(comparer), str(vars(comparer)), str(caught.value), caplog.text]
    shown += [outcome.model_dump_json() for outcome in outcomes.values()]
    assert not [text for text in shown if key in text]


def test_without_a_key_none_is_sent():
    with FakeServer() as server:
        list(judge(server).compare(pair_views(1)))
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("key", ["sk-é-secret", "sk\nsecret"])
def test_a_broken_key_is_refused_without_showing_it(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelError, match="OPENAI_API_KEY") as caught:
        load("m@http://127.0.0.1:1/v1", options())
    assert "secret" not in str(caught.value)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "prbench-requests"]


@pytest.mark.parametrize("error", [GeneratorExit, KeyboardInterrupt])
def test_stopping_early_cancels_what_is_under_way(error):
    def plan(seen):
        return Fault("hang") if number_of(seen.body) > 2 else None

    with FakeServer(plan=plan) as server:
        outcomes = judge(server, timeout_s=60).compare(pair_views(1000))
        assert [next(outcomes)[1].status for _ in range(3)] == ["ok"] * 3
        start = time.monotonic()
        if error is GeneratorExit:
            outcomes.close()
        else:
            with pytest.raises(KeyboardInterrupt):
                outcomes.throw(KeyboardInterrupt)
        assert time.monotonic() - start < 5
        assert not threads()
        assert len(server.requests) <= 3 + 4
    gc.collect()  # a task that was never awaited would warn now, and warnings are errors


def test_ctrl_c_while_waiting_for_a_reply():
    with FakeServer(plan=every(1, Fault("hang"))) as server:
        outcomes = judge(server, timeout_s=60).compare(pair_views(10))
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            next(outcomes)
        timer.join()
        assert not threads()
        assert len(server.requests) <= 4


def test_an_iterator_that_is_never_read_asks_nothing():
    with FakeServer() as server:
        outcomes = judge(server).compare(pair_views(3))
        del outcomes
        gc.collect()
        assert server.requests == []
    assert not threads()


def test_requests_do_not_run_far_ahead_of_the_reader():
    with FakeServer() as server:
        outcomes = judge(server, concurrency=2).compare(pair_views(200))
        next(outcomes)
        time.sleep(0.3)
        assert len(server.requests) <= 1 + 2 * 2
        outcomes.close()


def test_views_are_rendered_only_when_they_are_sent():
    class Views(list):
        read = 0

        def __getitem__(self, index):
            Views.read += 1
            return super().__getitem__(index)

    with FakeServer() as server:
        outcomes = judge(server, concurrency=2).compare(Views(pair_views(1)) * 100_000)
        del outcomes
        assert Views.read == 0
        views = Views(pair_views(1000))
        outcomes = judge(server, concurrency=2).compare(views)
        next(outcomes)
        outcomes.close()
    assert Views.read <= 10


def test_an_error_in_a_template_reaches_the_caller(tmp_path):
    file = tmp_path / "broken.jinja"
    file.write_text("{{ question }}{{ first }}{{ second.nothing.at_all }}")
    with FakeServer() as server, pytest.raises(TemplateError):
        list(judge(server, template=file).compare(pair_views(3)))
    assert server.requests == []


def test_a_notebook_with_a_loop_of_its_own_can_ask():
    async def cell():
        return list(judge(server).compare(pair_views(2)))

    with FakeServer() as server:
        assert len(asyncio.run(cell())) == 2


def test_no_views_no_request():
    with FakeServer() as server:
        assert list(judge(server).compare([])) == []
    assert server.requests == []


def test_the_card_tells_all_that_could_change_an_answer(tmp_path):
    card = load("m@http://127.0.0.1:1/v1/", options(temperature=0.7, max_tokens=9, seed=3)).card
    assert card.address == "chat:m@http://127.0.0.1:1/v1#compare"
    assert card.reads == {Channel.POSTS, Channel.PLAN}
    assert not card.deterministic
    assert {name: card.parameters[name] for name in ("mode", "temperature", "max_tokens", "seed")} == {
        "mode": "compare",
        "temperature": 0.7,
        "max_tokens": 9,
        "seed": 3,
    }
    file = tmp_path / "mine.jinja"
    file.write_text("{{ question }} {{ first }} {{ second }}")
    other = load("m@http://127.0.0.1:1/v1", options(template=file)).card
    assert other.reads == frozenset()
    assert other.parameters["template"] != card.parameters["template"]
    assert other.deterministic
    json.dumps(dict(card.parameters))


def test_parameters_are_sent_and_a_judge_that_samples_gets_no_seed():
    with FakeServer() as server:
        list(judge(server, max_tokens=77, seed=5).compare(pair_views(1)))
        list(judge(server, temperature=0.5, seed=5).compare(pair_views(1)))
    greedy, sampled = (request.body for request in server.requests)
    assert (greedy["model"], greedy["max_tokens"], greedy["temperature"], greedy["seed"]) == ("org/judge:1", 77, 0, 5)
    assert sampled["temperature"] == 0.5
    assert "seed" not in sampled


def test_addresses(monkeypatch):
    comparer = load_model("chat:org/judge:1@http://127.0.0.1:8000/v1")
    assert isinstance(comparer, ChatComparer)
    assert isinstance(load_model("chat:m@http://127.0.0.1:8000/v1#rate"), ChatRater)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert load_model("chat:m#rate").card.address == "chat:m@http://127.0.0.1:9/v1#rate"


@pytest.mark.parametrize(
    ("rest", "hint"),
    [
        ("m", "OPENAI_BASE_URL"),
        ("@http://127.0.0.1/v1", "MODEL"),
        ("m@127.0.0.1:8000", "http://"),
        ("m@http://127.0.0.1:port/v1", "http://"),
        ("m@http://127.0.0.1/v1#comprae", "'compare'"),
        ("m@http://user:hunter2@127.0.0.1/v1", "OPENAI_API_KEY"),
        ("m@http://127.0.0.1/v1?key=hunter2", "OPENAI_API_KEY"),
    ],
)
def test_addresses_that_are_wrong(rest, hint):
    with pytest.raises(AddressError) as caught:
        load(rest, options())
    assert hint in caught.value.hint
    assert "hunter2" not in str(caught.value)


def test_window_and_length():
    comparer = load("m@http://127.0.0.1:1/v1", options(window=4096))
    assert isinstance(comparer, Windowed)
    assert comparer.window == 4096
    assert load("m@http://127.0.0.1:1/v1", options()).window is None
    short, long = (comparer.length(Prompt((Message("user", "word " * count),))) for count in (10, 1000))
    assert 10 < short < long
    assert 1000 <= long <= 2000


def test_generating_gives_each_text_its_own_seed():
    def answer(body):
        return f"{body['messages'][0]['content']} with seed {body['seed']}"

    with FakeServer(answer, plan=first_attempts(1, Fault("status", 503))) as server:
        writer = load_generator(f"w@{server.url}", options(), backoff=FAST)
        prompts = [Prompt((Message("user", f"prompt {number}"),)) for number in range(5)]
        written = dict(writer.generate(prompts, n=3, max_tokens=64, temperature=1.0, seed=10, stop=["END"]))
    for number in range(5):
        assert [text.raw for text in written[number]] == [f"prompt {number} with seed {10 + i}" for i in range(3)]
    assert {request.body["max_tokens"] for request in server.requests} == {64}
    assert all(request.body["stop"] == ["END"] for request in server.requests)


def test_a_text_that_was_cut_off_is_still_a_text():
    with FakeServer(lambda body: chat_reply("Once upon", "length")) as server:
        writer = judge(server)
        [(_, (outcome,))] = writer.generate([Prompt((Message("user", "Tell."),))])
    assert (outcome.status, outcome.raw, outcome.reason) == ("ok", "Once upon", "cut off after 10 tokens")


def test_one_users_prompts_follow_each_other_and_verdicts_keep_their_places():
    """A server's prefix cache then reads a user's posts once."""
    users = {name: (Post(id="1", text=f"I am {name}."),) for name in ("ann", "bob", "cyd")}
    views = [
        PairView(f"Question number {number}?", "Sencha.", "Assam.", users[name], user=name)
        for number in range(6)
        for name in users
    ]
    with FakeServer(cycling) as server:
        outcomes = dict(judge(server, concurrency=1).compare(views))
        order = [name for seen in server.requests for name in users if f"I am {name}." in seen.text]
    assert order == ["ann"] * 6 + ["bob"] * 6 + ["cyd"] * 6
    assert verdicts(outcomes) == [VERDICTS[number % 3] for number in range(6) for _ in users]


def test_cached_tokens_are_counted_where_the_server_tells():
    def with_details(body):
        reply = chat_reply(cycling(body))
        reply["usage"]["prompt_tokens_details"] = {"cached_tokens": 80} if number_of(body) else None
        return reply

    with FakeServer(with_details) as server:
        model = judge(server)
        assert (model.effort.naive_tokens, model.effort.computed_tokens) == (0, 0)
        list(model.compare(pair_views(5)))
    assert (model.effort.naive_tokens, model.effort.computed_tokens) == (400, 80)
