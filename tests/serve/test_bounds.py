"""One long text, or one client with much to ask, keeps no other client waiting."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from prbench.models import ModelCard
from prbench.serve import RewardClient
from prbench.serve.batching import Batcher, OverloadedError, QueueLimits
from prbench.serve.gathering import Waiting, load_of, next_batch, waiting_of
from prbench.serve.items import ScoreItem, TooManyError
from prbench.serve.metrics import Metrics
from prbench.types import AnswerView, Channel, Message, Outcome, Prompt
from serve_models import Adaptive, Recorder, known_score

POST = {"question": "Tea?", "posts": ["I like tea."]}


class Reader:
    """A model whose time grows with the text, as a real one's does: so many characters a second."""

    def __init__(self, speed=200_000):
        self.speed = speed
        self.batches = []
        self.card = ModelCard(address="reader", revision="1", reads=frozenset(Channel))

    def render(self, view):
        texts = [*(post.text for post in view.posts), view.question, view.answer]
        return Prompt(tuple(Message("user", text) for text in texts))

    def rate(self, views):
        self.batches.append([len(view.answer) for view in views])
        for place, view in enumerate(views):
            length = len(view.question) + len(view.answer) + sum(len(post.text) for post in view.posts)
            time.sleep(length / self.speed)
            yield place, Outcome.scored(known_score(view.question, view.answer, view.posts))


ONE_OF_MANY = b'{"question":"c","answer":"b","posts":[' + b'"a",' * 1_999 + b'"a"]}'
TOO_LARGE = {
    "a long answer": ({**POST, "answer": "x" * 12_001}, "answer has 12001 characters, and a text may have 12000"),
    "a long question": ({"question": "x" * 400_000, "answer": "a", "posts": []}, "question has 400000 characters"),
    "a long post": ({"question": "Tea?", "answer": "a", "posts": ["y", "x" * 30_000]}, "posts[1] has 30000"),
    "a long plan": ({**POST, "answer": "a", "plan": ["x" * 30_000]}, "plan[0] has 30000 characters"),
    "a long name": ({**POST, "answer": "a", "user": "x" * 30_000}, "user has 30000 characters"),
    "many posts": (
        {"question": "Tea?", "answer": "a", "posts": ["x"] * 200_000},
        "more than 2000 posts, the most",
    ),
    "a plan of many lines": ({**POST, "answer": "a", "plan": ["x"] * 200_000}, "the plan has more than 2000 lines"),
    "all together": ({"question": "Tea?", "answer": "a", "posts": ["x" * 11_000] * 40}, "an item may have 400000"),
}


