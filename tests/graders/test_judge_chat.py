"""The chat judge against a real server: it is shown the whole rubric, and what it fails to say is never a number."""

import pytest

from fake_server import FakeServer, Fault, chat_reply, where
from prbench.config import ModelOptions, Price
from prbench.graders import Grading, load_judge
from prbench.types import Aspect

ASPECTS = (
    Aspect(aspect="Costs next to nothing", reason="Lives on a pension", evidence="“I count every coin”"),
    Aspect(aspect="Numbered steps", reason="Ticks off what is done"),
)


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def open_judge(server, **changes):
    return load_judge(f"chat:judge@{server.url}", ModelOptions(**{"timeout_s": 5.0, "retries": 0, **changes}))


def gradings(*answers, aspects=ASPECTS):
    return [Grading("How do I heat?", answer, aspects) for answer in answers]


def grades(judge, asked):
    found = list(judge.grade(asked))
    assert sorted(place for place, _ in found) == list(range(len(asked)))
    return [grade for _, grade in sorted(found, key=lambda item: item[0])]


def reply_by_answer(replies):
    """The reply that belongs to the answer which stands in the prompt."""

    def answer(body):
        text = body["messages"][0]["content"]
        return next(reply for part, reply in replies.items() if f"\n{part}\n" in text)

    return answer


def test_every_answer_gets_its_own_grades_whatever_the_order():
    replies = {"wood": "Cheap.\nGrades: [2, 0]", "gas": "1: 0\n2: 1", "sun": "[1, 2]"}
    with FakeServer(answer=reply_by_answer(replies)) as server:
        found = grades(open_judge(server), gradings("sun", "wood", "gas", "wood"))
    assert [grade.aspects for grade in found] == [(1, 2), (2, 0), (0, 1), (2, 0)]
    assert found[1].score == 1.0
    assert found[1].tokens_in == 100
    assert found[1].latency_ms > 0


def test_the_judge_reads_titles_reasons_and_evidence_and_not_a_joined_list():
    with FakeServer(answer=lambda body: "[2, 2]") as server:
        grades(open_judge(server), gradings("wood"))
    text = server.requests[0].text
    lines = [line.strip() for line in text.splitlines()]
    assert "1. Costs next to nothing" in lines
    assert "2. Numbered steps" in lines
    assert "Why: Lives on a pension" in lines
    assert "Shown by: “I count every coin”" in lines
    assert "Costs next to nothing, Numbered steps" not in text


@pytest.mark.parametrize(
    "reply", ["[2, 2, 2]", "[0.5, 1]", "[3, 0]", "Both are met.", "", chat_reply("[2, 2]", "length")]
)
def test_a_reply_that_cannot_be_read_is_invalid_and_no_zero(reply):
    with FakeServer(answer=lambda body: reply) as server:
        (grade,) = grades(open_judge(server), gradings("wood"))
    assert grade.status == "invalid"
    assert grade.score is None
    assert grade.reason
    assert grade.tokens_out == 10  # it was paid for all the same


def test_a_server_error_is_failed_and_the_others_stand():
    fault = where("gas", Fault("status", status=500))
    with FakeServer(answer=lambda body: "[2, 1]", plan=fault) as server:
        wood, gas = grades(open_judge(server), gradings("wood", "gas"))
    assert wood.score == 1.5
    assert (gas.status, gas.score) == ("failed", None)


def test_a_refusal_is_invalid():
    with FakeServer(answer=lambda body: chat_reply(None, refusal="I will not.")) as server:
        (grade,) = grades(open_judge(server), gradings("wood"))
    assert (grade.status, grade.score, grade.reason) == ("invalid", None, "refused")


def test_a_rubric_without_aspects_is_refused_without_a_call():
    with FakeServer() as server:
        judge = open_judge(server)
        asked = gradings("wood", aspects=())
        assert judge.refuses(asked[0]) == "the rubric has no aspects"
        (grade,) = grades(judge, asked)
        assert judge.forecast(asked) == 0
    assert grade.status == "invalid"
    assert server.requests == []


def test_the_forecast_is_near_what_is_sent_and_counts_equal_gradings_once():
    with FakeServer(answer=lambda body: "[1, 1]") as server:
        judge = open_judge(server)
        once = judge.forecast(gradings("wood"))
        assert judge.forecast(gradings("wood", "wood")) == once
        assert judge.forecast(gradings("wood", "gas")) > 1.9 * once
        assert server.requests == []
        grades(judge, gradings("wood"))
        assert len(server.requests[0].text) / 5 < once < len(server.requests[0].text)


def test_the_card_says_all_that_could_change_a_grade():
    with FakeServer() as server:
        cards = [
            open_judge(server, **changes).card
            for changes in ({}, {"temperature": 0.5}, {"max_tokens": 9}, {"seed": 3}, {"concurrency": 2})
        ]
    assert len({str(sorted(card.parameters.items())) for card in cards}) == 4
    assert not cards[1].deterministic
    assert cards[0].address.startswith("chat:judge@")


def test_the_cost_is_kept():
    with FakeServer(answer=lambda body: "[1, 1]") as server:
        (grade,) = grades(open_judge(server, price=Price(per_million_in=1e4, per_million_out=1e5)), gradings("wood"))
    assert grade.cost_usd == pytest.approx(2.0)
