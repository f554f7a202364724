"""A forecast looks at some calls, counts what they share, and shows no time left before there is a pace."""

import io
import time
from importlib import import_module

import pytest

from prbench.api.evaluating import evaluate
from prbench.config import ModelOptions, RunConfig
from prbench.data import Suite
from prbench.models import load_model
from prbench.run import RecordProgress, Session, forecast
from prbench.run.work import OpenWork
from prbench.types import CallUse, Record
from small_suite import mirrored


def foreseen(model, pairs, contexts=("none", "profile")):
    suite = Suite.of(pairs)
    config = RunConfig.of(suite=suite.record.name, model=model.card.address, contexts=contexts)
    return forecast(Session(config, model=model, suite=suite), {}, None)


def test_what_calls_share_is_foreseen_as_it_is_computed(tiny_reward_model):
    model = load_model(f"hf:{tiny_reward_model}", ModelOptions())
    estimate = foreseen(model, mirrored())
    evaluate(model, mirrored(), contexts=["none", "profile"], cache=False, resamples=100)
    effort = model.effort
    assert estimate.calls_sampled == estimate.calls_to_make  # few calls: all are looked at
    assert estimate.tokens_in == effort.naive_tokens
    assert effort.computed_tokens / 2 < estimate.tokens_computed < effort.computed_tokens * 2
    assert estimate.tokens_computed < estimate.tokens_in
    assert estimate.time_s is not None


def test_a_large_run_is_sampled(monkeypatch, tiny_reward_model):
    room = import_module("prbench.run.forecast")  # the package has a function of that name
    monkeypatch.setattr(room, "_BLOCKS", 3)
    monkeypatch.setattr(room, "_BLOCK", 8)
    model = load_model(f"hf:{tiny_reward_model}", ModelOptions())
    estimate = foreseen(model, mirrored())
    assert estimate.calls_sampled == 24 < estimate.calls_to_make
    monkeypatch.undo()
    assert estimate.tokens_in == pytest.approx(foreseen(model, mirrored()).tokens_in, rel=0.5)


def test_a_model_elsewhere_has_no_time():
    estimate = foreseen(load_model("longer"), mirrored(), ["none"])
    assert (estimate.time_s, estimate.tokens_computed, estimate.tokens_counted) == (None, None, False)


def record(cached):
    use = CallUse(key="k", cached=cached)
    return Record(
        pair="p",
        context="none",
        order="rated",
        status="ok",
        verdict="first",
        chosen_score=1.0,
        rejected_score=0.0,
        calls=(use,),
    )


def test_no_time_left_is_told_before_there_is_a_pace(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    progress = RecordProgress(io.StringIO())
    progress.listening(OpenWork(unfit=[record(False)] * 1000), 0)
    for _ in range(500):  # from the cache, all at once
        progress(record(True), 0.0)
    assert progress.seconds_left() is None
    now[0] += 60  # the model is loaded
    for _ in range(29):
        now[0] += 0.5
        progress(record(False), 0.0)
        assert progress.seconds_left() is None
    now[0] += 0.5
    progress(record(False), 0.0)
    assert progress.seconds_left() == pytest.approx(470 * 0.5, rel=0.05)
    assert " left" in progress.status()


def test_planning_is_told_where_it_takes_long(monkeypatch):
    now, said = [100.0], io.StringIO()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    progress = RecordProgress(said)
    progress.planning(64, 1000)
    assert said.getvalue() == ""
    now[0] += 11
    progress.planning(128, 1000)
    assert said.getvalue() == "planning: 128/1,000 · what fits, what is asked only once\n"
