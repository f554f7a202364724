"""A jury: verdicts of several models as one, asked, cached and resumed as if each were alone."""

import itertools
import threading

import pytest

import prbench
from fake_server import FakeServer
from pair_factory import make_pair
from prbench.config import ModelOptions, Price
from prbench.errors import AddressError, BudgetError, ConfigError, ModelError
from prbench.models import load_model
from prbench.models.jury import Jury, _in_turn
from prbench.models.python import wrap
from prbench.report.run_tables import run_tables
from prbench.results import verify
from prbench.types import PairView


def pairs(count=6):
    return [
        make_pair(str(n), user=f"u{n}", question=f"Q{n}?", chosen=f"good {n}", rejected=f"a longer bad {n}")
        for n in range(count)
    ]


def first_wins(question, first, second):
    return "first"


def right(question, first, second):
    return "first" if first.startswith("good") else "second"


def margin(question, first, second):
    return 2.0 if first.startswith("good") else -2.0


def unreadable(question, first, second):
    return "banana"


def named(function, name):
    model = wrap(function)
    model.card = model.card.model_copy(update={"address": name})
    return model


def jury(*functions, rule="majority"):
    return Jury([named(function, f"py:{number}") for number, function in enumerate(functions)], rule)


def test_the_majority_decides_and_the_result_says_how_far_jurors_agree(tmp_path):
    found = prbench.evaluate(jury(right, right, first_wins), pairs(), contexts=["none"], out=tmp_path / "run")
    context = found.contexts["none"]
    assert context.accuracy.value == 1.0
    assert {name: one.value for name, one in context.jury.jurors.items()} == {"py:0": 1.0, "py:1": 1.0, "py:2": 0.5}
    # chosen first: all agree, 3 of 3 couples of jurors; chosen second: 1 of 3
    assert context.jury.agreement.value == pytest.approx(2 / 3)
    assert context.jury.unanimous.value == 0.0
    assert not verify(tmp_path / "run").mismatches
    assert "Jury" in [table.title for table in run_tables(found)]


def test_a_juror_without_a_verdict_abstains():
    found = prbench.evaluate(jury(right, unreadable, unreadable), pairs(), contexts=["none"])
    assert found.contexts["none"].accuracy.value == 1.0
    assert found.records[0].jurors == ("first", "invalid", "invalid")
    assert found.contexts["none"].jury.jurors["py:1"].value is None
    found = prbench.evaluate(jury(unreadable, unreadable), pairs(), contexts=["none"])
    assert found.contexts["none"].accuracy.value is None


def test_the_mean_needs_margins():
    found = prbench.evaluate(jury(margin, margin, rule="mean"), pairs(), contexts=["none"])
    assert (found.contexts["none"].accuracy.value, found.records[0].margin) == (1.0, 2.0)
    found = prbench.evaluate(jury(margin, right, rule="mean"), pairs(), contexts=["none"])
    assert found.records[0].status == "invalid"
    assert "py:1: no margin to average" in found.records[0].reason


def test_raters_and_comparers_sit_together():
    found = prbench.evaluate("jury:shorter,longer,overlap", pairs(), contexts=["none"])
    assert found.contexts["none"].position.flip_rate.value == 0.0
    assert found.contexts["none"].jury.jurors["longer"].value == 0.0
    assert found.contexts["none"].jury.jurors["shorter"].value == 1.0
    [(_, outcome)] = load_model("jury:shorter,longer,overlap").compare([PairView("Tea?", "Tea it is.", "No.")])
    assert outcome.verdict == "first"


def test_a_jurors_answers_are_those_of_its_own_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path))
    usage = {"options": ModelOptions(retries=0, timeout_s=10)}
    with FakeServer(answer=lambda body: "Result: A") as one, FakeServer(answer=lambda body: "Result: B") as two:
        prbench.evaluate(f"chat:a@{one.url}", pairs(), contexts=["none"], **usage)
        assert len(one.requests) == 12
        address = f"jury:chat:a@{one.url},chat:b@{two.url},shorter"
        found = prbench.evaluate(address, pairs(), contexts=["none"], out=tmp_path / "jury", **usage)
        assert (len(one.requests), len(two.requests)) == (12, 12)
        assert found.timing.calls_asked == 12 + 12  # of the second judge, and the scores of the baseline
        again = prbench.evaluate(address, pairs(), contexts=["none"], out=tmp_path / "jury", **usage)
        assert (len(one.requests), len(two.requests), again.timing.calls_asked) == (12, 12, 0)
    assert found.contexts["none"].accuracy.value == 1.0  # the judges like a place, the baseline decides


