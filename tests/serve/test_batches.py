"""The queue: batches across requests, one thread for the model, nothing lost, nothing crossed, nothing asked twice."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench.models import ModelCard
from prbench.serve.batching import Batcher, OverloadedError, QueueLimits
from prbench.serve.gathering import Waiting, next_batch
from prbench.serve.items import ItemError, ScoreItem
from prbench.serve.metrics import Metrics
from prbench.types import AnswerView
from serve_models import Faulty, Recorder, Slow, known_score


def run(work):
    """In a thread of its own: a browser's driver may keep a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def show(items):
    return [AnswerView(item.question, item.answer) for item in items]


def items(*answers):
    return [ScoreItem(question="Tea?", answer=answer) for answer in answers]


def expected(answer):
    return known_score("Tea?", answer)


def test_concurrent_requests_are_scored_in_one_batch(start):
    model = Recorder()
    with start(model, context="none", max_batch=16, max_wait_ms=2000) as client:

        def post(number):
            body = {"items": [{"question": "Tea?", "answer": f"answer {number}"}]}
            return client.post("/score", json=body).json()["scores"]

        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(post, range(16)))
    assert found == [[expected(f"answer {number}")] for number in range(16)]
    assert [len(batch) for batch in model.batches] == [16]


def test_a_server_whose_model_thread_has_ended_says_so_and_keeps_nobody_waiting(start, monkeypatch, caplog):
    def broken(*_):
        raise SystemExit("gone")

    monkeypatch.setattr(Batcher, "_in_turn", broken)
    body = {"items": [{"question": "Tea?", "answer": "x"}]}
    with start(Recorder(), context="none") as client:
        assert client.get("/health").status_code == 200
        assert [client.post("/score", json=body, timeout=5).status_code for _ in range(2)] == [503, 503]
        while any(thread.name == "model" for thread in threading.enumerate()):
            time.sleep(0.01)
        health = client.get("/health")
    assert (health.status_code, health.json()["status"]) == (503, "stopped")
    assert "the model's thread has ended" in caplog.text


def test_the_server_answers_while_the_model_works(start):
    model = Recorder()
    model.gate.clear()
    with start(model, context="none", max_wait_ms=0) as client, ThreadPoolExecutor(1) as pool:
        scoring = pool.submit(client.post, "/score", json={"items": [{"question": "Tea?", "answer": "x"}]})
        while not model.batches:
            time.sleep(0.005)
        assert client.get("/health").json()["status"] == "ready"
        assert not scoring.done()
        model.gate.set()
        assert scoring.result().status_code == 200


def test_a_lonely_item_waits_no_longer_than_it_must():
    model = Recorder()
    batcher = Batcher(model, show, QueueLimits(max_batch=64, max_wait_s=0.05), Metrics())
    began = time.monotonic()
    assert run(batcher.score(items("x"))) == [expected("x")]
    assert 0.04 < time.monotonic() - began < 5
    batcher.stop()


def test_a_request_larger_than_a_batch_is_cut_and_put_together_again():
    model = Recorder()
    batcher = Batcher(model, show, QueueLimits(max_batch=4, max_wait_s=0), Metrics())
    answers = [str(number) for number in range(11)]
    assert run(batcher.score(items(*answers))) == [expected(answer) for answer in answers]
    assert [len(batch) for batch in model.batches] == [4, 4, 3]
    assert len(model.threads) == 1
    batcher.stop()


@given(
    waiting=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=60),
    most=st.integers(1, 12),
)
def test_everybody_gets_into_a_batch_and_the_first_always(waiting, most):
    left = list(enumerate(waiting))
    for _ in range(len(waiting)):
        chosen = next_batch([Waiting(*key) for _, key in left], most)
        assert 0 in chosen
        assert len(chosen) == len(set(chosen)) <= most
        assert len(chosen) == len(left) or 2 * len(chosen) >= most
        left = [one for place, one in enumerate(left) if place not in chosen]
        if not left:
            return
    raise AssertionError(f"{left} never came")


