"""Faults of a served judge: none changes an accuracy, and all that remain are counted."""

import re

import pytest

from fake_server import FakeServer, Fault, every, first_attempts, where
from prbench import evaluate
from prbench.config import ModelOptions, Price, RunConfig
from prbench.data import Suite
from prbench.errors import BudgetError
from prbench.models.remote import chat
from prbench.models.remote.wire import Backoff
from prbench.results import RunFolder
from prbench.run import Session, execute
from prbench.stats import AccuracyBounds
from small_suite import mirrored

FAST = Backoff(0.001, 0.01, 0.001, 0.05)


def judge(body):
    """A judge that follows the user: it takes the answer with the colour that the posts praise."""
    text = body["messages"][-1]["content"]
    taste = re.search(r"glad of the (\w+)", text)
    first = re.findall(r"Get the (\w+)", text)[0]
    if taste is None:
        return "Both are fine.\nResult: tie"
    return f"They like it.\nResult: {'A' if first == taste[1] else 'B'}"


def asked(server, **options):
    options = ModelOptions(timeout_s=2, **options)
    model = chat.load(f"judge@{server.url}", options, backoff=FAST)
    found = evaluate(model, mirrored(), contexts=["none", "profile", "opposite"], options=options, resamples=100)
    return found.contexts


@pytest.fixture(scope="module")
def clean():
    with FakeServer(answer=judge) as server:
        contexts = asked(server)
    assert contexts["profile"].accuracy.value == 1.0
    assert contexts["none"].accuracy.value == 0.5
    assert contexts["opposite"].accuracy.value == 0.0
    return contexts


PASSING = {
    "429": first_attempts(1, Fault("status", status=429, retry_after="0")),
    "500": first_attempts(2, Fault("status", status=500)),
    "hang": every(25, Fault("hang")),
    "half a JSON": first_attempts(1, Fault("half_json")),
    "half sent": first_attempts(1, Fault("half_sent")),
    "wrong schema": first_attempts(1, Fault("wrong_schema")),
    "reset": first_attempts(1, Fault("reset")),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_changes_nothing(clean, name):
    with FakeServer(answer=judge, plan=PASSING[name]) as server:
        assert asked(server) == clean


@pytest.mark.parametrize("kind", ["half_json", "wrong_schema", "empty_choices", "reset"])
def test_a_fault_that_stays_is_counted_and_touches_nothing_else(clean, kind):
    with FakeServer(answer=judge, plan=where("Which tea", Fault(kind))) as server:
        contexts = asked(server, retries=1)
    for name, context in contexts.items():
        assert context.failed_records == 12, name
        assert context.accuracy.n == 30
        assert context.accuracy.value == clean[name].accuracy.value
    assert contexts["profile"].bounds == AccuracyBounds(30 / 36, 1.0)


@pytest.mark.parametrize(
    "garbage", ["", "I'm sorry, I can't help.", "Both", "as a result: about", "Result: A or B", "🙂" * 50]
)
def test_garbage_text_is_invalid_and_touches_nothing_else(clean, garbage):
    def sometimes(body):
        return garbage if "Which tea" in body["messages"][-1]["content"] else judge(body)

    with FakeServer(answer=sometimes) as server:
        contexts = asked(server)
    for name, context in contexts.items():
        assert context.invalid_records == 12
        assert context.failed_records == 0
        assert context.accuracy.value == clean[name].accuracy.value


def test_what_arrives_at_the_server_has_the_posts_in_both_orders():
    with FakeServer(answer=judge) as server:
        asked(server)
        texts = [seen.text for seen in server.requests]
    with_posts = [text for text in texts if "u0a post 1" in text and "Which boots" in text]
    assert len(with_posts) == 2  # one for each order; as the opposite of u0b it is the same call
    assert any(text.index("Get the red") < text.index("Get the blue") for text in with_posts)
    assert any(text.index("Get the blue") < text.index("Get the red") for text in with_posts)


def test_plans_come_from_the_planner_and_a_failed_plan_is_a_failed_record(tmp_path):
    def planner(body):
        text = body["messages"][-1]["content"]
        if "expectations" not in text:
            return "Result: A" if re.findall(r"Get the (\w+)", text)[0] in text.split("wants ")[1][:5] else "Result: B"
        if "Which soup" in text:
            return "I cannot tell."
        taste = re.search(r"glad of the (\w+)", text)[1]
        return f"- wants {taste}\n- short"

    with FakeServer(answer=planner) as server:
        options = ModelOptions(timeout_s=5)
        model = chat.load(f"judge@{server.url}", options, backoff=FAST)
        found = evaluate(model, mirrored(), contexts=["plan"], options=options, out=tmp_path / "run")
    plan = found.contexts["plan"]
    assert plan.accuracy.value == 1.0
    assert plan.reasons == {"there is no plan for the pair": 12}
    lines = (tmp_path / "run" / "plans.jsonl").read_text().splitlines()
    assert len(lines) == 36


def test_plans_that_were_paid_for_are_kept_when_the_limit_stops_the_run(tmp_path):
    options = ModelOptions(timeout_s=5, price=Price(per_million_in=1000.0, per_million_out=1000.0))
    with FakeServer(answer=lambda body: "- wants red") as server:
        config = RunConfig.of(suite="small", model=f"chat:judge@{server.url}", contexts="plan", options=options)
        session = Session(config, suite=Suite.of(mirrored(), name="small"))
        with pytest.raises(BudgetError, match="for plans"):
            execute(session, RunFolder(tmp_path / "run"), max_cost_usd=0.05)
    assert 0 < len((tmp_path / "run" / "plans.jsonl").read_text().splitlines()) < 36
