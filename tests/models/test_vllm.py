"""`http:vllm:` against a scripted server: raw logits or nothing, and one user's answers one after another."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_server import Fault, where
from fake_vllm import FakeVllm, length_logit, squash
from prbench.config import ModelOptions
from prbench.errors import AddressError, ModelError
from prbench.models import load_model
from prbench.models.remote.http import load
from prbench.models.remote.known_score import PROBES, probe_score
from prbench.models.remote.vllm import Address
from prbench.models.remote.vllm_check import check_logits
from prbench.models.remote.wire import Backoff
from prbench.types import AnswerView, Channel, Post

FAST = Backoff(initial_s=0.001, max_s=0.01, jitter_s=0.001, retry_after_max_s=0.05)
POSTS = tuple(Post(id=str(number), text=f"I wrote this, number {number}.") for number in range(3))


def connect(server, *, label="", **changes):
    options = ModelOptions(**{"timeout_s": 5.0, "retries": 1, "concurrency": 4, **changes})
    return load(f"vllm:tiny/rm@{server.root}/v1{label}", options, backoff=FAST)


def views(count):
    return [
        AnswerView(f"Which {number % 3}?", "x" * number, POSTS, ("short",), "ann") for number in range(1, count + 1)
    ]


def pooled(server):
    """Requests to score something, those of connecting left out."""
    return [seen for seen in server.requests if seen.path == "/pooling"][2 * len(PROBES) :]


def test_the_card():
    with FakeVllm() as server:
        rater = load_model(server.address)
    card = rater.card
    assert card.address == server.address
    assert (card.reads, card.units, rater.window) == ({Channel.POSTS, Channel.PLAN}, "log-odds", 512)
    assert not card.reusable  # nobody knows which weights are behind the URL


def test_scores_are_raw_logits_in_their_places():
    with FakeVllm() as server:
        outcomes = dict(connect(server).rate(views(40)))
    assert len(outcomes) == 40
    for index, outcome in outcomes.items():
        assert outcome.score == pytest.approx((index + 1) / 10 - 3)
        assert (outcome.status, outcome.tokens_in > 0) == ("ok", True)


def test_what_is_sent():
    with FakeVllm() as server:
        rater = connect(server)
        view = views(1)[0]
        list(rater.rate([view]))
        [seen] = pooled(server)
    turn, answer = rater.render(view).messages
    assert seen.body["messages"] == [
        {"role": "user", "content": turn.content},
        {"role": "assistant", "content": answer.content},
    ]
    assert all(post.text in turn.content for post in POSTS)
    assert (seen.body["use_activation"], seen.body["task"], seen.body["model"]) == (False, "classify", "tiny/rm")
    assert (seen.body["add_special_tokens"], seen.body["add_generation_prompt"]) == (False, False)


def test_the_key_is_sent_and_stays_out_of_the_card(monkeypatch):
    monkeypatch.setenv("VLLM_API_KEY", "hunter2")
    with FakeVllm() as server:
        card = connect(server).card
    assert {seen.headers["authorization"] for seen in server.requests} == {"Bearer hunter2"}
    assert "hunter2" not in card.model_dump_json()


def test_one_users_answers_follow_each_other():
    asked = [
        AnswerView("Which?", f"{user} {number}", (Post(id="1", text=user),)) for number in range(5) for user in "ab"
    ]
    with FakeVllm() as server:
        outcomes = dict(connect(server, concurrency=1).rate(asked))
        order = [seen.body["messages"][-1]["content"][0] for seen in pooled(server)]
    assert "".join(order) == "aaaaabbbbb"
    assert [outcomes[index].score for index in range(10)] == [length_logit([{"content": "a 0"}])[0]] * 10


def test_activated_scores_are_refused():
    with FakeVllm(listens=False) as server, pytest.raises(ModelError, match="look like activated scores") as caught:
        connect(server)
    assert "use_activation" in caught.value.hint
    assert server.root in caught.value.message


def test_softmax_over_two_labels_is_refused_too():
    with (
        FakeVllm(lambda messages: [1.0, len(messages[-1]["content"]) / 20], listens=False) as server,
        pytest.raises(ModelError, match="look like activated scores"),
    ):
        connect(server, label="#label=1")


def test_small_logits_pass_where_the_server_shows_that_it_can_activate():
    with FakeVllm(lambda messages: [len(messages[-1]["content"]) / 100]) as server:
        [(_, outcome)] = connect(server).rate([AnswerView("Which?", "x" * 30)])
    assert outcome.score == pytest.approx(0.3)


def test_a_head_without_activation_passes_if_a_score_is_no_probability():
    with FakeVllm(activates=False) as server:
        assert connect(server).card.parameters["head"] == "logit 0"
    with FakeVllm(lambda _: [0.5], activates=False) as server, pytest.raises(ModelError, match="activated"):
        connect(server)


@given(rows=st.lists(st.lists(st.floats(-12, 12), min_size=1, max_size=1), min_size=4, max_size=4))
def test_whatever_the_logits_their_squashed_ones_are_refused(rows):
    squashed = [squash(row) for row in rows]
    with pytest.raises(ModelError):
        check_logits(squashed, squashed, "http:vllm:…")
    if any(abs(row[0] - squash(row)[0]) > 0.1 for row in rows):
        check_logits(rows, squashed, "http:vllm:…")


def test_a_known_logit_is_checked():
    known = length_logit([{"content": PROBES[0].answer}])[0]
    with FakeVllm() as server:
        connect(server, expect_logit=known * 1.01)
        with pytest.raises(ModelError, match="but 1 was expected"):
            connect(server, expect_logit=1.0)
    with FakeVllm(listens=False) as server, pytest.raises(ModelError, match="that is its sigmoid"):
        connect(server, expect_logit=known)


def test_a_known_logit_outweighs_the_look_of_the_others():
    with FakeVllm(lambda _: [0.2], activates=False) as server:
        assert connect(server, expect_logit=0.2).card.address == server.address


def test_the_probe_can_be_scored_by_any_rater():
    assert probe_score("longer") == len(PROBES[0].answer.split())
    with FakeVllm() as server:
        assert probe_score(server.address) == pytest.approx(length_logit([{"content": PROBES[0].answer}])[0])
    with pytest.raises(AddressError, match="judges pairs"):
        probe_score("chat:judge@http://127.0.0.1:9/v1")


def test_tokens_that_are_added_twice_are_refused():
    with (
        FakeVllm(extra_tokens=1) as server,
        pytest.raises(ModelError, match="scores 25 tokens where its chat template writes 24"),
    ):
        connect(server)


def test_two_labels_need_a_word():
    def two(messages):
        return [1.5, length_logit(messages)[0]]

    with FakeVllm(two) as server:
        with pytest.raises(ModelError, match="2 labels and no #label"):
            connect(server)
        with pytest.raises(ModelError, match="there is no label 2"):
            connect(server, label="#label=2")
        rater = connect(server, label="#label=1")
        [(_, outcome)] = rater.rate([AnswerView("Which?", "x" * 50)])
    assert outcome.score == pytest.approx(2.0 - 1.5)
    assert rater.card.address.endswith("#label=1")
    assert rater.card.parameters["head"] == "logit 1 - logit 0"


def test_a_model_that_is_not_served():
    with FakeVllm() as server, pytest.raises(ModelError, match="no model 'tiny/mr'") as caught:
        load(f"vllm:tiny/mr@{server.root}", ModelOptions())
    assert "tiny/rm" in caught.value.hint


def test_a_server_that_does_not_pool():
    plan = where('"task"', Fault("status", 404))
    with FakeVllm(plan=plan) as server, pytest.raises(ModelError, match="gives no scores of a classifier") as caught:
        connect(server)
    assert "--runner pooling" in caught.value.hint


def test_scores_of_every_token_are_refused():
    with FakeVllm(lambda _: [[0.1], [0.2]], activates=False) as server, pytest.raises(ModelError, match="2 rows"):
        connect(server)


@pytest.mark.parametrize("kind", ["status", "half_json", "wrong_schema", "reset"])
def test_a_fault_that_stays_is_a_failure(kind):
    with FakeVllm(plan=where('"xxx"', Fault(kind, 500))) as server:
        outcomes = dict(connect(server).rate(views(6)))
    assert (outcomes[2].status, outcomes[2].score) == ("failed", None)
    assert all(outcomes[index].status == "ok" for index in range(6) if index != 2)


def test_a_score_that_is_no_number_is_invalid():
    def broken(messages):
        return [math.nan] if messages[-1]["content"] == "x" else length_logit(messages)

    with FakeVllm(broken) as server:
        outcomes = dict(connect(server).rate(views(2)))
    assert [outcomes[index].status for index in range(2)] == ["invalid", "ok"]


def test_lengths_are_counted_by_the_server_where_they_matter():
    with FakeVllm(window=60) as server:
        rater = connect(server)
        short, long = (rater.render(AnswerView("Which?", "word " * count)) for count in (2, 100))
        rater.length(short)
        asked = [seen.path for seen in server.requests].count("/tokenize")
        assert rater.length(long) == rater.length(long) == 107
        assert [seen.path for seen in server.requests].count("/tokenize") == asked + 1


def test_a_server_without_a_tokenizer_for_others():
    with FakeVllm(window=60, plan=lambda seen: Fault("status", 404) if seen.path == "/tokenize" else None) as server:
        rater = connect(server)
        assert rater.length(rater.render(AnswerView("Which?", "word " * 100))) > 60


@pytest.mark.parametrize(
    "rest",
    ["rm", "@http://host", "rm@", "rm@host", "rm@http://a:hunter2@host", "rm@http://host#mode", "rm@http://h#label=x"],
)
def test_addresses_that_are_wrong(rest):
    with pytest.raises(AddressError) as caught:
        Address.parse(rest)
    assert "hunter2" not in str(caught.value)
