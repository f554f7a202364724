"""`http:` against a real server: scores keep their places, and an error is never a number."""

import json

import pytest

from fake_server import FakeServer, Fault, every, first_attempts, where
from prbench.config import ModelOptions, Price
from prbench.errors import AddressError, ModelError
from prbench.models import load_model
from prbench.models.remote.http import load
from prbench.models.remote.wire import Backoff
from prbench.types import AnswerView, Channel, Post

FAST = Backoff(initial_s=0.001, max_s=0.01, jitter_s=0.001, retry_after_max_s=0.05)


def open_rater(server, batch=32, **changes):
    options = ModelOptions(**{"timeout_s": 5.0, "retries": 2, "concurrency": 4, **changes})
    return load(server.root, options, backoff=FAST, batch=batch)


def answer_views(count):
    posts = (Post(id="p7", text="Green tea."),)
    return [AnswerView("Which?", f"answer {number}", posts, ("short",), "ann") for number in range(count)]


def number_score(item):
    return float(item["answer"].split()[1])


def score_requests(server):
    return [request for request in server.requests if request.path == "/score"]


def test_the_card_is_what_the_server_says():
    with FakeServer(health={"model": "my/rm", "revision": "abc", "reads": ["posts"], "gpu": 1}) as server:
        card = load_model(f"http:{server.root}/").card
        assert load_model(server.root).card == card  # a bare URL is understood too
    assert card.address == f"http:{server.root}"
    assert (card.revision, card.reads, card.parameters["model"]) == ("abc", {Channel.POSTS}, "my/rm")
    assert card.reusable


@pytest.mark.parametrize("rest", ["http://127.0.0.1:9", "vllm:tiny/rm@http://127.0.0.1:9"])
def test_a_price_that_nothing_would_count_is_refused(rest):
    with pytest.raises(ModelError, match="a served reward model has no price here"):
        load(rest, ModelOptions(price=Price(per_million_in=1.0, per_million_out=1.0), retries=0), backoff=FAST)


def test_a_model_without_a_revision_is_not_reused():
    with FakeServer(health={"model": "my/rm"}) as server:
        card = open_rater(server).card
    assert not card.reusable
    assert card.reads == frozenset()


def test_all_of_the_view_arrives_with_its_ids():
    with FakeServer(score=number_score) as server:
        rater = open_rater(server)
        [(_, outcome)] = rater.rate(answer_views(1))
        [request] = score_requests(server)
    item = {
        "question": "Which?",
        "answer": "answer 0",
        "posts": [{"id": "p7", "text": "Green tea."}],
        "plan": ["short"],
        "user": "ann",
    }
    assert request.body == {"items": [item]}
    assert json.loads(rater.render(answer_views(1)[0]).messages[0].content) == item
    assert outcome.score == 0.0


def test_what_the_model_does_not_read_is_not_sent():
    with FakeServer(health={"model": "m", "revision": "r", "reads": ["plan"]}) as server:
        list(open_rater(server).rate(answer_views(1)))
        [request] = score_requests(server)
    assert request.body["items"][0]["posts"] == []
    assert request.body["items"][0]["plan"] == ["short"]


def test_scores_keep_their_places_when_replies_overtake_each_other():
    def plan(seen):
        if seen.path == "/score":
            return Fault("slow", seconds=0.002 * (number_score(seen.body["items"][0]) * 5 % 11))
        return None

    with FakeServer(score=number_score, plan=plan) as server:
        outcomes = list(open_rater(server, batch=3, concurrency=8).rate(answer_views(100)))
    assert sorted(index for index, _ in outcomes) == list(range(100))
    assert all(outcome.score == index for index, outcome in outcomes)
    assert [len(request.body["items"]) for request in score_requests(server)].count(3) == 33
    assert 1 < server.most_at_once <= 8


def test_batches_of_32_by_default():
    with FakeServer(score=number_score) as server:
        list(open_rater(server).rate(answer_views(70)))
    assert sorted(len(request.body["items"]) for request in score_requests(server)) == [6, 32, 32]


