"""Lists: `chat:#rank` on a scripted endpoint, `lm:#rank` from logits, rotations, and the lifting between kinds."""

import json
import re

import pytest
import torch
from transformers import AutoModelForCausalLM

import tiny_models
from fake_server import FakeServer, Fault, chat_reply
from prbench import evaluate
from prbench.config import ModelOptions, Price
from prbench.errors import AddressError, ModelError
from prbench.models import ListQuestion, ModelCard, as_ranker, load_model
from prbench.models.python import wrap
from prbench.models.remote.chat import ChatRanker, load
from prbench.models.remote.wire import Backoff
from prbench.types import ListView, Message, Outcome, PairView, Post, Prompt

FAST = Backoff(initial_s=0.001, max_s=0.01, jitter_s=0.001, retry_after_max_s=0.05)
ANSWERS = ("Assam, strong.", "Green tea it is.", "Mint.")
VIEW = ListView("Which tea?", ANSWERS, (Post(id="1", text="I sleep badly."),), (), "ann")


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def shown(body):
    """The answers as the endpoint is shown them, by their numbers."""
    text = body["messages"][-1]["content"]
    return {
        int(number): answer for number, answer in re.findall(r"<<< ANSWER (\d+)\n(.*?)\nANSWER \1 >>>", text, re.DOTALL)
    }


def by_length(body):
    """A judge that likes short answers."""
    return "Ranking: " + " > ".join(
        str(number) for number, _ in sorted(shown(body).items(), key=lambda one: len(one[1]))
    )


def first_is_best(body):
    """A judge that is all position."""
    return "Ranking: " + " > ".join(map(str, shown(body)))


def judge(server, **changes) -> ChatRanker:
    options = ModelOptions(**{"timeout_s": 5.0, "retries": 1, "concurrency": 4, **changes})
    return load(f"judge@{server.url}#rank", options, backoff=FAST)


def ranked(model, view=VIEW):
    question = ListQuestion.of(model, view)
    found = dict(model.rank(question.asked))
    return question, question.outcome([found[place] for place in range(len(question.asked))])


def test_a_list_is_one_request_and_its_order_the_scores():
    with FakeServer(answer=by_length) as server:
        model = judge(server)
        ((_, outcome),) = model.rank([VIEW])
    assert outcome.scores == (0.5, 0.0, 1.0)
    assert (outcome.status, outcome.raw) == ("ok", "Ranking: 3 > 1 > 2")
    assert model.card.address.endswith("#rank")
    assert sorted(model.card.reads) == ["plan", "posts"]
    assert len(server.requests) == 1
    assert "I sleep badly." in server.requests[0].text


def test_every_answer_stands_in_every_place_once_and_a_judge_of_places_ties_all():
    with FakeServer(answer=first_is_best) as server:
        question, outcome = ranked(judge(server))
        places = [{answer: number for number, answer in shown(one.body).items()} for one in server.requests]
    assert len(question.asked) == 3
    for answer in ANSWERS:
        assert sorted(one[answer] for one in places) == [1, 2, 3]
    assert outcome.scores == pytest.approx((0.5, 0.5, 0.5))
    assert outcome.tokens_in == 300, "of all requests"


def test_a_judge_of_answers_is_read_the_same_from_every_rotation():
    with FakeServer(answer=by_length) as server:
        _, outcome = ranked(judge(server))
    assert outcome.scores == pytest.approx((0.5, 0.0, 1.0))


@pytest.mark.parametrize("said", ["Ranking: 1 > 2", "Ranking: 1 > 2 > 2", "I cannot decide.", ""])
def test_an_unreadable_rotation_leaves_the_list_without_scores(said):
    answers = iter([said])
    with FakeServer(answer=lambda body: next(answers, "Ranking: 1 > 2 > 3")) as server:
        _, outcome = ranked(judge(server, concurrency=1))
    assert (outcome.status, outcome.scores, outcome.score) == ("invalid", (), None)
    assert outcome.reason


def test_a_request_without_an_answer_is_failed():
    with FakeServer(plan=lambda seen: Fault("status", 500)) as server:
        _, outcome = ranked(judge(server))
    assert (outcome.status, outcome.scores) == ("failed", ())


def test_a_list_of_one_is_refused_before_the_first_request():
    with FakeServer() as server:
        model = judge(server)
        with pytest.raises(ModelError, match="1 answer to 'Which tea\\?', and nothing to rank"):
            model.rank([VIEW, ListView("Which tea?", ("Mint.",))])
        assert not server.requests


def test_equal_answers_are_shown_once_and_need_no_request_where_there_is_no_other():
    with FakeServer(answer=by_length) as server:
        model = judge(server)
        _, outcome = ranked(model, ListView("Which tea?", ("Mint.", "Assam.", "Mint.")))
        assert outcome.scores == pytest.approx((1.0, 0.0, 1.0))
        assert len(server.requests) == 2
        question, outcome = ranked(model, ListView("Which tea?", ("Mint.", "Mint.")))
        assert (question.asked, outcome.scores) == ((), (0.0, 0.0))
        assert len(server.requests) == 2