def test_candidates_for_one_question_are_scored_together():
    model = Recorder()
    model.gate.clear()
    batcher = Batcher(model, show, QueueLimits(max_batch=4, max_wait_s=0), Metrics())
    questions = ["one?", "two?", "one?", "two?", "one?", "two?", "one?", "two?"]

    async def scenario():
        first = asyncio.ensure_future(batcher.score(items("under way")))
        while not model.batches:
            await asyncio.sleep(0.005)
        asked = [ScoreItem(question=question, answer=str(number)) for number, question in enumerate(questions)]
        waiting = asyncio.gather(*(batcher.score([item]) for item in asked))
        while batcher.depth < len(asked):
            await asyncio.sleep(0.005)
        model.gate.set()
        await first
        return await waiting

    found = run(scenario())
    batcher.stop()
    assert found == [[known_score(question, str(number))] for number, question in enumerate(questions)]
    assert [{view.question for view in batch} for batch in model.batches[1:]] == [{"one?"}, {"two?"}]


def test_equal_items_are_asked_once_unless_the_model_samples():
    model, metrics = Recorder(), Metrics()
    batcher = Batcher(model, show, QueueLimits(max_wait_s=0.01), metrics)
    assert run(batcher.score(items("a", "b", "a", "a"))) == [expected(answer) for answer in "abaa"]
    assert [len(batch) for batch in model.batches] == [2]
    assert b"prbench_items_shared_total 2.0\n" in metrics.text()
    batcher.stop()

    dice = Recorder()
    dice.card = ModelCard(address="dice", deterministic=False)
    batcher = Batcher(dice, show, QueueLimits(max_wait_s=0.01), Metrics())
    run(batcher.score(items("a", "a")))
    assert [len(batch) for batch in dice.batches] == [2]
    batcher.stop()


@settings(max_examples=25, deadline=None)
@given(
    requests=st.lists(st.lists(st.sampled_from(["a", "b", "c", "nan", "raise", "unanswered"]), min_size=1), min_size=1),
    max_batch=st.integers(1, 9),
    max_wait_s=st.sampled_from([0.0, 0.002]),
)
def test_whatever_is_asked_together_each_request_gets_its_own_answers(requests, max_batch, max_wait_s):
    batcher = Batcher(Faulty(), show, QueueLimits(max_batch, max_wait_s), Metrics())

    async def ask_all():
        return await asyncio.gather(*(batcher.score(items(*answers)) for answers in requests))

    try:
        found = run(ask_all())
    finally:
        batcher.stop()
    for answers, scores in zip(requests, found, strict=True):
        for answer, score in zip(answers, scores, strict=True):
            if answer in "abc":
                assert score == expected(answer)
            else:
                assert isinstance(score, ItemError)
                assert score.kind == ("invalid" if answer == "nan" else "failed")


def test_a_view_that_cannot_be_made_is_that_requests_fault_alone(caplog):
    def fussy(asked):
        if any(item.answer == "bad" for item in asked):
            raise ValueError("no such template")
        return show(asked)

    batcher = Batcher(Recorder(), fussy, QueueLimits(max_wait_s=0.05), Metrics())

    async def both():
        return await asyncio.gather(batcher.score(items("good")), batcher.score(items("bad", "x")))

    good, bad = run(both())
    assert good == [expected("good")]
    assert bad == [ItemError("failed", "the model raised ValueError; the server's log says more")] * 2
    assert "ValueError: no such template" in caplog.text
    batcher.stop()


def test_what_was_accepted_is_answered_while_it_drains_and_nothing_else():
    model = Slow()
    batcher = Batcher(model, show, QueueLimits(max_batch=2, max_wait_s=10), Metrics())

    async def scenario():
        accepted = asyncio.gather(*(batcher.score(items(str(number))) for number in range(5)))
        await asyncio.sleep(0.01)
        batcher.drain()
        with pytest.raises(OverloadedError, match="stopping"):
            await batcher.score(items("late"))
        with pytest.raises(OverloadedError, match="stopping"):
            await batcher.call(lambda: None)
        return await accepted

    began = time.monotonic()
    assert run(scenario()) == [[expected(str(number))] for number in range(5)]
    assert time.monotonic() - began < 5  # draining does not wait for a batch to fill
    batcher.stop()
    assert batcher.idle


def test_a_full_queue_refuses_a_request_whole():
    model = Recorder()
    model.gate.clear()
    batcher = Batcher(model, show, QueueLimits(max_batch=1, max_wait_s=0, max_queue=3), Metrics())

    async def scenario():
        first = asyncio.ensure_future(batcher.score(items("under way")))
        while not model.batches:
            await asyncio.sleep(0.005)
        waiting = asyncio.ensure_future(batcher.score(items("a", "b")))
        await asyncio.sleep(0.01)
        with pytest.raises(OverloadedError, match="2 items are waiting, 3 are allowed"):
            await batcher.score(items("c", "d"))
        third = asyncio.ensure_future(batcher.score(items("e")))
        await asyncio.sleep(0.01)
        model.gate.set()
        return await first, await waiting, await third

    assert run(scenario()) == ([expected("under way")], [expected("a"), expected("b")], [expected("e")])
    assert batcher.retry_after_s >= 1
    batcher.stop()