@pytest.mark.parametrize(("item", "says"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_too_large_is_told_with_the_limit_and_costs_its_neighbours_nothing(start, item, says):
    model = Recorder()
    sound = {**POST, "answer": "Green."}
    with start(model, context="profile+plan") as client:
        began = time.monotonic()
        alone = client.post("/score", json={"items": [item]})
        took_s = time.monotonic() - began
        beside = client.post("/score", json={"items": [item, sound]})
    assert alone.status_code == 413
    assert alone.json()["items"][0]["error"]["kind"] == "too-large"
    assert says in alone.json()["items"][0]["error"]["message"]
    assert took_s < 5
    assert beside.status_code == 207
    assert beside.json()["scores"][0] is None
    assert beside.json()["scores"][1] is not None
    assert [[view.answer for view in batch] for batch in model.batches] == [["Green."]]


FLOODS = {
    "posts": (b'{"items":[{"question":"a","answer":"b","posts":[' + b'"a",' * 1_000_000 + b'"a"]}]}', 413),
    "posts of many": (b'{"items":[%s]}' % b",".join([ONE_OF_MANY] * 500), 413),
    "items": (b'{"items":[' + b'{"question":"a","answer":"b"},' * 130_000 + b'{"question":"a","answer":"b"}]}', 413),
    "as many posts as may be": (b'{"items":[%s]}' % b",".join([ONE_OF_MANY] * 100), 200),
    "numbers": (b'{"items":[' + b"1," * 2_000_000 + b"1]}", 400),
    "numbers of many": (b'{"items":[%s]}' % b",".join([ONE_OF_MANY.replace(b'"a"', b"1")] * 100), 400),
    "keys": (b'{"items":[{%s}]}' % b",".join(b'"a%d":1' % n for n in range(400_000)), 400),
    "keys of a post": (b'{"items":[{"posts":[{%s}]}]}' % b",".join(b'"a%d":1' % n for n in range(400_000)), 400),
}


@pytest.mark.parametrize(("body", "status"), FLOODS.values(), ids=FLOODS)
def test_a_body_of_a_million_small_things_stalls_nobody(start, body, status):
    def health(client):
        began = time.monotonic()
        client.get("/health")
        return time.monotonic() - began

    with start(Recorder(), context="none") as client, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(client.post, "/score", content=body, headers={"Content-Type": "application/json"})
        with httpx.Client(base_url=client.base_url, timeout=30) as other:
            waited = []
            while not sending.done():
                waited.append(health(other))
    assert sending.result().status_code == status
    assert max(waited, default=0) < 3


def test_the_posts_of_all_labels_together_are_bounded(start):
    label = b'{"question": "Tea?", "posts": [' + b'"a",' * 1_999 + b'"a"]}'
    body = {"query": ["Qa"] * 101, "prompts": ["Q"] * 101, "labels": [label.decode()] * 101}
    with start(Recorder(), context="none") as client:
        refused = client.post("/get_reward", json=body)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (413, "items")
    assert "more than 200,000 posts together" in refused.json()["error"]["message"]


def test_the_limits_can_be_set(start):
    with start(Recorder(), max_text=5) as client:
        found = client.post("/score", json={"items": [{**POST, "answer": "abcdef", "question": "Tea?"}]})
        assert "a text may have 5 (--max-text)" in found.json()["items"][0]["error"]["message"]
        assert client.post("/score", json={"items": [{"question": "T?", "answer": "abc", "posts": ["x"]}]}).is_success


def test_openrlhf_is_told_as_well(start):
    label = '{"question": "Tea?", "posts": ["I like tea."]}'
    with start(Recorder()) as client:
        body = {"query": ["Q" + "x" * 30_000], "prompts": ["Q"], "labels": [label]}
        found = client.post("/get_reward", json=body)
    assert (found.status_code, found.json()["error"]["kind"]) == (413, "too-large")


def test_the_client_of_a_trainer_can_drop_what_is_too_large(start):
    with start(Recorder()) as client, RewardClient(str(client.base_url), on_error="drop") as rewards:
        assert rewards.score([{**POST, "answer": "x" * 30_000}]) == [None]
        assert rewards.tally.dropped == {"too-large": 1}


def test_a_long_judgment_and_too_many_of_them_are_refused(start):
    judgment = {"question": "Which?", "chosen": "red", "rejected": "blue"}
    with start(Adaptive(), max_judgments=3) as client:
        long = client.post("/users/zoe/feedback", json={**judgment, "chosen": "x" * 1_400_000})
        many = [client.post("/users/zoe/feedback", json={**judgment, "question": f"{n}?"}) for n in range(5)]
        again = client.post("/users/zoe/feedback", json={**judgment, "question": "0?"})
        kept = client.get("/users/zoe/feedback").json()["count"]
    assert long.status_code == 413
    assert "chosen has 1400000 characters, and a text may have 12000 (--max-text)" in long.json()["error"]["message"]
    assert [one.status_code for one in many] == [200, 200, 200, 413, 413]
    assert "3 are kept (--max-judgments)" in many[-1].json()["error"]["message"]
    assert (again.status_code, kept) == (200, 3)


def items(*answers, question="Tea?"):
    return [ScoreItem(question=question, answer=answer) for answer in answers]


def show(asked):
    return [AnswerView(item.question, item.answer) for item in asked]


def run(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def test_a_small_request_waits_for_no_more_than_the_batch_under_way():
    """Twenty long requests, of half a second each, stand before it."""
    model = Reader(speed=20_000)
    batcher = Batcher(model, show, QueueLimits(max_wait_s=0), Metrics())

    async def scenario():
        long = [asyncio.ensure_future(batcher.score(items("x" * 20_000, question=f"{n}?"))) for n in range(20)]
        await asyncio.sleep(0.1)
        waited = []
        for number in range(4):
            began = time.monotonic()
            assert await batcher.score(items(f"s{number}")) == [known_score("Tea?", f"s{number}")]
            waited.append(time.monotonic() - began)
        for one in long:
            one.cancel()
        return waited

    waited = run(scenario())
    batcher.stop()
    # A batch lasts as long as one of the long answers, a second, or two seconds once the model's pace is known.
    assert max(waited) < 4
    assert len(model.batches) > 5


def test_a_long_request_gets_its_turn_while_short_ones_keep_coming():
    model = Reader(speed=400_000)
    batcher = Batcher(model, show, QueueLimits(max_batch=4, max_wait_s=0), Metrics())

    async def scenario():
        stop = threading.Event()

        async def keep_coming(name):
            number = 0
            while not stop.is_set():
                number += 1
                await batcher.score(items(f"{name} {number} " + "y" * 2_000))

        crowd = [asyncio.ensure_future(keep_coming(name)) for name in "abcdefgh"]
        await asyncio.sleep(0.2)
        found = await asyncio.wait_for(batcher.score(items(*(f"{n}" + "x" * 19_000 for n in range(8)))), 30)
        stop.set()
        await asyncio.gather(*crowd)
        return found

    assert run(scenario()) == [known_score("Tea?", f"{n}" + "x" * 19_000) for n in range(8)]
    batcher.stop()


def test_a_batch_is_cut_by_cost_but_candidates_share_their_prompt():
    alike = [Waiting("ann", "Tea?", own=100, shared=50_000) for _ in range(8)]
    assert next_batch(alike, most=32, budget=10_000) == list(range(8))
    unlike = [Waiting("ann", f"{n}?", own=100, shared=4_000) for n in range(8)]
    assert next_batch(unlike, most=32, budget=10_000) == [0, 1]


class Diligent(Adaptive):
    """Reads answers slowly and posts fast, keeps what it has read, and reads all that a user has judged first."""

    def __init__(self, answers=100_000, posts=10_000_000):
        super().__init__()
        self.card = ModelCard(address="diligent", revision="1", reads=frozenset(Channel))
        self.answers, self.posts = answers, posts
        self.read, self.calls, self.judged = set(), [], {}

    def hold_back(self):
        """As a personal model does."""

    def forget(self):
        self.read.clear()

    def fit_user(self, user, judgments):
        self.judged[user] = judgments

    def rate(self, views):
        before = time.monotonic()
        for place, view in enumerate(views):
            judged = self.judged.get(view.user, ())
            texts = {view.answer, *(text for one in judged for text in (one.chosen, one.rejected))} - self.read
            self.read |= texts
            posts = sum(len(post.text) for post in view.posts)
            time.sleep(sum(map(len, texts)) / self.answers + posts / self.posts)
            yield place, Outcome.scored(float(len(view.answer)))
        self.calls.append(time.monotonic() - before)


def judgment(number, length=2_000):
    return {"question": f"{number}?", "chosen": f"{number}" + "c" * length, "rejected": f"{number}" + "r" * length}


def test_all_that_a_user_has_judged_is_read_a_part_at_a_time(start):
    model = Diligent(answers=40_000)
    with start(model) as client:
        for number in range(40):
            assert client.post("/users/zoe/feedback", json=judgment(number)).is_success
        reply = client.post("/score", json={"items": [{"question": "Tea?", "answer": "abc", "user": "zoe"}]})
        calls = len(model.calls)
        again = client.post("/score", json={"items": [{"question": "Tea?", "answer": "abcd", "user": "zoe"}]})
    assert reply.json()["scores"] == [3.0]
    assert len(model.read) > 80  # four seconds of work
    assert max(model.calls) < 3.5
    assert calls > 2
    assert again.json()["scores"] == [4.0]
    assert len(model.calls) == calls + 1  # what was read is not read again


def test_all_that_a_user_has_judged_is_bounded_together(start):
    with start(Adaptive(), max_item=10_000) as client:
        taken = [client.post("/users/zoe/feedback", json=judgment(number)) for number in range(4)]
    assert [one.status_code for one in taken] == [200, 200, 413, 413]
    assert "'zoe' has judged would have 12012 characters, and 10000 are kept (--max-item)" in taken[2].text


@pytest.mark.parametrize("kept", [False, True], ids=["posts seen before", "answers that the model knows"])
def test_what_was_fast_misleads_nobody_about_what_is_slow(kept):
    """Posts in plenty, or answers again that the model has kept: neither says how long new answers take."""
    model = Diligent(answers=20_000)
    batcher = Batcher(
        model,
        lambda asked: [AnswerView(one.question, one.answer, one.posts or ()) for one in asked],
        QueueLimits(max_wait_s=0),
        Metrics(),
    )
    posts = [f"{n}" + "p" * 10_000 for n in range(30)]

    async def scenario():
        for number in range(12):
            text = "known" + "k" * 10_000 if kept else f"{number}"
            await batcher.score(
                [ScoreItem(question=f"{'' if kept else number}?", answer=text, posts=[] if kept else posts)]
            )
        model.calls.clear()
        long = [
            asyncio.ensure_future(batcher.score(items(*(f"{n} {m}" + "x" * 9_000 for m in range(8)), question=f"{n}!")))
            for n in range(2)
        ]
        await asyncio.sleep(0.1)
        await batcher.score(items("short"))
        for one in long:
            one.cancel()

    run(scenario())
    batcher.stop()
    assert max(model.calls) < 3  # of 7.2 seconds that wait


def test_what_strangers_bring_along_is_counted_for_each():
    stranger = [waiting_of(ScoreItem(question="Tea?", answer="a", posts=[f"{n}" + "x" * 300_000])) for n in range(3)]
    assert load_of(stranger).shared > 900_000
    same = [waiting_of(ScoreItem(question="Tea?", answer=f"{n}", posts=["x" * 300_000])) for n in range(3)]
    assert load_of(same).shared < 301_000


async def learned(batcher):
    """Let it find out how fast its model is; it takes note of that when the answer is on its way already."""
    await batcher.score(items("z" * 4_000))
    while not batcher._pace.known:
        await asyncio.sleep(0.01)


def test_what_cannot_be_done_in_time_is_refused_before_it_is_begun():
    model = Reader(speed=20_000)
    batcher = Batcher(model, show, QueueLimits(max_wait_s=0, deadline_s=3), Metrics())

    async def scenario():
        await learned(batcher)
        with pytest.raises(TooManyError, match=r"would take about \d+ s, and it may take 3 s"):
            await batcher.score(items(*(f"{n}" + "x" * 19_000 for n in range(5))))
        with pytest.raises(TooManyError, match="may take 1 s"):
            await batcher.score(items("x" * 40_000), within_s=1)
        waiting = [asyncio.ensure_future(batcher.score(items("w" * 19_000, question=f"{n}?"))) for n in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(OverloadedError, match="too long for this request"):
            await batcher.score(items("v" * 45_000))
        for one in waiting:
            one.cancel()

    run(scenario())
    batcher.stop()
    assert 45_000 not in [length for batch in model.batches for length in batch]


def test_what_was_not_reached_before_its_deadline_is_not_begun():
    model = Recorder()
    model.gate.clear()
    batcher = Batcher(model, show, QueueLimits(max_batch=1, max_wait_s=0, deadline_s=0.2), Metrics())

    async def scenario():
        first = asyncio.ensure_future(batcher.score(items("under way")))
        while not model.batches:
            await asyncio.sleep(0.005)
        late = asyncio.ensure_future(batcher.score(items("late")))
        await asyncio.sleep(0.3)
        model.gate.set()
        with pytest.raises(OverloadedError, match="before its deadline"):
            await late
        return await first

    assert run(scenario()) == [known_score("Tea?", "under way")]
    batcher.stop()
    assert [[view.answer for view in batch] for batch in model.batches] == [["under way"]]


def test_a_client_says_how_long_it_waits(start):
    with start(Reader(speed=8_000), context="none") as client:
        client.post("/score", json={"items": [{"question": "Tea?", "answer": "z" * 4_000}]})
        body = {"items": [{"question": "Tea?", "answer": "x" * 11_999}, {"question": "Tea?", "answer": "y" * 11_999}]}
        refused = client.post("/score", json=body, headers={"Prefer": "respond-async, wait=1"})
        taken = httpx.post(f"{client.base_url}/score", json=body, timeout=30)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (413, "items")
    assert taken.status_code == 200
