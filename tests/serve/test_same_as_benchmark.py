"""The server shows a model what the benchmark shows it, so a reward is a score that the benchmark has measured."""

import pytest

import tiny_models
from prbench import evaluate
from prbench.config import ModelOptions
from prbench.data import Suite
from prbench.errors import ModelError
from prbench.models import load_model
from prbench.serve import service
from prbench.types import AnswerView, Post
from small_suite import Spy, mirrored
from word_encoder import WordEncoder

CONTEXTS = ("none", "profile", "retrieved@2", "other", "opposite", "oracle")


def served_scores(client, pairs):
    """Both answers of each pair, asked by the user's name alone."""
    items = [
        {"question": pair.question, "answer": answer, "user": pair.user}
        for pair in pairs
        for answer in (pair.chosen, pair.rejected)
    ]
    response = client.post("/score", json={"items": items})
    assert response.status_code == 200
    scores = response.json()["scores"]
    return dict(zip([pair.id for pair in pairs], zip(scores[::2], scores[1::2], strict=True), strict=True))


def flat(scores):
    return {(pair, place): score for pair, both in scores.items() for place, score in enumerate(both)}


class Fresh(Spy):
    """Is asked everything, whatever an earlier test has asked."""

    def __init__(self, window=None):
        super().__init__(window)
        self.card = self.card.model_copy(update={"reusable": False})


def recorded(found, context):
    return {
        record.pair: (record.chosen_score, record.rejected_score)
        for record in found.records
        if record.context == context
    }


@pytest.mark.parametrize("context", ["none", "profile", "opposite"])
def test_a_served_score_is_the_recorded_one(start, suite, tiny_reward_model, context):
    options = ModelOptions(window=400)
    model = load_model(f"hf:{tiny_reward_model}", options)
    found = evaluate(model, suite, contexts=[context], split=None, resamples=100)
    with start(load_model(f"hf:{tiny_reward_model}", options), context=context) as client:
        served = served_scores(client, suite)
    expected = recorded(found, context)
    assert len(expected) == len(suite)
    assert flat(served) == pytest.approx(flat(expected), abs=1e-4)
    if context == "profile":
        assert len({round(score, 4) for pair in served.values() for score in pair}) > len(suite)


@pytest.mark.parametrize("window", [24, 30, 36])
def test_also_where_not_all_posts_fit(start, suite, window):
    there, here = Fresh(window), Fresh(window)
    found = evaluate(there, suite, contexts=["profile"], split=None, resamples=100)
    assert any(record.dropped for record in found.records)
    with start(here) as client:
        served = served_scores(client, suite)
    assert served == recorded(found, "profile")
    assert set(here.prompts) == set(there.prompts)


def test_prompts_and_scores_are_the_same_under_every_context(start, suite):
    for context in CONTEXTS:
        there, here = Fresh(), Fresh()
        found = evaluate(there, suite, contexts=[context], split=None, resamples=100)
        with start(here, context=context) as client:
            assert served_scores(client, suite) == recorded(found, context)
        assert set(here.prompts) == set(there.prompts)


@pytest.mark.parametrize("plan", ["plan", "profile+plan"])
def test_a_plan_comes_with_the_item(start, suite, plan, ask):
    model = Spy()
    pair = suite[0]
    item = {"question": pair.question, "answer": pair.chosen, "user": pair.user}
    with start(model, context=plan) as client:
        assert ask(client, {**item, "plan": ["Likes red"]})[0] == 200
        status, (entry,) = ask(client, item)
    assert status == 422
    assert "no plan" in entry["error"]["message"]
    shown = [message.content for message in model.prompts[-1].messages]
    posts = [post.text for post in pair.profile] if plan == "profile+plan" else []
    assert shown == [*posts, "Likes red", pair.question, pair.chosen]


def test_a_new_question_of_a_known_user_is_shown_with_the_users_posts(start, suite, ask):
    pair = suite[0]
    item = {"question": "Which lamp should I get?", "answer": "Get the red lamp.", "user": pair.user}
    for context, expected in (("profile", pair.user), ("opposite", None), ("other", None), ("none", "")):
        model = Spy()
        with start(model, context=context) as client:
            assert ask(client, item)[0] == 200
        (prompt,) = model.prompts
        *posts, question, answer = [message.content for message in prompt.messages]
        assert (question, answer) == (item["question"], item["answer"])
        assert bool(posts) == (context != "none")
        assert all(post.startswith(pair.user) == (expected == pair.user) for post in posts)


def test_what_a_user_expects_of_one_question_is_not_shown_with_another(start, suite, ask):
    with start(Spy(), context="oracle") as client:
        status, (entry,) = ask(client, {"question": "Which lamp?", "answer": "Red.", "user": suite[0].user})
    assert status == 422
    assert "no rubric aspects" in entry["error"]["message"]


def test_a_plan_that_the_context_does_not_show_is_not_passed_over(start, suite, ask):
    with start(Spy()) as client:
        item = {"question": "Which lamp?", "answer": "Red.", "user": suite[0].user, "plan": ["Likes red"]}
        status, (entry,) = ask(client, item)
        assert (status, entry["error"]["kind"]) == (422, "unfit")
        assert ask(client, {**item, "posts": ["I was glad of the red ink"]})[0] == 200