@pytest.mark.parametrize("kind", ["status", "half_json", "half_sent", "wrong_schema", "reset", "hang"])
def test_a_fault_that_passes_changes_nothing(kind):
    with FakeServer(score=number_score, plan=first_attempts(1, Fault(kind, 503))) as server:
        outcomes = dict(open_rater(server, batch=2, timeout_s=0.6 if kind == "hang" else 10).rate(answer_views(7)))
    assert [outcomes[index].score for index in range(7)] == [float(number) for number in range(7)]


@pytest.mark.parametrize("kind", ["status", "half_json", "half_sent", "wrong_schema", "reset", "hang", "empty_choices"])
def test_a_fault_that_stays_is_a_failure_and_touches_no_other_batch(kind):
    with FakeServer(score=number_score, plan=where('"answer 2"', Fault(kind, 500))) as server:
        timeout_s = 0.6 if kind == "hang" else 10
        outcomes = dict(open_rater(server, batch=2, timeout_s=timeout_s, retries=1).rate(answer_views(6)))
    for index in (2, 3):
        assert (outcomes[index].status, outcomes[index].score) == ("failed", None)
        assert outcomes[index].reason
    assert [outcomes[index].score for index in (0, 1, 4, 5)] == [0.0, 1.0, 4.0, 5.0]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_item_that_is_turned_down_does_not_take_its_batch_along(status):
    with FakeServer(score=number_score, plan=where('"answer 5"', Fault("status", status))) as server:
        outcomes = dict(open_rater(server).rate(answer_views(16)))
    assert [index for index in range(16) if outcomes[index].status == "failed"] == [5]
    assert all(outcomes[index].score == index for index in range(16) if index != 5)


@pytest.mark.parametrize("scores", [[], [1.0], [1.0, 2.0, 3.0, 4.0]])
def test_a_wrong_number_of_scores_is_a_failure(scores):
    with FakeServer(plan=where("items", Fault("body", body={"scores": scores}))) as server:
        outcomes = dict(open_rater(server).rate(answer_views(3)))
    assert {outcome.reason for outcome in outcomes.values()} == {f"{len(scores)} scores came for 3 items"}
    assert {(outcome.status, outcome.score) for outcome in outcomes.values()} == {("failed", None)}


@pytest.mark.parametrize(("bad", "reason"), [(float("nan"), "nan"), (float("inf"), "inf"), (None, "no score")])
def test_a_score_that_is_no_number_is_invalid_and_the_rest_stands(bad, reason):
    with FakeServer(score=lambda item: bad if item["answer"] == "answer 1" else number_score(item)) as server:
        outcomes = dict(open_rater(server).rate(answer_views(3)))
    assert (outcomes[1].status, outcomes[1].score) == ("invalid", None)
    assert reason in outcomes[1].reason
    assert [outcomes[0].score, outcomes[2].score] == [0.0, 2.0]


@pytest.mark.parametrize("bad", ["0.5", True, [1.0]])
def test_a_score_of_another_type_is_a_failure(bad):
    with FakeServer(score=lambda item: bad) as server:
        [(_, outcome)] = open_rater(server, retries=0).rate(answer_views(1))
    assert (outcome.status, outcome.score) == ("failed", None)
    assert "schema" in outcome.reason


@pytest.mark.parametrize("health", [{"name": "x"}, {"model": "m", "reads": ["narrative"]}, ["m"]])
def test_a_server_that_does_not_say_who_it_is_is_refused(health):
    with FakeServer(health=health) as server, pytest.raises(ModelError, match="/health") as caught:
        open_rater(server, retries=0)
    assert '"reads"' in caught.value.hint


def test_a_server_that_is_not_there_or_not_one_of_ours_is_refused():
    with FakeServer(plan=every(1, Fault("status", 404))) as server, pytest.raises(ModelError, match="HTTP 404"):
        open_rater(server)
    with pytest.raises(ModelError, match="cannot be reached"):
        open_rater(server)


@pytest.mark.parametrize(
    "rest", ["", "host", "ftp://host", "ftp://a:hunter2@host", "http://a:hunter2@host", "http://host?key=hunter2"]
)
def test_addresses_that_are_wrong(rest):
    with pytest.raises(AddressError) as caught:
        load(rest, ModelOptions())
    assert "hunter2" not in str(caught.value)