def test_a_pair_is_a_list_of_two_without_a_margin():
    with FakeServer(answer=lambda body: "Ranking: 2 > 1") as server:
        model = judge(server)
        views = [PairView("Which tea?", "Assam.", "Mint."), PairView("Which tea?", "Mint.", "Assam.")]
        found = dict(model.compare(views))
    assert [(found[place].verdict, found[place].margin, found[place].scores) for place in (0, 1)] == [
        ("second", None, ())
    ] * 2
    with FakeServer(answer=lambda body: "Ranking: 1 = 2") as server:
        ((_, outcome),) = judge(server).compare(views[:1])
    assert outcome.verdict == "tie"


def test_a_schema_for_rankings_is_sent_and_read():
    with FakeServer(answer=lambda body: json.dumps({"reasoning": "Brief.", "ranking": [2, 3, 1]})) as server:
        model = judge(server, structured="json-schema")
        ((_, outcome),) = model.rank([VIEW])
    assert outcome.scores == (0.0, 1.0, 0.5)
    schema = server.requests[0].body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["ranking"] == {"type": "array", "items": {"type": "integer"}}


def test_a_ranking_that_was_cut_off_is_not_read():
    reply = chat_reply("Ranking: 1 > 2 > 3", "length")
    with FakeServer(plan=lambda seen: Fault("body", body=reply)) as server:
        ((_, outcome),) = judge(server, price=Price(per_million_in=1.0, per_million_out=1.0)).rank([VIEW])
    assert (outcome.status, outcome.scores) == ("invalid", ())
    assert outcome.cost_usd > 0


def test_unknown_modes_name_the_known_ones():
    with pytest.raises(AddressError, match="unknown mode 'ranks'") as caught:
        load_model("chat:m@http://127.0.0.1:1/v1#ranks")
    assert "'rank'" in caught.value.hint


def test_a_jury_takes_a_listwise_judge_and_refuses_to_average_it():
    address = "chat:m@http://127.0.0.1:1/v1#rank"
    assert "#rank" in load_model(f"jury:{address},longer").card.address
    with pytest.raises(ModelError, match="without margins"):
        load_model(f"jury:{address},random#mean")


def test_a_language_model_is_read_at_the_letters_of_the_list(tiny_policy):
    model = load_model(f"lm:{tiny_policy}#rank")
    ((_, outcome),) = model.rank([VIEW])
    words = tiny_models.tokenizer()
    prompt = model.render(VIEW).messages[0].content
    ids = words.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    with torch.inference_mode():
        logits = AutoModelForCausalLM.from_pretrained(tiny_policy).eval()(**ids).logits[0, -1].double()
    weights = torch.stack([torch.logsumexp(logits[list(tokens)], 0) for tokens in model._tokens[:3]])
    assert outcome.scores == pytest.approx(torch.log_softmax(weights, 0).tolist(), abs=1e-4)
    question, mean = ranked(model)
    assert len(question.asked) == 3
    assert sum(mean.scores) < 0
    ((_, compared),) = model.compare([PairView("Which tea?", "Assam.", "Mint.")])
    assert compared.margin is not None


def test_a_list_longer_than_the_alphabet_is_refused(tiny_policy):
    model = load_model(f"lm:{tiny_policy}#rank")
    with pytest.raises(ModelError, match="a list of 27 answers, and there are 26 letters"):
        list(model.rank([ListView("Which tea?", tuple(map(str, range(27))))]))


def test_a_ranker_of_ones_own_compares_lists_of_two():
    class LikesShort:
        card = ModelCard(address="short", revision="1")
        favours_places, most_answers, note = False, None, "hello"

        def render(self, view):
            return Prompt(tuple(Message("answer", answer) for answer in view.answers))

        def rank(self, views):
            for place, view in enumerate(views):
                yield place, Outcome.ranked([-len(answer) for answer in view.answers])

    model = wrap(LikesShort)
    ((_, outcome),) = model.compare([PairView("Which tea?", "Assam.", "Mint.")])
    assert (outcome.verdict, outcome.margin) == ("second", None), "points are no log-odds"
    assert model.note == "hello"
    assert as_ranker(model) is model
    assert len(ListQuestion.of(model, VIEW).asked) == 1
    found = evaluate(LikesShort(), "mirror", contexts=["none"], limit=40).contexts["none"]
    assert found.accuracy.value == 0.5


def test_an_answer_without_a_score_leaves_a_lifted_list_without():
    class Gaps:
        card = load_model("longer").card

        def render(self, view): ...

        def rate(self, views):
            for place, view in enumerate(views):
                yield place, Outcome.invalid("no") if view.answer == "Mint." else Outcome.scored(1.0)

    ((_, outcome),) = as_ranker(Gaps()).rank([VIEW])
    assert (outcome.status, outcome.scores, outcome.reason) == ("invalid", (), "no")
    with pytest.raises(ModelError, match="nothing to rank"):
        list(as_ranker(Gaps()).rank([ListView("Which tea?", ())]))