def test_a_stranger_needs_posts(start, ask):
    item = {"question": "Which lamp?", "answer": "Red."}
    with start(Spy()) as client:
        for user in ({}, {"user": "zoe"}):
            status, (entry,) = ask(client, {**item, **user})
            assert (status, entry["error"]["kind"]) == (422, "unknown-user")
        assert ask(client, {**item, "user": "zoe", "posts": ["I was glad of the red ink"]})[0] == 200
    with start(Spy(), context="other") as client:
        status, (entry,) = ask(client, {**item, "posts": ["I was glad of the red ink"]})
        assert (status, entry["error"]["kind"]) == (422, "unfit")


def test_answers_to_one_question_are_shown_with_the_same_posts(start, suite, ask):
    model = Spy(window=36)
    pair = suite[0]
    item = {"question": pair.question, "user": pair.user}
    with start(model) as client:
        ask(client, {**item, "answer": "red"}, {**item, "answer": "red " * 8})
        shown = [len(prompt.messages) for prompt in model.prompts]
        model.prompts.clear()
        ask(client, {**item, "answer": "red"})
        assert shown[0] == shown[1] < len(model.prompts[0].messages)


def test_an_answer_that_does_not_fit_is_an_error_of_its_own(start, suite, ask):
    pair = suite[0]
    item = {"question": pair.question, "user": pair.user}
    with start(Spy(window=30)) as client:
        status, entries = ask(
            client, {**item, "answer": "red " * 100}, {"question": "Another?", "user": pair.user, "answer": "red"}
        )
    assert status == 207
    assert entries[0]["error"]["kind"] == "unfit"
    assert "score" in entries[1]


def test_a_served_model_is_evaluated_as_the_model_itself(start):
    """`prbench run --model http:URL` against our own server: accuracy is identical, context by context."""
    suite = Suite.of(mirrored(couples=4, questions=5), name="small")
    contexts = ["none", "profile", "other", "opposite", "oracle"]
    settings = {"contexts": contexts, "split": None, "resamples": 100}
    direct = evaluate(Fresh(), suite, **settings)
    for served_under in ("profile", "plan", "profile+plan", "oracle"):  # an item with posts is shown what it brings
        with start(Fresh(), context=served_under) as client:
            address = "http:" + str(client.base_url).rstrip("/")
            through = evaluate(address, suite, **settings)
        assert not [record for record in through.records if record.status != "ok"]
        for context in contexts:
            here, there = (found.contexts[context].accuracy for found in (direct, through))
            assert here == there
            assert recorded(direct, context) == recorded(through, context)


@pytest.mark.parametrize("context", ["retrieved@2", "other", "opposite"])
def test_a_server_that_chooses_itself_what_is_shown_is_not_evaluated(start, context):
    with (
        start(Spy(), context=context) as client,
        pytest.raises(ModelError, match=f"under context '{context}'") as caught,
    ):
        load_model(f"http:{client.base_url}")
    assert "--context profile" in caught.value.hint


def test_a_server_that_shows_nothing_of_the_user_says_so(start):
    with start(Spy(), context="none") as client:
        assert client.get("/health").json()["reads"] == []
    with start(Spy()) as client:
        health = client.get("/health").json()
    assert health["reads"] == ["plan", "posts"]
    assert health["context"] == "profile"
    assert len(health["revision"]) == 16


def test_the_revision_changes_with_whatever_could_change_a_score(start, suite, monkeypatch):
    monkeypatch.setattr(service, "load_encoder", lambda address, options: WordEncoder())
    found = []
    for settings in ({}, {"ranker": "embed:words"}, {"seed": 1}, {"context": "other"}, {"suite": Suite.of(suite[:4])}):
        with start(Spy(), **settings) as client:
            found.append(client.get("/health").json()["revision"])
    with start(Spy(window=30)) as client:
        found.append(client.get("/health").json()["revision"])
    assert "" not in found
    assert len(set(found)) == len(found)
    with start(Spy()) as client:
        assert client.get("/health").json()["revision"] == found[0]


@pytest.mark.parametrize("answer", ["nan", "unreadable", "unanswered", "raise"])
def test_over_the_wire_a_failure_keeps_its_kind_whoever_is_beside_it(faulty, answer):
    model = load_model(f"http:{faulty.base_url}", ModelOptions(retries=0))
    views = [AnswerView("Tea?", text, (Post(id="1", text="I like tea."),)) for text in ("good", answer)]
    kind = "failed" if answer in ("unanswered", "raise") else "invalid"
    among, alone = dict(model.rate(views)), dict(model.rate(views[1:]))
    assert among[0].score is not None
    for outcome in (among[1], alone[0]):
        assert (outcome.status, outcome.score) == (kind, None)
    said = {
        "nan": "nan",
        "unreadable": "no number in the reply",
        "unanswered": "the model failed",
        "raise": "RuntimeError",
    }
    assert said[answer] in among[1].reason
    assert kind == "failed" or alone[0].reason == among[1].reason


def test_a_tight_tokenizer_window_is_kept_by_real_weights(start, suite, tmp_path):
    folder = tiny_models.save_reward_model(tmp_path / "rm", seed=5)
    options = ModelOptions(window=130)
    model = load_model(f"hf:{folder}", options)
    found = evaluate(model, suite, contexts=["profile"], split=None, resamples=100)
    assert any(record.dropped for record in found.records)
    with start(load_model(f"hf:{folder}", options)) as client:
        served = served_scores(client, suite)
    assert flat(served) == pytest.approx(flat(recorded(found, "profile")), abs=1e-4)