def test_chores_count_against_the_queue_and_take_turns_with_batches():
    model, batches_before = Recorder(), []
    model.gate.clear()
    batcher = Batcher(model, show, QueueLimits(max_batch=1, max_wait_s=0, max_queue=5), Metrics())

    async def scenario():
        first = asyncio.ensure_future(batcher.score(items("under way")))
        while not model.batches:
            await asyncio.sleep(0.005)
        chores = [batcher.call(lambda: batches_before.append(len(model.batches))) for _ in range(3)]
        waiting = asyncio.gather(first, *chores, batcher.score(items("a", "b")))
        await asyncio.sleep(0.01)
        for refused in (batcher.call(lambda: None), batcher.score(items("c"))):
            with pytest.raises(OverloadedError, match="5 items are waiting, 5 are allowed"):
                await refused
        model.gate.set()
        await waiting

    run(scenario())
    batcher.stop()
    assert batches_before == [1, 2, 3]


def test_a_request_that_could_never_wait_is_told_so(start):
    with start(Recorder(), context="none", max_queue=2) as client:
        body = {"items": [{"question": "Tea?", "answer": str(number)} for number in range(3)]}
        response = client.post("/score", json=body)
    assert response.status_code == 413  # another try would not help, so not 503
    assert response.json()["error"]["message"] == "the request has more than 2 items, the most that may wait"


def test_given_up_items_are_cancelled_and_counted():
    model = Recorder()
    model.gate.clear()
    batcher = Batcher(model, show, QueueLimits(max_batch=1, max_wait_s=0), Metrics())

    async def scenario():
        under_way = asyncio.ensure_future(batcher.score(items("under way")))
        while not model.batches:
            await asyncio.sleep(0.005)
        waiting = asyncio.ensure_future(batcher.score(items("a", "b")))
        chore = asyncio.ensure_future(batcher.call(lambda: None))
        await asyncio.sleep(0.01)
        batcher.abandon()
        batcher.abandon()  # as when the time is up after a second signal
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(OverloadedError, match="has stopped"):
            await chore
        model.gate.set()
        return await under_way

    assert run(scenario()) == [expected("under way")]
    assert batcher.abandoned == 3
    batcher.stop()


def test_a_model_that_exits_does_not_take_the_queue_along():
    class Quitter(Recorder):
        def outcome(self, view):
            raise SystemExit(3) if view.answer == "exit" else ValueError("not that")

    batcher = Batcher(Quitter(), show, QueueLimits(max_wait_s=0), Metrics())
    assert "SystemExit" in run(batcher.score(items("exit")))[0].message
    assert run(batcher.score(items("on")))[0].kind == "failed"
    batcher.stop()


def test_what_nobody_waits_for_is_not_asked(start):
    model = Recorder()
    model.gate.clear()
    with start(model, context="none", max_batch=1, max_wait_ms=0) as client:
        body = {"items": [{"question": "Tea?", "answer": "first"}]}
        patient = threading.Thread(target=client.post, args=("/score",), kwargs={"json": body})
        patient.start()
        while not model.batches:
            time.sleep(0.005)
        gone = {"items": [{"question": "Tea?", "answer": "gone"}]}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{client.base_url}/score", json=gone, timeout=0.2)
        for _ in range(400):
            if 'prbench_errors_total{kind="disconnected"} 1.0' in client.get("/metrics").text:
                break
            time.sleep(0.01)
        model.gate.set()
        patient.join()
        last = client.post("/score", json={"items": [{"question": "Tea?", "answer": "last"}]})
    assert last.json()["scores"] == [expected("last")]
    assert [view.answer for batch in model.batches for view in batch] == ["first", "last"]


def test_chores_run_in_the_models_thread_between_batches():
    model = Recorder()
    batcher = Batcher(model, show, QueueLimits(max_wait_s=0), Metrics())

    async def scenario():
        await batcher.score(items("x"))
        return await batcher.call(threading.get_ident)

    assert {run(scenario())} == model.threads

    def broken():
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run(batcher.call(broken))
    batcher.stop()
