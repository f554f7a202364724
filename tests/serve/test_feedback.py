"""Judgments: learned from, on disk before they are confirmed, replayed at the next start, and really forgotten."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from prbench.errors import ConfigError, DataError, ModelError
from prbench.models import load_model
from prbench.serve import RewardClient, ScoreItem, ServeConfig
from prbench.serve.feedback import FeedbackFile
from prbench.serve.service import open_service
from prbench.types import AnswerView, Judgment
from serve_models import Adaptive, Recorder

RED = {"question": "Which ink?", "chosen": "The red ink.", "rejected": "The blue ink."}


def scores(client, user):
    items = [{"question": "Which yarn?", "answer": answer, "user": user} for answer in ("red yarn", "blue yarn")]
    response = client.post("/score", json={"items": items})
    return response.status_code, response.json()["scores"]


def test_a_judgment_changes_what_the_user_is_paid_for(start, tmp_path):
    with start(Adaptive()) as client:
        assert scores(client, "zoe") == (422, [None, None])  # nobody knows her
        assert client.get("/users/zoe/feedback").json() == {"user": "zoe", "count": 0, "judgments": []}
        assert client.post("/users/zoe/feedback", json=RED).json() == {"user": "zoe", "count": 1}
        assert scores(client, "zoe") == (200, [1.0, 0.0])
        assert client.get("/users/zoe/feedback").json()["judgments"] == [RED]
        assert client.get("/health").json()["revision"] == ""  # what was scored before must not be taken from a cache

    with start(Adaptive()) as client:  # another process would do the same
        assert scores(client, "zoe") == (200, [1.0, 0.0])
        assert client.delete("/users/zoe/feedback").json() == {"user": "zoe", "forgotten": 1}
        assert scores(client, "zoe") == (422, [None, None])
        assert client.delete("/users/zoe/feedback").json()["forgotten"] == 0
    assert "zoe" not in (tmp_path / "judged.jsonl").read_text()


class Reusable(Adaptive):
    """Its scores may be taken from a cache."""

    def __init__(self):
        super().__init__()
        self.card = self.card.model_copy(update={"reusable": True})


def test_scores_of_an_adapted_model_do_not_pass_for_those_of_the_model_that_was_opened(start):
    views = [AnswerView("Which yarn?", "red yarn", (), (), "zoe")]
    with start(Reusable()) as client:
        address = f"http:{client.base_url}"
        opened = load_model(address)
        assert opened.card.reusable
        assert [outcome.score for _, outcome in opened.rate(views)] == [0.0]
        client.post("/users/zoe/feedback", json=RED)
        ((_, outcome),) = opened.rate(views)
        assert (outcome.status, outcome.score) == ("failed", None)
        assert opened.card.revision in outcome.reason
        assert "feedback" in outcome.reason
        again = load_model(address)
        assert not again.card.reusable
        assert [outcome.score for _, outcome in again.rate(views)] == [1.0]
        client.delete("/users/zoe/feedback")
        assert [outcome.score for _, outcome in opened.rate(views)] == [0.0]


def test_what_was_scored_while_somebody_was_known_and_forgotten_again_has_no_revision(suite, tmp_path):
    gate = threading.Event()

    class Gated(Reusable):
        def rate(self, views):
            gate.wait(20)
            return super().rate(views)

    async def scenario(service):
        items = [ScoreItem(question="Which yarn?", answer=f"red {number}", user="zoe", posts=()) for number in range(3)]
        together = asyncio.gather(
            service.score(items), service.adapt("zoe", Judgment.model_validate(RED)), service.forget("zoe")
        )
        await asyncio.sleep(0)  # all three are in the queue
        gate.set()
        return await together, await service.score(items)

    config = ServeConfig.of(model="m", max_batch=1, max_wait_ms=0, state=tmp_path / "judged.jsonl")
    with open_service(config, model=Gated(), suite=suite) as service, ThreadPoolExecutor(1) as pool:
        (during, *_), after = pool.submit(asyncio.run, scenario(service)).result()
        assert after == ([0.0, 0.0, 0.0], service.health()["revision"])
    assert 1.0 in during.scored
    assert during.revision == ""


def test_no_question_of_somebody_who_is_forgotten_stays_in_the_queue(suite, tmp_path):
    async def scenario(service):
        await service.score([ScoreItem(question="Which secret yarn?", answer="red", user="zoe", posts=())])
        await service.adapt("zoe", Judgment.model_validate(RED))
        before = repr(service.batcher._pace._met)
        await service.forget("zoe")
        return before, repr(service.batcher._pace._met)

    config = ServeConfig.of(model="m", state=tmp_path / "judged.jsonl")
    with open_service(config, model=Reusable(), suite=suite) as service, ThreadPoolExecutor(1) as pool:
        before, after = pool.submit(asyncio.run, scenario(service)).result()
    assert "Which secret yarn?" in before
    assert after == "{}"


def test_a_retry_does_not_count_twice(start):
    with start(Adaptive()) as client:
        for _ in range(3):
            assert client.post("/users/zoe/feedback", json=RED).json()["count"] == 1
        other = {**RED, "chosen": "The very red ink."}
        assert client.post("/users/zoe/feedback", json=other).json()["count"] == 2


def test_names_may_hold_anything(start):
    with start(Adaptive()) as client:
        rewards = RewardClient(str(client.base_url))
        for user in ("a/b", "jürgen 2", "x%2Fy", "?q=1", ".", "..", "a/../b", "v1.2"):
            assert rewards.judge(user, **RED) == 1
            assert scores(client, user)[0] == 200
            assert rewards.forget(user) == 1
        rewards.close()


def test_a_user_of_the_suite_learns_beside_the_posts(start, suite):
    user = suite[0].user
    with start(Adaptive()) as client:
        before = scores(client, user)
        client.post(f"/users/{user}/feedback", json=RED)
        assert scores(client, user) == before  # this model follows posts where there are some
        assert client.get(f"/users/{user}/feedback").json()["count"] == 1


def test_a_model_that_does_not_learn_says_so(start):
    with start(Recorder()) as client:
        refused = client.post("/users/zoe/feedback", json=RED)
        assert refused.status_code == 501
        assert "fit_user" in refused.json()["error"]["message"]
        assert client.delete("/users/zoe/feedback").status_code == 501
        assert client.get("/users/zoe/feedback").json()["count"] == 0
        assert not client.get("/health").json()["adapts"]


def test_a_judgment_that_would_change_nothing_is_refused(start, tmp_path):
    (tmp_path / "judged.jsonl").write_text(json.dumps({"user": "ann", **RED}) + "\n")
    model = Reusable()
    with start(model, context="none") as client:
        for refused in (client.post("/users/zoe/feedback", json=RED), client.delete("/users/ann/feedback")):
            assert refused.status_code == 409
            assert "context 'none' shows the model no user" in refused.json()["error"]["message"]
        health = client.get("/health").json()
        assert not health["adapts"]
        assert health["revision"]  # what is in the file has no part in the scores
    assert not model.judged


def test_what_another_model_has_learned_is_not_known(start, tmp_path):
    (tmp_path / "judged.jsonl").write_text(json.dumps({"user": "zoe", **RED}) + "\n")
    with start(Recorder()) as client:
        assert scores(client, "zoe") == (422, [None, None])


@pytest.mark.parametrize("error", [ModelError("one reward for all"), KeyError("one reward for all")])
def test_a_stored_judgment_that_the_model_refuses_is_named(start, tmp_path, error):
    class Stubborn(Adaptive):
        def fit_user(self, user, judgments):
            raise error

    (tmp_path / "judged.jsonl").write_text(json.dumps({"user": "ann", **RED}) + "\n")
    with pytest.raises(ModelError, match=r"'ann' has judged \(.*judged\.jsonl\): .*one reward") as caught:
        start(Stubborn()).__enter__()
    assert "--state" in caught.value.hint


def test_a_model_that_refuses_to_learn_keeps_nothing(start, tmp_path, caplog):
    class Stubborn(Adaptive):
        def fit_user(self, user, judgments):
            raise ModelError("secret/path: one reward for all")

    with start(Stubborn()) as client:
        refused = client.post("/users/zoe/feedback", json=RED)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "model")
        assert "secret" not in refused.text
        assert client.get("/users/zoe/feedback").json()["count"] == 0
    assert "secret/path" in caplog.text
    assert not (tmp_path / "judged.jsonl").exists()


def test_a_model_that_calls_exit_while_it_learns_ends_nothing(start):
    class Leaving(Adaptive):
        def fit_user(self, user, judgments):
            if user == "zoe":
                raise SystemExit("secret/path")
            super().fit_user(user, judgments)

    with start(Leaving()) as client:
        refused = client.post("/users/zoe/feedback", json=RED)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (500, "internal")
        assert "secret" not in refused.text
        assert client.post("/users/ann/feedback", json=RED).status_code == 200
        assert scores(client, "ann") == (200, [1.0, 0.0])
        assert client.get("/health").json()["status"] == "ready"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"question": "Q?", "chosen": "a"}, "rejected is missing"),
        ({"question": "Q?", "chosen": "a", "rejected": "a"}, "the same text"),
        ({"question": "Q?", "chosen": "a", "rejected": 3}, "rejected is 3"),
    ],
)
def test_a_wrong_judgment_is_told_what_is_wrong(start, body, says):
    with start(Adaptive()) as client:
        response = client.post("/users/zoe/feedback", json=body)
    assert response.status_code == 400
    assert says in response.json()["error"]["message"]


def test_what_cannot_be_kept_is_not_learned(start, tmp_path):
    model = Adaptive()
    with start(model) as client:
        client.post("/users/zoe/feedback", json=RED)
        (tmp_path / "judged.jsonl").unlink()
        (tmp_path / "judged.jsonl").mkdir()  # from now on nothing can be written
        failed = client.post("/users/zoe/feedback", json={**RED, "question": "Which kite?"})
        assert failed.status_code == 500
        assert client.get("/users/zoe/feedback").json()["count"] == 1
        assert len(model.judged["zoe"]) == 1


def test_what_cannot_be_forgotten_on_disk_is_not_half_forgotten(start, tmp_path):
    model = Adaptive()
    with start(model) as client:
        client.post("/users/zoe/feedback", json=RED)
        (tmp_path / "judged.jsonl").unlink()
        (tmp_path / "judged.jsonl").mkdir()  # from now on nothing can be written
        assert client.delete("/users/zoe/feedback").status_code == 500
        assert client.get("/users/zoe/feedback").json()["count"] == 1
        assert scores(client, "zoe") == (200, [1.0, 0.0])
        (tmp_path / "judged.jsonl").rmdir()
        assert client.delete("/users/zoe/feedback").json()["forgotten"] == 1
        assert model.judged["zoe"] == ()


def test_whatever_keeps_a_judgment_from_the_disk_it_is_not_learned(start, monkeypatch):
    model = Adaptive()

    def broken(*_):
        raise ValueError("not even an OSError")

    monkeypatch.setattr(FeedbackFile, "add", broken)
    with start(model) as client:
        assert client.post("/users/zoe/feedback", json=RED).status_code == 500
        assert model.judged["zoe"] == ()


def test_nobody_is_no_user(start, tmp_path):
    model = Adaptive()
    with start(model) as client:
        for refused in (
            client.post("/users//feedback", json=RED),
            client.get("/users//feedback"),
            client.delete("/users//feedback"),
        ):
            assert refused.status_code == 400
            assert "names no user" in refused.json()["error"]["message"]
    assert not model.judged
    assert not (tmp_path / "judged.jsonl").exists()


def test_a_torn_last_line_is_cut_off_and_the_rest_stands(tmp_path):
    path = tmp_path / "judged.jsonl"
    judgments = [Judgment(question=f"Q{number}?", chosen="a", rejected="b") for number in range(3)]
    with FeedbackFile(path) as file:
        for judgment in judgments:
            assert file.add("ann", judgment)
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(last, len(whole)):
        path.write_bytes(whole[:cut])
        with FeedbackFile(path) as file:
            assert file.of("ann") == tuple(judgments[:2])
            file.add("ann", judgments[2])
        assert path.read_bytes() == whole


def test_a_line_that_is_no_judgment_is_refused_with_its_number(tmp_path):
    path = tmp_path / "judged.jsonl"
    path.write_text(json.dumps({"user": "ann", **RED}) + '\n{"user": "ann"}\n')
    with pytest.raises(DataError, match="line 2"), FeedbackFile(path):
        pass


def test_two_servers_do_not_share_a_file(tmp_path):
    with (
        FeedbackFile(tmp_path / "judged.jsonl"),
        pytest.raises(ConfigError, match="another server") as caught,
        FeedbackFile(tmp_path / "judged.jsonl"),
    ):
        pass
    assert "--state" in caught.value.hint


def test_forgetting_one_leaves_the_others(tmp_path):
    path = tmp_path / "judged.jsonl"
    judgment = Judgment(question="Q?", chosen="a", rejected="b")
    with FeedbackFile(path) as file:
        for user in ("ann", "bob", "eve"):
            file.add(user, judgment)
        assert file.forget("bob") == 1
        file.add("dan", judgment)
    with FeedbackFile(path) as file:
        assert list(file.users) == ["ann", "eve", "dan"]
    assert "bob" not in path.read_text()
