"""Money: nothing that was spent is forgotten over `kill -9`, and every room stops at the same limit.

The server is real, on loopback; each reply takes 100 tokens in and 10 out, which at the price below is eleven cents.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from fake_server import FakeServer, Fault, chat_reply, every, first_attempts
from prbench import evaluate
from prbench.build.written import Decoding
from prbench.build.written.replies import Replies, WritingRequest
from prbench.calls import Budget, CallCache, Spending
from prbench.calls.budget import FILE, read_spending
from prbench.config import ModelOptions, Price, RunConfig
from prbench.data import Suite, write_pairs
from prbench.errors import BudgetError, RunError
from prbench.graders import Grading
from prbench.graders.chat import ChatJudge
from prbench.models import Jury, load_generator, load_model
from prbench.models.remote import chat
from prbench.models.remote.wire import Backoff
from prbench.plan import Planner, needs_of
from prbench.results import RunFolder
from prbench.run import PlanFile, Session, execute
from prbench.stress import stress
from prbench.studies.best_of_n.candidates import Candidate
from prbench.studies.best_of_n.grades import FILE as GRADES
from prbench.studies.best_of_n.grades import Judging
from prbench.studies.best_of_n.recipe import study_budget
from prbench.types import Aspect, Message, Prompt
from small_suite import mirrored

PRICE = Price(per_million_in=1000.0, per_million_out=1000.0)
REPLY_USD = 0.11
FAST = Backoff(initial_s=0.01, max_s=0.01, jitter_s=0.0)
AT_ONCE = 4


def judge(server, **options):
    return chat.load(
        f"judge@{server.url}", ModelOptions(price=PRICE, concurrency=AT_ONCE, timeout_s=20, **options), backoff=FAST
    )


def run(server, folder, limit_usd):
    options = ModelOptions(price=PRICE, concurrency=AT_ONCE)
    config = RunConfig.of(suite="small", model=f"chat:judge@{server.url}", contexts="profile", options=options)
    session = Session(config, suite=Suite.of(mirrored(), name="small"))
    return execute(session, RunFolder(folder / "run"), max_cost_usd=limit_usd)


def timing_of(folder: Path) -> dict:
    return json.loads((folder / "result.json").read_text())["result"]["timing"]


def command(folder: Path, server: FakeServer) -> list[str]:
    arguments = ["--suite", str(folder / "pairs.jsonl"), "--model", f"chat:judge@{server.url}", "--context", "profile"]
    arguments += ["--price", "1000,1000", "--concurrency", str(AT_ONCE), "--timeout", "60", "--resamples", "100"]
    return [sys.executable, "-m", "prbench", "run", *arguments, "-o", str(folder / "run"), "--full"]


def test_what_is_in_flight_at_kill_9_counts_at_its_upper_bound_and_is_marked(tmp_path):
    write_pairs(mirrored(couples=2, questions=3), tmp_path / "pairs.jsonl")
    with FakeServer(plan=lambda seen: Fault("hang") if seen.number > 5 else None) as server:
        process = subprocess.Popen(
            command(tmp_path, server), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while len(server.requests) < 5 + AT_ONCE and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        spent = read_spending(tmp_path / "run" / FILE)
        assert (spent.settled_usd, spent.unsettled) == (pytest.approx(5 * REPLY_USD), AT_ONCE)
        assert spent.unsettled_usd >= AT_ONCE * REPLY_USD  # what they can have cost, and more than they would have
        server.plan = lambda seen: None
        finished = subprocess.run(command(tmp_path, server), cwd=tmp_path, capture_output=True, text=True, check=True)
        sent = len(server.requests)
    timing = timing_of(tmp_path / "run")
    assert timing["unsettled_calls"] == AT_ONCE
    assert timing["spent_usd"] - timing["unsettled_usd"] == pytest.approx((sent - AT_ONCE) * REPLY_USD)
    assert timing["spent_usd"] >= sent * REPLY_USD  # never less than the server was paid for
    assert f"for {AT_ONCE} requests of unknown cost" in finished.stdout
    assert (tmp_path / "run" / FILE).read_text().count("\n") == 1  # a finished run keeps the sum


def test_a_run_stops_at_its_limit_with_the_calls_in_flight_kept_and_goes_on_from_there(tmp_path):
    with FakeServer(plan=lambda seen: Fault("slow", seconds=0.02)) as server:
        with pytest.raises(BudgetError, match="stopped after"):
            run(server, tmp_path, 1.0)
        sent = len(server.requests)
        assert 10 <= sent <= 10 + AT_ONCE  # ten replies reach a dollar
        spent = read_spending(tmp_path / "run" / FILE)
        assert spent == Spending(pytest.approx(sent * REPLY_USD))
        with pytest.raises(BudgetError):
            run(server, tmp_path, 1.0)  # the limit is for all starts together
        assert len(server.requests) == sent
        found = run(server, tmp_path, None)
        assert found.timing.spent_usd == pytest.approx(len(server.requests) * REPLY_USD)
    assert found.timing.spent_usd == pytest.approx(found.usage.cost_usd) == found.usage.distinct_calls * REPLY_USD


@pytest.mark.parametrize("fault", [Fault("reset"), Fault("body", body=b"no reply")], ids=["reset", "unreadable"])
def test_requests_whose_replies_are_never_read_reach_the_limit_too(tmp_path, fault):
    with FakeServer(plan=every(1, fault)) as server:
        config = RunConfig.of(suite="small", model="judge", contexts="profile")
        session = Session(config, model=judge(server, retries=1), suite=Suite.of(mirrored(), name="small"))
        with pytest.raises(BudgetError, match="requests of unknown cost") as caught:
            execute(session, RunFolder(tmp_path / "run"), max_cost_usd=10.0)
        sent = len(server.requests)
    spent = read_spending(tmp_path / "run" / FILE)
    assert (spent.settled_usd, spent.unsettled) == (0.0, sent)
    assert spent.unsettled_usd >= 10.0
    assert sent <= 10 + AT_ONCE  # each can cost more than a dollar
    assert "the limit is $10.00" in str(caught.value)


def test_jurors_spend_from_one_budget(tmp_path):
    with FakeServer() as one, FakeServer(answer=lambda body: "Result: B") as two:
        jury = Jury([judge(one), judge(two), load_model("shorter")], "majority")
        config = RunConfig.of(suite="small", model="jury", contexts="none")

        def judged(limit_usd):
            session = Session(config, model=jury, suite=Suite.of(mirrored(), name="small"))
            with closing(CallCache(tmp_path / "calls.sqlite")) as cache:
                return execute(session, RunFolder(tmp_path / "run"), cache=cache, max_cost_usd=limit_usd)

        with pytest.raises(BudgetError, match="stopped after"):
            judged(1.0)  # before the first record, for which all jurors are asked
        sent = len(one.requests) + len(two.requests)
        assert 10 <= sent <= 10 + AT_ONCE
        assert read_spending(tmp_path / "run" / FILE) == Spending(pytest.approx(sent * REPLY_USD))
        found = judged(None)
        assert found.timing.spent_usd == pytest.approx((len(one.requests) + len(two.requests)) * REPLY_USD)
        assert len({json.dumps(seen.body) for seen in one.requests}) == len(one.requests)  # nothing is paid for twice


def test_the_runs_of_a_stress_test_spend_from_one_limit(tmp_path):
    with FakeServer() as server:
        options = ModelOptions(price=PRICE, concurrency=AT_ONCE)
        config = RunConfig.of(suite="small", model=f"chat:judge@{server.url}", contexts="none", options=options)
        asked = {"changes": ["again"], "suite": Suite.of(mirrored(1, 2), name="small")}
        with pytest.raises(BudgetError, match="the stress test is estimated at"):
            stress(config, tmp_path, max_cost_usd=0.5, **asked)
        assert not server.requests
        stress(config, tmp_path, **asked)
        sent = len(server.requests)
        stress(config, tmp_path, max_cost_usd=0.0, **asked)  # nothing is left to ask
        assert len(server.requests) == sent
    spent = [read_spending(tmp_path / name / FILE).spent_usd for name in ("plain", "again")]
    assert sum(spent) == pytest.approx(sent * REPLY_USD)


def test_retries_are_counted_and_only_replies_that_may_have_been_paid_for_stay_open(tmp_path):
    with FakeServer(plan=first_attempts(1, Fault("status", status=503))) as server:
        found = evaluate(judge(server), mirrored(1, 2), contexts=["none"], out=tmp_path / "one", cache=False)
    calls = found.usage.distinct_calls
    assert (found.timing.retries, found.timing.unsettled_calls) == (calls, None)
    assert found.timing.spent_usd == pytest.approx(calls * REPLY_USD)
    for name, fault in {"two": Fault("reset"), "three": Fault("status", status=502)}.items():  # billed or not?
        with FakeServer(plan=first_attempts(1, fault)) as server:
            found = evaluate(judge(server), mirrored(1, 2), contexts=["none"], out=tmp_path / name, cache=False)
        assert (found.timing.retries, found.timing.unsettled_calls) == (calls, calls)
        assert found.timing.spent_usd - found.timing.unsettled_usd == pytest.approx(calls * REPLY_USD)


def test_a_reply_that_does_not_say_its_tokens_counts_at_its_upper_bound(tmp_path):
    silent = {key: value for key, value in chat_reply("Result: A").items() if key != "usage"}
    with FakeServer(answer=lambda body: silent) as server:
        found = evaluate(judge(server), mirrored(1, 2), contexts=["none"], out=tmp_path / "one", cache=False)
        one = found.timing
        several = judge(server, body={"n": 5})
        five = evaluate(several, mirrored(1, 2), contexts=["none"], out=tmp_path / "two", cache=False).timing
    assert one.unsettled_calls == five.unsettled_calls == found.usage.distinct_calls
    assert one.spent_usd == one.unsettled_usd > found.usage.cost_usd > 0  # what the answers are estimated at
    assert five.spent_usd > 3 * one.spent_usd  # five replies to each request, and its prompt once


def test_a_run_without_a_price_keeps_no_spend_file_and_says_nothing_of_money(tmp_path):
    with FakeServer() as server:
        model = chat.load(f"judge@{server.url}", ModelOptions(), backoff=FAST)
        evaluate(model, mirrored(1, 2), contexts=["none"], out=tmp_path / "run", cache=False)
    assert not (tmp_path / "run" / FILE).exists()
    assert not {"retries", "unsettled_calls", "unsettled_usd"} & timing_of(tmp_path / "run").keys()


def test_a_build_stops_at_its_limit_over_all_starts(tmp_path):
    requests = {str(n): WritingRequest(Prompt((Message("user", f"Say {n}."),)), lambda text: text) for n in range(40)}
    with FakeServer() as server:
        options = ModelOptions(price=PRICE, concurrency=AT_ONCE)

        def ask(limit_usd):
            writer = load_generator(f"chat:writer@{server.url}", options)
            with (
                Replies(writer, tmp_path / "calls.jsonl", Decoding(max_tokens=8)) as author,
                Budget(tmp_path / FILE, limit_usd, spent_usd=author.cost_usd) as author.budget,
            ):
                return author.ask("texts", requests)

        with pytest.raises(BudgetError, match="for texts"):
            ask(1.0)
        sent = len(server.requests)
        assert 10 <= sent <= 10 + AT_ONCE
        assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == sent  # what was paid for is kept
        with pytest.raises(BudgetError):
            ask(1.0)
        assert len(server.requests) == sent
        (tmp_path / FILE).unlink()  # a build that is older than spend files: its replies know what they cost
        with pytest.raises(BudgetError):
            ask(1.0)
        assert len(server.requests) == sent
        assert len(ask(10.0)) == len(server.requests) == 40


def test_plans_stop_at_their_limit_over_all_starts(tmp_path):
    needs = needs_of(mirrored())
    with FakeServer(answer=lambda body: "- wants red") as server:

        def write(limit_usd):
            planner = Planner(load_generator(f"chat:p@{server.url}", ModelOptions(price=PRICE, concurrency=AT_ONCE)))
            file = PlanFile(tmp_path / "plans.jsonl", planner, needs)
            with file.budget(limit_usd) as budget:
                file.write(None, budget)
            return budget.spending

        with pytest.raises(BudgetError, match="for plans"):
            write(1.0)
        sent = len(server.requests)
        assert 10 <= sent <= 10 + AT_ONCE
        with pytest.raises(BudgetError):
            write(1.0)
        assert len(server.requests) == sent
        assert write(None).spent_usd == pytest.approx(len(server.requests) * REPLY_USD)


def test_judging_of_a_study_stops_at_its_limit_over_all_starts(tmp_path):
    class Item:
        def __init__(self, name):
            self.id = name

        def grading(self, text):
            return Grading("Tea?", text, (Aspect(aspect="Names one kind"),))

    items = [Item(f"item {n}") for n in range(30)]
    candidates = {item.id: [Candidate(key=item.id, text=f"Tea of {item.id}.")] for item in items}
    with FakeServer(answer=lambda body: "[2]") as server:
        options = ModelOptions(price=PRICE, concurrency=AT_ONCE)

        def grade(limit_usd):
            work = Judging(ChatJudge.load(f"j@{server.url}", options), items, candidates, tmp_path / GRADES)
            with study_budget(RunFolder(tmp_path), limit_usd) as budget:
                return work.grade(budget=budget)

        with pytest.raises(BudgetError, match="for grades"):
            grade(1.0)
        sent = len(server.requests)
        assert 10 <= sent <= 10 + AT_ONCE
        assert len((tmp_path / GRADES).read_text().splitlines()) == sent
        with pytest.raises(BudgetError):
            grade(1.0)
        assert len(server.requests) == sent
        assert len(grade(None)) == len(server.requests) == 30


def test_a_damaged_spend_file_is_an_error_with_a_way_out(tmp_path):
    (tmp_path / FILE).write_text('{"number":1,"most_usd":"much"}\n')
    with pytest.raises(RunError, match=FILE) as caught:
        Budget(tmp_path / FILE)
    assert "remove the file" in caught.value.hint


def test_a_torn_last_line_of_a_spend_file_is_passed_over(tmp_path):
    (tmp_path / FILE).write_text('{"usd":0.5}\n{"number":1,"most_usd":0.25}\n{"number":2,"most')
    assert read_spending(tmp_path / FILE) == Spending(0.5, 0.25, unsettled=1)
    with Budget(tmp_path / FILE) as budget:
        budget.settle(budget.begin(0.3), 0.1)
    assert read_spending(tmp_path / FILE) == Spending(0.6, 0.25, unsettled=1)


def test_an_abandoned_request_is_spent_and_one_under_way_is_not(tmp_path):
    with Budget(tmp_path / FILE, 1.0) as budget:
        under_way, lost, free = budget.begin(0.75), budget.begin(0.5), budget.begin(0.0)
        budget.check()
        budget.abandon(lost)
        budget.abandon(free)
        assert (budget.spent_usd, budget.spending) == (0.5, Spending(0.0, 1.25, unsettled=2))
        budget.abandon(under_way)
        with pytest.raises(BudgetError, match=r"\$1.2500 of it for 2 requests of unknown cost"):
            budget.check()
    assert read_spending(tmp_path / FILE) == Spending(0.0, 1.25, unsettled=2)