def test_costs_are_the_jurors_own(monkeypatch):
    from prbench.config import RunConfig
    from prbench.data import Suite
    from prbench.run import Session, forecast

    monkeypatch.setenv("OPENAI_API_KEY", "k")
    address = "jury:chat:gpt-5-mini@https://api.openai.com/v1,shorter"
    config = RunConfig.of(suite="s", model=address, contexts="none", split=None)
    estimate = forecast(Session(config, suite=Suite.of(pairs())), {}, None)
    assert estimate.cost_usd > 0
    assert estimate.distinct_calls == 12 + 12
    config = RunConfig.of(
        suite="s", model="jury:chat:nonesuch@https://api.openai.com/v1,shorter", contexts="none", split=None
    )
    assert forecast(Session(config, suite=Suite.of(pairs())), {}, None).cost_usd is None


def test_a_jury_with_a_hosted_juror_is_not_shared_out():
    with FakeServer() as server:
        address = f"jury:chat:a@{server.url},shorter"
        with pytest.raises(ConfigError, match=r"chat:a.* answers elsewhere"):
            prbench.evaluate(address, pairs(), contexts=["none"], workers=2)
        assert not server.requests


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("", "names no juror"),
        ("longer", "names one juror, 'longer'"),
        ("longer,longer", "names 'longer' twice"),
        ("longer,jury:shorter,random", "a jury among its jurors"),
        ("longer,chat:a@http://127.0.0.1:1/v1#nonsense", "unknown mode 'nonsense'"),
        ("longer,shorter#median", "baseline|unknown|median"),
    ],
)
def test_a_jury_that_cannot_be(rest, said):
    with pytest.raises((AddressError, ModelError), match=said):
        load_model(f"jury:{rest}")


def test_scales_that_cannot_be_mixed_are_refused_before_the_first_call():
    with FakeServer() as server:
        for address, said in (
            (f"jury:chat:a@{server.url},chat:b@{server.url}#mean", "verdicts without margins"),
            (f"jury:longer,chat:b@{server.url}#mean", "'longer' gives scores in points"),
        ):
            with pytest.raises(ModelError, match=said) as caught:
                load_model(address)
            assert "#majority" in caught.value.hint
        load_model(f"jury:chat:a@{server.url},chat:b@{server.url}#mean", ModelOptions(logprobs=True))
        for dialect in ("anthropic", "gemini"):  # which have no words for log-probabilities
            with pytest.raises(ModelError, match=f"'{dialect}:b.*verdicts without margins"):
                load_model(f"jury:chat:a@{server.url},{dialect}:b@{server.root}#mean", ModelOptions(logprobs=True))
        price = Price(per_million_in=1, per_million_out=1)
        with pytest.raises(ModelError, match="one --price for 2 hosted jurors"):
            load_model(f"jury:chat:a@{server.url},chat:b@{server.url}", ModelOptions(price=price))
        assert not server.requests


def test_a_key_is_not_sent_to_the_hosts_of_other_jurors(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-mine-secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    mine = ModelOptions(key_env="MY_KEY")
    with pytest.raises(ModelError, match=r"MY_KEY would send one key to elsewhere\.example and api\.anthropic\.com"):
        load_model("jury:chat:a@https://elsewhere.example/v1,anthropic:b", mine)
    load_model("jury:chat:a@https://elsewhere.example/v1,chat:b@https://elsewhere.example/v1,longer", mine)
    load_model("jury:chat:a@https://elsewhere.example/v1,anthropic:b")


def test_hosted_jurors_are_asked_at_the_same_time():
    """The first server holds its third reply back until the second one has been asked."""
    numbers, other_asked = itertools.count(1), threading.Event()

    def first(body):
        return "Result: A" if next(numbers) < 3 or other_asked.wait(10) else "nobody else was asked"

    def second(body):
        other_asked.set()
        return "Result: A"

    with FakeServer(answer=first) as one, FakeServer(answer=second) as two:
        model = load_model(f"jury:overlap,chat:a@{one.url},chat:b@{two.url}", ModelOptions(concurrency=2))
        found = prbench.evaluate(model, pairs(4), contexts=["none"])
    assert {record.status for record in found.records} == {"ok"}
    assert all(record.jurors[1:] == ("first", "first") for record in found.records)


def test_a_refusal_for_money_ends_a_jury_after_the_others_have_handed_over_theirs():
    closed = []

    def juror(name, replies, refused):
        try:
            for number in range(replies):
                yield number, name
            if refused:
                raise BudgetError("spent")
        finally:
            closed.append(name)

    found = []
    heard = _in_turn([juror("a", 1, refused=True), juror("b", 3, refused=False)])
    for reply in heard:
        found.append(reply)
        if len(found) == 4:
            break
    assert found == [(0, "a"), (0, "b"), (1, "b"), (2, "b")]
    with pytest.raises(BudgetError):
        next(heard)
    assert sorted(closed) == ["a", "b"]
